"""Faults of what servers tell: a word where nobody listens, and none where somebody does."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from testbed.scenario.load import scenario_from_text
from testbed.scenario.topology import build_topology
from testbed.theory.fault_cautions import fault_cautions
from tests.laws.test_node_faults import words

FROZEN = {"telemetry": "frozen"}
SILENT = {"telemetry": "silent"}
CLOCK = {"clock_skew": "5 ms"}
CHECKED = {"policy": "idlest", "health_checks": {"every": "1 s"}}


def warnings(*faults: dict[str, Any], leaf: dict[str, Any]) -> list[str]:
    """Of a scenario with these faults, and such leaves in cell a; those of cell b read reports."""
    given = words(*faults)
    given["cells"] = {
        "a": {**given["cells"]["a"], "leaf": leaf},
        "b": {**given["cells"]["b"], "leaf": {"policy": "reported"}},
    }
    scenario = scenario_from_text(yaml.safe_dump(given)).arms["main"]
    return list(fault_cautions(scenario, build_topology(scenario)))


def of(target: str, setting: dict[str, Any]) -> dict[str, Any]:
    """A fault of a server, or of a cell."""
    return {"at": "1 s", "server" if "/" in target else "cell": target, "set": setting}


@pytest.mark.parametrize("setting", [FROZEN, SILENT, CLOCK, {"gauge_factor": 2.0}, {"gauge_offset": -1.0}])
def test_what_no_leaf_hears_is_warned_of(setting: dict[str, Any]) -> None:
    """Leaves that go by their own counts alone."""
    (key,) = setting

    assert warnings(of("*/server-1", setting), leaf={"policy": "idlest"}) == [
        f"the fault of server */server-1 sets {key} to no effect in a: its leaves read no reports of their servers,"
        " and ask them nothing that this would change"
    ]


@pytest.mark.parametrize("policy", ["reported", "prequal", "jiq"])
def test_what_reports_and_probes_tell_is_not(policy: str) -> None:
    faults = [of("a/server-1", setting) for setting in (FROZEN, SILENT, CLOCK)]

    assert warnings(*faults, leaf={"policy": policy}) == []


def test_health_checks_hear_silence_alone() -> None:
    """They count answers, not what those say."""
    assert warnings(of("a/server-1", SILENT), leaf=CHECKED) == []
    assert len(warnings(of("a/server-1", FROZEN), leaf=CHECKED)) == 1
    assert len(warnings(of("a/server-1", CLOCK), leaf=CHECKED)) == 1


def test_faults_of_work_and_of_what_leaves_tell_are_not() -> None:
    """A cell's news is that of its leaves."""
    faults = [of("a/server-1", {"speed": 0.5}), of("a", FROZEN), of("b/server-1", FROZEN)]

    assert warnings(*faults, leaf={"policy": "idlest"}) == []


def test_the_kinds_of_random_faults_are_looked_at() -> None:
    kind = {"server": "a/server-1", "set": {**FROZEN, "speed": 0.5}, "for": "1 s"}
    fault = {"random": {"rate": "1 /s", "kinds": [kind]}}

    (said,) = warnings(fault, leaf={"policy": "idlest"})

    assert "sets telemetry to no effect in a" in said
