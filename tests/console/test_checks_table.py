"""What `show --checks` prints, of summaries made up and of the machine's own words."""

from __future__ import annotations

from io import StringIO
from typing import Any

import numpy as np
from rich.console import Console

from testbed.analysis.summary import summarize_arm, summarize_run
from testbed.console.checks_table import print_checks
from testbed.record.outcome import RunOutcome
from tests.analysis.made_arms import made_lateness, made_outcome, made_scenario, made_tables, steady
from tests.analysis.test_host import made_host
from tests.analysis.test_timers import made_timers

SCENARIO = made_scenario()
TABLES = made_tables(SCENARIO, steady(0.4, 0.3, 0.3), rate_per_s=100.0)


def printed(outcome: RunOutcome | None = None, **tables: Any) -> str:
    arm = summarize_arm(SCENARIO, {**TABLES, **tables}, outcome or made_outcome())
    said = StringIO()
    print_checks(Console(file=said, width=200), summarize_run("herding", {"flow": arm}))
    return said.getvalue()


def lines_with(said: str, *words: str) -> list[str]:
    return [line for line in said.splitlines() if all(word in line for word in words)]


def test_every_check_has_a_line_with_its_word_and_every_reason_stands_below() -> None:
    said = printed(lateness=made_lateness(SCENARIO, 0.0021), host=made_host(slowdown={3: 8.0}))

    assert lines_with(said, "release lateness", "invalid")
    assert lines_with(said, "generator slip", "valid")
    assert lines_with(said, "flow: release lateness: p99 2.1 ms on root.west")
    (machine,) = lines_with(said, "flow: the machine: CPU pressure 0.0%")
    assert "1 slow spells of the processors" in machine
    assert "at worst at 1/8 of their speed" in machine


def test_the_process_that_was_woken_latest_is_named() -> None:
    said = printed(timers=made_timers(prompt=[1e-4] * 40, slow=[0.0004] * 40))

    assert lines_with(
        said, "flow: timers before the start: p50", "p99 400 us late at slow, the latest process"
    )
    assert lines_with(said, " timers ", "valid")


def test_delays_stand_beside_what_was_asked() -> None:
    (row,) = lines_with(printed(), "root.west -> us/leaf-1 (request)")

    assert row.split()[-6:] == ["20", "ms"] * 3  # p50 and p99 to the end, both as asked


def test_a_run_that_nobody_watched_says_so_and_a_virtual_one_is_not_asked() -> None:
    assert "the machine was not watched" in printed()
    virtual = printed(made_outcome(engine="virtual"))
    assert lines_with(virtual, "release lateness", "not asked")
    assert "the machine" not in virtual


def test_a_live_run_tells_what_its_roles_took_for_now_and_how_many_messages_came_too_late_to_be_held() -> (
    None
):
    lateness = made_lateness(SCENARIO)
    counted = {**lateness, "inversions": np.full(len(lateness["delivered"]), 2)}

    said = printed(made_outcome(dating="due"), lateness=counted)

    assert lines_with(
        said, "flow: dating due; 54 inversions (messages that reached their process after their release)"
    )
    assert lines_with(printed(), "flow: dating actual")
    assert "dating" not in printed(made_outcome(engine="virtual"))
