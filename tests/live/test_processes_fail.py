"""Faults of nodes take hold of real processes: one run with several at once, so that it is short."""

from __future__ import annotations

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
from tests.laws.test_node_faults import arrived, assert_no_fault_is_silent, fault_rows, words
from tests.laws.virtual_run import VirtualRun, silent

pytestmark = pytest.mark.live

FAULTS: tuple[dict[str, Any], ...] = (
    {"at": "500 ms", "for": "1 s", "server": "a/server-1", "set": {"kill": True}},
    {"at": "1 s", "for": "500 ms", "leaf": "b/leaf-1", "set": {"pause": True}},
    {"at": "1600 ms", "for": "400 ms", "root": "west", "set": {"kill": True}},
    {"at": "1 s", "for": "500 ms", "server": "b/server-2", "set": {"drain": True}},
    {"at": "2 s", "for": "500 ms", "server": "a/server-2", "set": {"errors": "100 %"}},
    {"at": "1200 ms", "for": "200 ms", "leaf": "b/leaf-1", "set": {"gauge_offset": 3}},
    {"at": "300 ms", "for": "700 ms", "server": "a/server-1", "set": {"speed": 0.5}},
    {"at": "800 ms", "for": "200 ms", "server": "a/server-*", "set": {"speed": 0.5}},
    {"at": "2600 ms", "root": "east", "set": {"pause": True}},
    {"at": "2800 ms", "for": "100 ms", "root": "east", "set": {"leak": "10 %"}},
    {"at": "2 s", "server": "b/server-1", "set": {"kill": True}},
)
TRAVEL_S = 0.005  # of every link
A_SERVER_DEAD, LEAF_STOPPED, ROOT_DEAD, DEAD_FOR_GOOD = 0, 1, 2, 10
STOPPED_THEN, SLOW_AT_DEATH, DEAD_THEN, STOPPED_TO_THE_END = 5, 6, 7, 9


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> VirtualRun:
    """Ten processes for three seconds."""
    folder = ArmFolder(tmp_path_factory.mktemp("run") / "main")
    given = words(*FAULTS, duration="3 s", drain="1 s")
    scenario = scenario_from_text(yaml.safe_dump(given, sort_keys=False)).arms["main"]
    run_arm(folder, scenario, "live", silent)
    return VirtualRun(scenario, read_tables(folder.tables), load_outcome(folder.outcome), folder)


def test_the_deaths_that_were_planned_leave_the_run_whole(run: VirtualRun) -> None:
    """Nobody died unplanned, every life closed its log, no ledger has a gap, and the laws hold."""
    assert run.outcome.deaths == ()
    assert run.outcome.log_problems == ()
    topology = build_topology(run.scenario)
    assert len(run.outcome.ledger) == len(topology.links)
    assert [line for line in run.outcome.ledger if line.gap] == []
    laws = all_laws(run.scenario, topology, run.tables, ended_s(run.scenario, run.outcome))
    assert [law for law in laws if not law.holds] == []


def test_every_process_acknowledges_its_faults(run: VirtualRun) -> None:
    """The fault that kills for good is healed by nobody; of the others each node says when it was done."""
    *healed, last = fault_rows(run)
    del healed[DEAD_THEN]

    for fault in healed:
        assert fault["nodes_applied"] == fault["nodes_healed"] == fault["nodes_expected"]
        assert fault["applied_at_s"] >= fault["planned_at_s"]
        assert not fault["healed_at_s"] < fault["heal_planned_at_s"]  # which of one for good is NaN
    assert last["nodes_applied"] == 2
    assert np.isnan(last["healed_at_s"])


def test_what_falls_due_while_a_process_is_stopped_or_dead_stands_in_the_records(run: VirtualRun) -> None:
    """It is made late, when the process goes on or is told to end; it heals when the next life begins; it was missed."""
    faults = fault_rows(run)

    assert_no_fault_is_silent(run)
    assert faults[STOPPED_THEN]["applied_at_s"] >= 1.5
    assert faults[STOPPED_TO_THE_END]["applied_at_s"] >= 3.0
    assert faults[SLOW_AT_DEATH]["healed_at_s"] >= 1.5
    dead = faults[DEAD_THEN]
    assert (dead["nodes_applied"], dead["nodes_healed"], dead["nodes_missed"]) == (1, 1, 1)


def test_who_is_dead_serves_nobody_and_who_is_back_serves_again(run: VirtualRun) -> None:
    """A server that died and came back, and one that did not; each life has a log of its own."""
    faults = fault_rows(run)
    died_s, died_for_good_s = (faults[each]["applied_at_s"] for each in (A_SERVER_DEAD, DEAD_FOR_GOOD))

    assert arrived(run, "server", "a/server-1", "at_server_s", died_s, 1.5) == 0
    assert arrived(run, "server", "a/server-1", "at_server_s", 1.5, 4.0) > 10
    assert arrived(run, "server", "b/server-1", "at_server_s", died_for_good_s, 9.0) == 0
    names = {path.name for path in run.folder.logs.iterdir()}
    assert {"a_server-1.log", "a_server-1.2.log", "root.west.2.log"} <= names
    assert "b_server-1.2.log" not in names


def test_a_stopped_leaf_hears_a_burst_when_it_goes_on(run: VirtualRun) -> None:
    """What was sent to it over half a second is received together."""
    stopped_s, requests = fault_rows(run)[LEAF_STOPPED]["applied_at_s"], run.tables["requests"]
    sent_s, came_s = requests["sent_at_s"], requests["at_leaf_s"]

    held = (requests["cell"] == "b") & (sent_s > stopped_s) & (sent_s < 1.5 - TRAVEL_S) & np.isfinite(came_s)

    assert arrived(run, "leaf", "b/leaf-1", "at_leaf_s", stopped_s, 1.5) == 0
    assert held.sum() > 10
    assert (came_s[held] >= 1.5).all()
    assert np.ptp(came_s[held]) < np.ptp(sent_s[held]) / 2


def test_what_arrives_at_a_dead_root_is_lost(run: VirtualRun) -> None:
    """Its clients have nobody to ask until it is born again, when it has been forked and has greeted its peers."""
    requests, fault = run.tables["requests"], fault_rows(run)[ROOT_DEAD]
    west = requests["root"] == "root.west"
    meanwhile = west & (requests["planned_at_s"] > fault["applied_at_s"]) & (requests["planned_at_s"] < 2.0)
    later = west & (requests["planned_at_s"] > fault["healed_at_s"])
    assert meanwhile.sum() > 5
    assert (requests["outcome"][meanwhile] == "lost").all()
    assert later.sum() > 0
    assert (requests["outcome"][later] != "lost").all()
