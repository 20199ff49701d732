"""Which rates are tried, and what it takes for one to be carried; on runs made up."""

from __future__ import annotations

import pytest

from testbed.benchmark.figure import Figure
from testbed.benchmark.scenes import Ran
from testbed.benchmark.throughput import carried
from testbed.record.outcome import LedgerLine, RunOutcome
from tests.benchmark.made_run import made_run

GAP = LedgerLine("root.load", "a/leaf-1", "request", 10, 0, {}, 9, 0)
LATE = made_run(late_ms=2.5, verdict="invalid")


def figures(at: dict[int, Ran]) -> dict[str, Figure]:
    """With runs as given at these rates, and in order at all others."""
    found = carried(False, run_at=lambda rate, _: at.get(rate, made_run()), pipeline_per_s=lambda _: 80_000.0)
    return {each.name: each for each in found}


def best(at: dict[int, Ran]) -> float:
    return figures(at)["requests/s carried: all answered, p99 up to 2 ms on every link"].value


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (made_run(completed=999), "not answered: 1"),
        (made_run(outcome=RunOutcome("live", "actual", 10.0, True, ledger=(GAP,))), "gaps in the ledger: 1"),
        (made_run(late_ms=2.1, verdict="suspect"), ""),
        (made_run(late_ms=None), ""),
        (made_run(verdict="invalid"), "invalid"),
        (made_run(verdict="incomplete"), "incomplete"),
    ],
)
def test_a_rate_is_carried_where_all_is_answered_accounted_for_and_in_time(run: Ran, said: str) -> None:
    assert best({40_000: run}) == 30_000
    assert said in figures({40_000: run})["40000 requests/s: lateness p99 of the worst link"].how


def test_a_suspect_run_carries_its_rate() -> None:
    assert best({40_000: made_run(verdict="suspect", late_ms=1.5)}) == 40_000


def test_the_rate_of_the_aim_is_measured_whatever_became_of_the_rates_below() -> None:
    found = figures({5_000: LATE, 10_000: LATE})

    assert "20000 requests/s: processor time a request" in found
    assert best({5_000: LATE, 10_000: LATE}) == 40_000


def test_no_higher_rate_is_tried_where_that_of_the_aim_was_not_carried() -> None:
    assert not [name for name in figures({20_000: LATE}) if name.startswith(("30000", "40000"))]
    assert best({20_000: LATE}) == 10_000


def test_aims_are_those_of_the_rate_that_they_are_stated_for() -> None:
    with_aim = {name for name, each in figures({}).items() if each.reached is not None}

    assert with_aim == {
        "20000 requests/s: lateness p99 of the worst link",
        "20000 requests/s: not answered",
        "20000 requests/s: processor time a request",
        "requests/s carried: all answered, p99 up to 2 ms on every link",
        "carried, of the bare pipeline",
    }
    assert figures({20_000: made_run(completed=999)})["20000 requests/s: not answered"].reached is False
