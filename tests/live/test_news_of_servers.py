"""Faults of what servers tell take hold with the asked size in both engines, in reports and in answers to probes.

One cell reads reports, another one probes. In each the first server is at fault, one fault after the other, and the
second is not.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import yaml

from testbed.analysis.laws import all_laws
from testbed.analysis.records import ended_s
from testbed.experiment import run_arm
from testbed.record.outcome import load_outcome
from testbed.record.read import read_tables
from testbed.record.run_folder import ArmFolder
from testbed.scenario.load import scenario_from_text
from testbed.scenario.topology import build_topology
from tests.laws.virtual_run import VirtualRun, silent

pytestmark = pytest.mark.live

TRAVEL_S = 0.005
LEAST_NEWS = 3  # in half a second and more, where ten are due: a server that is held up for a third of it leaves some out
PATHS = {"told": "observation", "asked": "probe"}
FAULTS: dict[str, dict[str, Any]] = {
    "frozen": {"telemetry": "frozen"},
    "silent": {"telemetry": "silent"},
    "lying": {"gauge_factor": 2, "gauge_offset": 5},
    "skewed": {"clock_skew": "-200 ms", "clock_drift": "10 %"},
}


def words() -> dict[str, Any]:
    """Each fault lasts for 0.6 s, and the next one begins 0.4 s later."""
    service = {"slots": 4, "exponential": "30 ms"}
    traffic = [{"class": "c", "rate": "240 /s", "policy": "split"}]
    return {
        "name": "news",
        "duration": f"{len(FAULTS) + 0.5} s",
        "drain": "2 s",
        "seed": 3,
        "cells": {
            cell: {"servers": 2, "service": service, "leaf": {"policy": policy}}
            | {"server_reports": {"every": "50 ms"}}
            for cell, policy in (("told", "reported"), ("asked", "prequal"))
        },
        "roots": {"r": {"traffic": traffic}},
        "classes": {"c": {"timeout": "1 s"}},
        "policies": {
            "split": {"kind": "weighted", "draw": "request"},
            "reported": {"kind": "least_cost", "cost": "in_flight"},
            "prequal": {"kind": "prequal"},
        },
        "links": [{"from": "*", "to": "*", "delay": f"{TRAVEL_S * 1000:g} ms"}],
        "faults": [
            {"at": f"{0.5 + number} s", "for": "600 ms", "server": f"{cell}/server-1", "set": keys}
            for number, keys in enumerate(FAULTS.values())
            for cell in PATHS
        ],
        "records": {"decisions": "0 %"},
    }


@pytest.fixture(scope="module", params=["virtual", "live"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> VirtualRun:
    """The same scenario in each engine."""
    folder = ArmFolder(tmp_path_factory.mktemp("news") / request.param)
    scenario = scenario_from_text(yaml.safe_dump(words(), sort_keys=False)).arms["main"]
    run_arm(folder, scenario, request.param, silent)
    return VirtualRun(scenario, read_tables(folder.tables), load_outcome(folder.outcome), folder)


def heard(run: VirtualRun, cell: str, number: int) -> dict[str, Any]:
    """What a leaf heard of a server of its cell, with the true instants of measurement."""
    news = run.tables["news"]
    mine = news["server"] == f"{cell}/server-{number}"
    assert set(news["path"][mine].tolist()) == {PATHS[cell]}
    rows = {name: column[mine] for name, column in news.items()}
    return {**rows, "true_at_s": rows["measured_at_s"] - rows["clock_error_s"]}


def span(run: VirtualRun, fault: str, cell: str) -> tuple[float, float]:
    """From when the first server of a cell had a fault until it was to heal."""
    return recorded(run, fault, cell, "applied_at_s"), recorded(run, fault, cell, "heal_planned_at_s")


def recorded(run: VirtualRun, fault: str, cell: str, column: str) -> float:
    """What the table of faults says of a fault of the first server of a cell."""
    faults = run.tables["faults"]
    number = len(PATHS) * list(FAULTS).index(fault) + list(PATHS).index(cell)
    assert faults["target"][number] == f"server {cell}/server-1"
    return float(faults[column][number])


def within(rows: dict[str, Any], from_s: float, until_s: float) -> dict[str, Any]:
    """Those of the rows that were measured in a span of time."""
    inside = (rows["true_at_s"] > from_s) & (rows["true_at_s"] < until_s)
    return {name: column[inside] for name, column in rows.items()}


def open_at(run: VirtualRun, server: str, at_s: Any) -> tuple[Any, Any]:
    """At each instant: requests that had come to a server before and were not served, and all that had come to it."""
    requests = run.tables["requests"]
    mine = requests["server"] == server
    entered, left = (np.sort(requests[name][mine]) for name in ("at_server_s", "finished_at_s"))
    gone = np.searchsorted(left, at_s, side="right")
    return np.searchsorted(entered, at_s, side="left") - gone, np.searchsorted(entered, at_s, side="right")


@pytest.mark.parametrize("cell", PATHS)
def test_a_frozen_server_repeats_what_it_last_told_under_fresh_stamps(run: VirtualRun, cell: str) -> None:
    """While the other one goes on telling what it has; once it has healed it tells other things, never less than is true."""
    at_s, until_s = span(run, "frozen", cell)
    frozen, other = heard(run, cell, 1), within(heard(run, cell, 2), at_s, until_s)
    before = frozen["in_flight"][frozen["true_at_s"] <= at_s]

    told = within(frozen, at_s, until_s)
    thawed = within(frozen, recorded(run, "frozen", cell, "healed_at_s"), span(run, "lying", cell)[0])

    assert len(told["in_flight"]) > LEAST_NEWS
    assert (told["in_flight"] == before[-1]).all()
    assert (np.diff(told["measured_at_s"]) > 0).all()
    assert len(set(other["in_flight"].tolist())) > 1
    assert (thawed["in_flight"] != before[-1]).any()
    assert (thawed["in_flight"] >= open_at(run, f"{cell}/server-1", thawed["true_at_s"])[0]).all()


@pytest.mark.parametrize("cell", PATHS)
def test_a_silent_server_tells_nothing_until_it_heals(run: VirtualRun, cell: str) -> None:
    """It goes on serving: the leaf has sent it requests, and it answers them."""
    at_s, until_s = span(run, "silent", cell)
    rows, requests = heard(run, cell, 1), run.tables["requests"]

    assert len(within(rows, at_s, until_s)["in_flight"]) == 0
    assert len(within(heard(run, cell, 2), at_s, until_s)["in_flight"]) > LEAST_NEWS
    assert len(within(rows, recorded(run, "silent", cell, "healed_at_s"), math.inf)["in_flight"]) > 0
    finished = requests["finished_at_s"][requests["server"] == f"{cell}/server-1"]
    assert ((finished > at_s) & (finished < until_s)).sum() > 0


@pytest.mark.parametrize("cell", PATHS)
def test_the_gauges_of_a_server_lie_by_their_factor_and_offset(run: VirtualRun, cell: str) -> None:
    """Twice what it has and five more; outside the fault, and of the other server, the truth.

    Between processes an answer to a probe also counts what is served but not answered yet, of which the records have no instant.
    """
    at_s, until_s = span(run, "lying", cell)
    exact = cell == "told" or run.outcome.engine == "virtual"
    for number, from_s, to_s, factor, offset in (
        (1, at_s, until_s, 2, 5),
        (1, 0.0, span(run, "frozen", cell)[0], 1, 0),
        (2, 0.0, at_s, 1, 0),
        (2, at_s, until_s, 1, 0),
    ):
        rows = within(heard(run, cell, number), from_s, to_s)
        least, entered = open_at(run, f"{cell}/server-{number}", rows["true_at_s"])
        counted, rest = np.divmod(rows["in_flight"] - offset, factor)
        assert len(rows["in_flight"]) > LEAST_NEWS
        assert (rest == 0).all()
        assert (counted >= least).all()
        assert (counted <= entered).all()
        assert not exact or (counted <= least + 1).all()
        assert len(set(counted.tolist())) > 1


@pytest.mark.parametrize("cell", PATHS)
def test_a_clock_that_is_off_changes_the_claimed_stamps_and_the_records_keep_the_true_ones(
    run: VirtualRun, cell: str
) -> None:
    """-200 ms at the onset, and a tenth of a second more each second; nothing is heard before it was measured."""
    at_s, until_s = span(run, "skewed", cell)
    rows = heard(run, cell, 1)

    off = within(rows, at_s, until_s)

    assert len(off["in_flight"]) > LEAST_NEWS
    assert off["clock_error_s"] == pytest.approx(-0.2 + 0.1 * (off["true_at_s"] - at_s), abs=1e-6)
    assert (within(rows, 0.0, at_s)["clock_error_s"] == 0).all()
    assert (heard(run, cell, 2)["clock_error_s"] == 0).all()
    travel_s = rows["received_at_s"] - rows["true_at_s"]
    assert travel_s.min() > TRAVEL_S - 1e-9
    assert run.outcome.engine == "live" or travel_s == pytest.approx(TRAVEL_S)


def test_all_is_acknowledged_and_accounted_for(run: VirtualRun) -> None:
    faults, topology = run.tables["faults"], build_topology(run.scenario)
    assert (faults["nodes_applied"] == faults["nodes_expected"]).all()
    assert (faults["nodes_healed"] == faults["nodes_expected"]).all()
    assert [line for line in run.outcome.ledger if line.gap] == []
    laws = all_laws(run.scenario, topology, run.tables, ended_s(run.scenario, run.outcome))
    assert [law for law in laws if not law.holds] == []
