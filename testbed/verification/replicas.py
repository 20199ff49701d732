"""The testbed of the Prequal paper under virtual time: one cell of many servers behind many leaves, its clients.

Each server is allotted six cores; an antagonist leaves it 12, 6 or 5 of them, drawn anew after exponential times of
mean 10 s with probabilities 0.80, 0.15 and 0.05. Work is Normal(80 ms, 80 ms) clipped at 0; load 1 is what keeps the
allotted cores busy: 69.2 requests per second and server. A request that is not answered within 5 s has failed, and
counts as 5 s; its server works on it all the same. The antagonists and the work are the same for every policy. Arrivals
are Poisson in all, and the leaves have them in turn.

Source: Wydrowski et al., Prequal (NSDI 2024), section 5.1; the antagonist as a renewal process is ours.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from testbed.record.log import log_header
from testbed.record.run_folder import ArmFolder
from testbed.record.tables import LOGGED
from testbed.roles.build import World, build_role
from testbed.roles.environment import Environment, Role
from testbed.runtime.virtual import VirtualEngine
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import build_topology
from testbed.serving.service import clipped_normal_mean
from testbed.traffic.plan import build_plan
from testbed.verification.trial import refuse_interrupted, scenario_of

DEADLINE_S = 5.0
CORES = 6.0
WORK_S = clipped_normal_mean(0.08, 0.08)
CAPACITY_PER_S = CORES / WORK_S  # of one server at full speed
PROBE_DELAY = "200 us"  # replies to probes took well below a millisecond

# The nine rules of the paper, in our words. For YARP-Po2C servers report every 500 ms instead of being polled as often.
RULES: dict[str, dict[str, Any]] = {
    "RoundRobin": {"kind": "round_robin"},
    "Random": {"kind": "random"},
    "WRR": {"kind": "weighted_utilisation"},
    "LeastLoaded": {"kind": "least_cost", "cost": "in_flight", "view": "own_counts"},
    "LL-Po2C": {"kind": "two_choices", "cost": "in_flight", "view": "own_counts"},
    "YARP-Po2C": {"kind": "two_choices", "cost": "in_flight", "view": "reports"},
    "Linear": {"kind": "linear", "in_flight_weight": 0.5, "service_time": "75 ms"},
    "C3": {"kind": "c3"},
    "Prequal": {"kind": "prequal", "hot_quantile": 0.75},
}
REPORT_EVERY = {"YARP-Po2C": "500 ms", "WRR": "2 s"}  # of servers to leaves, where the rule reads reports


class Scene(NamedTuple):
    """A size of the testbed.

    Attributes:
        servers: replicas.
        leaves: clients.
        duration_s: of the arrivals.
        warmup_s: not counted.
        slow: so many of the servers take twice the work for each request.
    """

    servers: int = 100
    leaves: int = 100
    duration_s: float = 60.0
    warmup_s: float = 10.0
    slow: int = 0


class Measured(NamedTuple):
    """What a run gave: shape (requests,) and (samples,).

    Attributes:
        sojourn_s: of the requests planned after the warm-up; 5 s for those that failed.
        planned_at_s: of the same requests.
        failed: which of them failed.
        in_flight: requests at a server, sampled once a second at every server after the warm-up.
    """

    sojourn_s: NDArray[np.float64]
    planned_at_s: NDArray[np.float64]
    failed: NDArray[np.bool_]
    in_flight: NDArray[np.float64]

    def ms(self, percent: float) -> float:
        """A percentile of the sojourn, milliseconds."""
        return float(np.percentile(self.sojourn_s, percent)) * 1000.0

    @property
    def failed_fraction(self) -> float:
        """Share of the requests that failed."""
        return float(self.failed.mean())


def measure(scene: Scene, rule: str, load: float, seed: int = 1, **changes: Any) -> Measured:
    """Run one of the nine rules at a load.

    Args:
        scene: the size.
        rule: one of `RULES`.
        load: in units of what keeps the allotted cores busy, the slow servers' included.
        seed: of arrivals, work, antagonists and choices.
        changes: keys of the policy that differ from `RULES`.
    """
    policy = {**RULES[rule], **changes}
    return _run(scenario_of(_words(scene, policy, REPORT_EVERY.get(rule, "1 s"), load, seed)))


def _words(scene: Scene, policy: dict[str, Any], report_every: str, load: float, seed: int) -> dict[str, Any]:
    rate_per_s = load * CAPACITY_PER_S * (scene.servers - scene.slow / 2)
    slow = [f"us/server-{scene.servers - i}" for i in range(scene.slow)]
    return {
        "name": "replicas",
        "duration": f"{scene.duration_s} s",
        "warmup": f"{scene.warmup_s} s",
        "seed": seed,
        "cells": {
            "us": {
                "servers": scene.servers,
                "service": {
                    "sharing": {
                        "allocation": CORES,
                        "antagonist": {
                            "cores": [12, 6, 5],
                            "probabilities": [0.80, 0.15, 0.05],
                            "every": "10 s",
                        },
                    },
                    "normal": {"mean": "80 ms", "sd": "80 ms"},
                },
                "leaf": {"policy": "rule", "count": scene.leaves},
                "server_reports": {"every": report_every},
            }
        },
        "roots": {"clients": {"traffic": [{"class": "query", "rate": f"{rate_per_s} /s", "policy": "one"}]}},
        "classes": {"query": {"timeout": f"{DEADLINE_S} s"}},
        "reports": {"every": "5 s"},
        "policies": {"rule": policy, "one": {"kind": "random"}},
        "links": [{"from": "us/*", "to": "us/*", "delay": PROBE_DELAY}],
        "faults": [{"at": "0 s", "server": name, "set": {"speed": 0.5}} for name in slow],
        "records": {"decisions": "0 %", "samples": "1 s"},
    }


class _Kept:
    """The rows of the two tables that are looked at; all others of a long run would only cost time."""

    def __init__(self) -> None:
        self.rows: dict[str, list[tuple[Any, ...]]] = {"dispatches": [], "samples": []}

    def record(self, table: str, row: tuple[Any, ...]) -> None:
        if table in self.rows:
            self.rows[table].append(row)

    def column(self, table: str, name: str) -> NDArray[np.float64]:
        position = [column.name for column in LOGGED[table]].index(name)
        return np.array([row[position] for row in self.rows[table]], float)


def _run(scenario: Scenario) -> Measured:
    kept = _Kept()

    def make_role(name: str, world: World, env: Environment) -> Role:
        # an environment of either engine keeps its record as an attribute; the protocol knows a method
        env.record = kept.record  # type: ignore[method-assign]
        return build_role(name, world, env)

    world = World(scenario, build_topology(scenario), build_plan(scenario))
    header = log_header(
        scenario=scenario.name, scenario_hash="", seed=scenario.seed, version="", engine="virtual", node="", started=""
    )  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="testbed-") as path:
        folder = ArmFolder(Path(path) / "trial")
        folder.make()
        refuse_interrupted(VirtualEngine(folder, world, header, make_role).run())
    return _measured(kept, scenario)


def _measured(kept: _Kept, scenario: Scenario) -> Measured:
    planned_at_s = kept.column("dispatches", "planned_at_s")
    replied_at_s = kept.column("dispatches", "replied_at_s")
    counted = planned_at_s >= scenario.warmup
    failed = np.isnan(replied_at_s) | (kept.column("dispatches", "outcome") != 0)
    sojourn_s = np.where(failed, DEADLINE_S, np.minimum(replied_at_s - planned_at_s, DEADLINE_S))
    at_s = kept.column("samples", "at_s")
    during = (at_s >= scenario.warmup) & (at_s <= scenario.duration)
    in_flight = kept.column("samples", "queued") + kept.column("samples", "running")
    return Measured(sojourn_s[counted], planned_at_s[counted], failed[counted], in_flight[during])
