"""What a run prints of its arms: reasons are words of others, and stand as they are."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from testbed.analysis.summary import summarize_arm, summarize_run
from testbed.console.summary_table import print_summary
from testbed.record.outcome import Death
from tests.analysis.made_arms import made_outcome, made_scenario, made_tables, steady

SCENARIO = made_scenario()
TABLES = made_tables(SCENARIO, steady(0.4, 0.3, 0.3), rate_per_s=100.0)


def printed(**outcome: Any) -> str:
    arm = summarize_arm(SCENARIO, TABLES, made_outcome(**outcome))
    said = StringIO()
    print_summary(Console(file=said, width=200), summarize_run("herding", {"flow": arm}))
    return said.getvalue()


@pytest.mark.parametrize("last", ["[Errno 28] No space left [on device]", "bad [/x] and [red]"])
def test_a_reason_is_printed_as_it_is_whatever_brackets_it_holds(last: str) -> None:
    """The last line of a process that died may look like markup."""
    dead = Death("us/server-1", "signal 9", 3.0, f"starting\n{last}\n")

    said = printed(deaths=(dead,))

    assert said.count(f"; its last line: {last}\n") == 1
    assert "flow is incomplete: ending: us/server-1 died (signal 9), at 3.000 s of run time; " in said


def test_of_many_reasons_the_gravest_are_printed_and_the_others_counted() -> None:
    dead = tuple(Death(f"us/server-{i}", "signal 9", 3.0) for i in range(1, 6))

    said = printed(deaths=dead)

    assert said.count("flow is incomplete: ") == 3
    assert "flow: 2 more reasons, see testbed show --checks\n" in said


def test_arms_whose_roles_were_told_due_instants_are_named() -> None:
    assert "dating due, not actual: flow\n" in printed(dating="due")
    assert "dating" not in printed()
    assert "dating" not in printed(engine="virtual", dating="due")
