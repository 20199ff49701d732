"""Faults of nodes other than deaths take hold with the asked size in both engines: one run of each, a cell per fault."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import yaml
from scipy import stats

from testbed.analysis.laws import all_laws
from testbed.analysis.records import ended_s
from testbed.experiment import run_arm
from testbed.record.outcome import load_outcome
from testbed.record.read import read_tables
from testbed.record.run_folder import ArmFolder
from testbed.scenario.load import scenario_from_text
from testbed.scenario.topology import build_topology
from tests.laws.test_node_faults import PROFILE, alone_s
from tests.laws.virtual_run import VirtualRun, silent

pytestmark = pytest.mark.live

SECONDS, RATE_PER_S = 4, 60  # a cell
FAULTS: dict[str, list[dict[str, Any]]] = {
    "fails": [{"at": "0 s", "for": "3 s", "cell": "fails", "set": {"errors": "30 %", "error_after": "50 ms"}}],
    "slow": [{"at": "0 s", "for": "3 s", "server": "slow/server-1", "set": {"speed": 0.25}}],
    "frozen": [{"at": "1 s", "for": "2 s", "cell": "frozen", "set": {"telemetry": "frozen"}}],
    "silent": [{"at": "1 s", "for": "2 s", "cell": "silent", "set": {"telemetry": "silent"}}],
    "lying": [{"at": "0 s", "for": "3 s", "cell": "lying", "set": {"gauge_factor": 2, "gauge_offset": 5}}],
    "skewed": [{"at": "1 s", "for": "2 s", "cell": "skewed", "set": {"clock_skew": "-200 ms", "clock_drift": "10 %"}}],
    "drained": [{"at": "1 s", "for": "2 s", "server": "drained/server-1", "set": {"drain": True}}],
    "grown": [{"at": "0 s", "for": "2 s", "server": "grown/server-1", "set": {"absent": True}}],
    "leaking": [
        {"at": "0 s", "for": "1 s", "server": "leaking/server-1", "set": {"speed": 0.001}},
        {"at": "0 s", "cell": "leaking", "set": {"leak": "100 %"}},
    ],
    "reset": [
        {"at": "0 s", "for": "1 s", "server": "reset/server-1", "set": {"speed": 0.001}},
        {"at": "0 s", "for": "700 ms", "server": "reset/server-2", "set": {"drain": True}},
        {"at": "800 ms", "cell": "reset", "set": {"reset_counts": True}},
    ],
    "cold": [{"at": "0 s", "for": "2 s", "cell": "cold", "set": {"prefill": "x5"}}],
    "plain": [],
}  # fmt: skip

COUNTING = ("leaking", "reset", "plain")  # busier, so that counts differ


def words() -> dict[str, Any]:
    """Two servers a cell; all cells in two processes, the root in a third."""
    cell = {"servers": 2, "service": {"slots": 4, "fixed": "20 ms"}, "leaf": {"policy": "idlest"}}
    uneven = {"servers": 2, "service": {"slots": 4, "exponential": "30 ms"}, "leaf": {"policy": "idlest"}}
    cold = {"servers": 2, "profile": PROFILE, "leaf": {"policy": "idlest"}}
    return {
        "name": "nodes",
        "duration": f"{SECONDS} s",
        "drain": "2 s",
        "seed": 2,
        "cells": dict.fromkeys(FAULTS, cell) | dict.fromkeys(COUNTING, uneven) | {"cold": cold},
        "roots": {"r": {"traffic": [{"class": "c", "rate": f"{RATE_PER_S * len(FAULTS)} /s", "policy": "split"}]}},
        "classes": {"c": {"prompt_tokens": 256, "output_tokens": 4, "timeout": "500 ms"}},
        "policies": {
            "split": {"kind": "weighted", "weights": dict.fromkeys(FAULTS, 1.0) | dict.fromkeys(COUNTING, 1.5) | {"cold": 0.3}, "draw": "request"},
            "idlest": {"kind": "least_cost", "cost": "in_flight", "view": "own_counts"},
        },
        "links": [{"from": "*", "to": "*", "delay": "5 ms"}],
        "faults": [line for lines in FAULTS.values() for line in lines],
        "processes": {"roots": 1, "cells": 2},
        "records": {"decisions": "0 %"},
    }  # fmt: skip


@pytest.fixture(scope="module", params=["virtual", "live"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> VirtualRun:
    """The same scenario in each engine."""
    folder = ArmFolder(tmp_path_factory.mktemp("nodes") / request.param)
    scenario = scenario_from_text(yaml.safe_dump(words(), sort_keys=False)).arms["main"]
    run_arm(folder, scenario, request.param, silent)
    return VirtualRun(scenario, read_tables(folder.tables), load_outcome(folder.outcome), folder)


def of_cell(run: VirtualRun, table: str, cell: str) -> dict[str, Any]:
    """The rows of a table that are of a cell."""
    columns = run.tables[table]
    mine = columns["cell"] == cell
    return {name: column[mine] for name, column in columns.items()}


def between(rows: dict[str, Any], column: str, from_s: float, until_s: float) -> Any:
    """Which rows have an instant in a span."""
    return (rows[column] >= from_s) & (rows[column] < until_s)


def recorded(run: VirtualRun, cell: str) -> tuple[float, float, float]:
    """Of the first fault of a cell: when the last of its nodes had made it, when it was to heal, when the last had healed it."""
    faults = run.tables["faults"]
    number = [name for name, lines in FAULTS.items() for _ in lines].index(cell)
    assert cell in faults["target"][number]
    made_s, until_s, healed_s = (
        float(faults[column][number]) for column in ("applied_at_s", "heal_planned_at_s", "healed_at_s")
    )
    return made_s, until_s, healed_s


def share_of_first(run: VirtualRun, cell: str, from_s: float, until_s: float) -> float:
    """Share of the first server of a cell in the requests that came to its leaf in a span and on to a server."""
    requests = of_cell(run, "requests", cell)
    came = between(requests, "at_leaf_s", from_s, until_s) & np.isfinite(requests["at_server_s"])
    assert came.sum() > 20
    return float((requests["server"][came] == f"{cell}/server-1").mean())


def test_the_asked_fraction_fails_after_the_asked_time(run: VirtualRun) -> None:
    requests = of_cell(run, "requests", "fails")
    during = between(requests, "at_leaf_s", 0.0, 2.9)
    failed = requests["outcome"] == "failed"
    low, high = stats.binom.interval(0.999, int(during.sum()), 0.3)
    assert low <= failed[during].sum() <= high
    stays_s = (requests["left_leaf_s"] - requests["at_leaf_s"])[failed]
    assert (
        stays_s.min() >= 0.060 - 1e-3
    )  # 50 ms and twice 5 ms on the way, of which a late start takes nothing
    assert np.median(stays_s) == pytest.approx(0.060, abs=0.010)
    assert not failed[requests["at_leaf_s"] > recorded(run, "fails")[2]].any()


def test_a_slow_server_serves_at_its_factor(run: VirtualRun) -> None:
    requests = of_cell(run, "requests", "slow")
    served_s = requests["finished_at_s"] - requests["started_at_s"]
    first = requests["server"] == "slow/server-1"
    during, later = between(requests, "started_at_s", 0.1, 2.8), between(requests, "started_at_s", 3.2, 9.0)
    assert np.median(served_s[first & during]) == pytest.approx(0.080, rel=0.05)
    assert np.median(served_s[~first & during]) == pytest.approx(0.020, rel=0.05)
    assert np.median(served_s[first & later]) == pytest.approx(0.020, rel=0.05)


def test_frozen_telemetry_repeats_and_silent_telemetry_ceases(run: VirtualRun) -> None:
    """Twenty periods of 100 ms each, less what a late host leaves out."""
    seen = of_cell(run, "observations", "frozen")
    frozen = between(seen, "measured_at_s", *recorded(run, "frozen")[:2])
    assert frozen.sum() > 10
    assert len(set(seen["arrivals"][frozen].tolist())) == 1
    assert len(set(seen["arrivals"][~frozen].tolist())) > 10
    silent_cell = of_cell(run, "observations", "silent")
    made_s, until_s, healed_s = recorded(run, "silent")
    assert between(silent_cell, "measured_at_s", made_s, until_s).sum() == 0
    assert (silent_cell["measured_at_s"] > healed_s).sum() > 1


def test_gauges_lie_by_their_factor_and_offset(run: VirtualRun) -> None:
    """Twice the requests at the leaf and five more, at each report to the one; and the truth again once it has healed."""
    seen, requests = of_cell(run, "observations", "lying"), of_cell(run, "requests", "lying")
    at_s = seen["measured_at_s"]
    entered, left = np.sort(requests["at_leaf_s"]), np.sort(requests["left_leaf_s"])
    true = np.searchsorted(entered, at_s, side="right") - np.searchsorted(left, at_s, side="right")
    told = seen["queued"] + seen["running"]
    _, until_s, healed_s = recorded(run, "lying")
    lies, says_true = at_s < until_s, at_s > healed_s
    assert (told[lies] == 2 * true[lies] + 5).all()
    assert (told[says_true] == true[says_true]).all()
    assert lies.sum() > 15
    assert says_true.sum() > 1


def test_claimed_stamps_are_off_by_the_skew_and_the_drift(run: VirtualRun) -> None:
    """The drift counts from when the leaf took it on; the error stands beside every claimed stamp."""
    seen = of_cell(run, "observations", "skewed")
    since_s, until_s, healed_s = recorded(run, "skewed")
    true_s = seen["measured_at_s"] - seen["clock_error_s"]
    off = between({"at": true_s}, "at", since_s, until_s)
    assert seen["clock_error_s"][off] == pytest.approx(-0.2 + 0.1 * (true_s[off] - since_s), abs=1e-3)
    assert off.sum() > 10
    assert (seen["clock_error_s"][(true_s < since_s) | (true_s > healed_s)] == 0).all()


def test_servers_that_are_drained_or_absent_get_nothing_until_they_are_back(run: VirtualRun) -> None:
    for cell in ("drained", "grown"):
        made_s, until_s, healed_s = recorded(run, cell)
        assert share_of_first(run, cell, made_s, until_s) == 0.0
        assert share_of_first(run, cell, healed_s, 4.5) > 0.25


def test_counts_that_leak_shun_a_server_and_counts_that_are_reset_favour_it(run: VirtualRun) -> None:
    """The first server stood for a second, and had most that was open at the reset; later it is as well as the other."""
    assert share_of_first(run, "leaking", 2.0, 4.5) < 0.3
    assert 0.35 < share_of_first(run, "plain", 2.0, 4.5) < 0.65
    assert share_of_first(run, "reset", 2.0, 4.5) > 0.9


def test_cold_servers_prefill_slowly_until_they_are_warm(run: VirtualRun) -> None:
    """Five times as slowly: the fastest is a request that is alone, whose first token takes a step and its prefill."""
    requests = of_cell(run, "requests", "cold")
    first_s = requests["first_token_at_s"] - requests["started_at_s"]
    cold, warm = (between(requests, "started_at_s", *span) for span in ((0.0, 2.0), (3.0, 4.5)))
    for rows, factor in ((cold, 5), (warm, 1)):
        assert first_s[rows].min() == pytest.approx(alone_s(factor, prompt_tokens=256))


def test_every_node_acknowledges_and_nothing_is_lost(run: VirtualRun) -> None:
    faults, topology = run.tables["faults"], build_topology(run.scenario)
    assert (faults["nodes_applied"] == faults["nodes_expected"]).all()
    assert (faults["nodes_healed"] == faults["nodes_expected"]).all()
    assert len(run.outcome.ledger) == len(topology.links)
    assert [line for line in run.outcome.ledger if line.gap] == []
    laws = all_laws(run.scenario, topology, run.tables, ended_s(run.scenario, run.outcome))
    assert [law for law in laws if not law.holds] == []
