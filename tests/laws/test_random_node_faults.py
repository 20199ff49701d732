"""No request is forgotten, whatever is killed, stopped, drained or made to fail, and whenever."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.laws.test_node_faults import assert_books_balance, assert_no_fault_is_silent, words
from tests.laws.virtual_run import run_words

TIMELINES = int(os.environ.get("TIMELINES", "25"))  # 200 before a release
PROCESS = [{"kill": True}, {"pause": True}]
SETTINGS = {
    "cell": [*PROCESS, {"drain": True}, {"telemetry": "frozen"}, {"leak": "50 %"}, {"reset_counts": True}],
    "server": [*PROCESS, {"drain": True}, {"absent": True}, {"errors": "50 %", "error_after": "20 ms"}],
    "leaf": [*PROCESS, {"drain": True}, {"telemetry": "silent"}],
    "root": [*PROCESS, {"leak": "50 %"}, {"reset_counts": True}],
}


@st.composite
def fault_lines(draw: Any) -> dict[str, Any]:
    """One line of the timeline: somebody, something, from here to there."""
    target = draw(st.sampled_from(sorted(SETTINGS)))
    line: dict[str, Any] = {
        "at": f"{draw(st.integers(0, 900))} ms",
        target: "*",
        "pick": draw(st.sampled_from(["one", "half", "all"])),
        "set": draw(st.sampled_from(SETTINGS[target])),
    }
    if draw(st.booleans()):
        line["for"] = f"{draw(st.integers(1, 600))} ms"
    return line


def check(path: Path, lines: list[dict[str, Any]], leaf: str, seed: int) -> None:
    """Run these faults for a second; at the end every request and every message is accounted for."""
    given_words = words(*lines, leaf=leaf, duration="1 s", drain="2 s", seed=seed)

    run = run_words(path, given_words)

    assert run.outcome.drained or any("pause" in line["set"] for line in lines)
    assert_books_balance(run)
    assert_no_fault_is_silent(run)


timelines = given(
    lines=st.lists(fault_lines(), min_size=1, max_size=5),
    leaf=st.sampled_from(["idlest", "reported", "even", "prequal", "jiq"]),
    seed=st.integers(0, 1000),
)
quiet = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@timelines
@settings(max_examples=TIMELINES, deadline=None, derandomize=True, database=None, suppress_health_check=quiet)
def test_requests_are_conserved_under_random_faults_of_nodes(
    tmp_path_factory: pytest.TempPathFactory,
    counts_are_checked: list[str],
    lines: list[dict[str, Any]],
    leaf: str,
    seed: int,
) -> None:
    """Overlapping kills, restarts, pauses and drains of the same nodes among them; and no count in flight is off."""
    counts_are_checked.clear()

    check(tmp_path_factory.mktemp("run"), lines, leaf, seed)

    assert {"root.west", "root.east", "a/leaf-1", "b/leaf-1"} <= set(counts_are_checked)
