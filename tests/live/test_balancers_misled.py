"""Counts that leak and news of recovery that is lost mislead balancers by the asked amount, in both engines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import yaml
from scipy import stats

from testbed.experiment import run_arm
from testbed.record.log import read_log
from testbed.record.outcome import load_outcome
from testbed.record.read import read_tables
from testbed.record.run_folder import ArmFolder
from testbed.roles.messages import Outcome
from testbed.scenario.load import scenario_from_text
from tests.laws.test_node_faults import assert_books_balance, assert_no_fault_is_silent
from tests.laws.virtual_run import VirtualRun, silent

pytestmark = pytest.mark.live

LEAK = 0.3
STUCK = {"speed": 0.001}
CUT_S, HEALED_S = 1.4, 2.5  # of the reports; the cells that are stuck for a second are well again at 1.5 s


def words() -> dict[str, Any]:
    """Two roots have two cells each, of which one is stuck for a second; two others share a cell with a stuck server.

    News that its cell is well again is lost to root `west`. Root `north` and the leaf of cell `e` forget to count down
    part of what they give up.
    """
    fast = {"servers": 1, "service": {"slots": 4, "fixed": "5 ms"}}
    pairs = {"west": ["a", "b"], "east": ["c", "d"]}
    marked = {
        root: [
            {"class": "patient", "rate": "60 /s", "policy": "idlest", "allowed": pair},
            {"class": "patient", "policy": "even", "allowed": pair[:1]}
            | {"stages": [{"at": "0 s", "rate": "80 /s"}, {"at": "1 s", "rate": "0 /s"}]},
        ]
        for root, pair in pairs.items()
    }
    leaking = [{"class": "hasty", "rate": "80 /s", "policy": "even", "allowed": ["e"]}]
    return {
        "name": "misled",
        "duration": "4 s",
        "drain": "2 s",
        "cells": dict.fromkeys("abcd", fast) | {"e": {**fast, "servers": 2, "leaf": {"policy": "even"}}},
        "roots": {
            name: {"traffic": lines} for name, lines in {**marked, "north": leaking, "south": leaking}.items()
        },
        "classes": {"patient": {"timeout": "3 s"}, "hasty": {"timeout": "300 ms"}},
        "policies": {"even": {"kind": "random"}, "idlest": {"kind": "least_cost", "cost": "in_flight"}},
        "reports": {"every": "50 ms", "send": "on_change"},
        "links": [{"from": "*", "to": "*", "delay": "5 ms"}],
        "faults": [
            {"at": "500 ms", "for": "1 s", "cell": "[ac]", "set": STUCK},
            {"from": f"{CUT_S} s", "to": f"{HEALED_S} s", "set": {"loss": "100 %"}}
            | {"link": {"from": "cell.a", "to": "root.west", "path": "observation"}},
            {"at": "0 s", "server": "e/server-1", "set": STUCK},
            {"at": "0 s", "leaf": "e/leaf-1", "set": {"leak": f"{LEAK:.0%}"}},
            {"at": "0 s", "root": "north", "set": {"leak": f"{LEAK:.0%}"}},
        ],
        "processes": {"roots": 2, "cells": 1},
        "records": {"decisions": "0 %"},
    }


@pytest.fixture(scope="module", params=["virtual", "live"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> VirtualRun:
    """The same scenario in each engine."""
    folder = ArmFolder(tmp_path_factory.mktemp("misled") / request.param)
    scenario = scenario_from_text(yaml.safe_dump(words(), sort_keys=False)).arms["main"]
    run_arm(folder, scenario, request.param, silent)
    return VirtualRun(scenario, read_tables(folder.tables), load_outcome(folder.outcome), folder)


def test_the_asked_fraction_of_what_is_given_up_stays_counted(run: VirtualRun) -> None:
    """Of a leaf and of a root, within the interval that chance leaves once in a thousand times; of the others nothing."""
    counts, requests = run.tables["counts"], run.tables["requests"]
    leaked = dict(zip(counts["node"].tolist(), counts["miscounted"].tolist(), strict=True))
    visits = read_log(run.folder.log("e/leaf-1")).rows("visits")
    given_up = {
        "e/leaf-1": sum(row[4] == Outcome.TIMED_OUT for row in visits),
        "root.north": int(((requests["root"] == "root.north") & (requests["outcome"] == "timed_out")).sum()),
    }

    for node, count in given_up.items():
        assert count > 80
        low, high = stats.binom.interval(0.999, count, LEAK)
        assert low <= leaked[node] <= high
    assert ((requests["root"] == "root.south") & (requests["outcome"] == "timed_out")).sum() > 80
    assert {leaked[node] for node in leaked.keys() - given_up.keys()} == {0}


def test_a_lost_report_of_recovery_leaves_a_mark_that_nobody_clears(run: VirtualRun) -> None:
    """The cell has nothing new to say once it is empty, and gets nothing: long after the link has healed."""
    requests, seen = run.tables["requests"], run.tables["observations"]
    late = requests["planned_at_s"] > HEALED_S + 0.2
    believed, shares = {}, {}
    for root, cell in (("root.west", "a"), ("root.east", "c")):
        last = np.flatnonzero((seen["root"] == root) & (seen["cell"] == cell))[-1]
        believed[root] = int(seen["queued"][last] + seen["running"][last])
        mine = late & (requests["root"] == root)
        assert mine.sum() > 50
        shares[root] = (requests["cell"][mine] == cell).mean()

    assert believed["root.west"] > 20
    assert shares["root.west"] == 0.0
    assert believed["root.east"] < 10
    assert shares["root.east"] > 0.2
    there = requests["cell"] == "a"
    assert (requests["outcome"][there] == "completed").all()
    assert requests["left_leaf_s"][there].max() < HEALED_S  # it has been empty all the while
    links = run.tables["lateness"]
    cut = (
        (links["source"] == "a/leaf-1") & (links["target"] == "root.west") & (links["path"] == "observation")
    )
    assert links["dropped_loss"][cut].sum() > 0


def test_all_is_acknowledged_and_accounted_for(run: VirtualRun) -> None:
    assert_no_fault_is_silent(run)
    assert_books_balance(run)
