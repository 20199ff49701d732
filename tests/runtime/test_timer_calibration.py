"""Timing waits before the start, with a clock that moves only while they wait."""

from __future__ import annotations

import math

import pytest

from testbed.links.lateness import BIN_COUNT
from testbed.runtime.timer_calibration import FREE_S, LEAST_WAIT_S, MOST_WAITS, time_waits, timer_row


class LateClock:
    """Wakes who sleeps so much too late, in turn."""

    def __init__(self, *late_s: float) -> None:
        self.now_s = 100.0
        self._late_s = late_s
        self.slept = 0

    def __call__(self) -> float:
        return self.now_s

    def sleep_until(self, at_s: float) -> None:
        self.now_s = at_s + self._late_s[self.slept % len(self._late_s)]
        self.slept += 1


def timed(clock: LateClock, for_s: float) -> list[float]:
    return time_waits(clock.sleep_until, clock.now_s + for_s, clock)


def test_waits_fill_the_time_before_the_start_and_leave_its_end_free() -> None:
    clock = LateClock(0.0)

    late_s = timed(clock, 0.22)

    assert len(late_s) in (MOST_WAITS - 1, MOST_WAITS)  # the last one by the rounding of the clock
    assert 100.22 - FREE_S - 0.006 < clock.now_s <= 100.22 - FREE_S + 1e-9


def test_the_lateness_of_each_wait_is_told() -> None:
    assert timed(LateClock(0.0, 0.0001, 0.002), 0.3)[:6] == pytest.approx([0.0, 0.0001, 0.002] * 2)


@pytest.mark.parametrize("for_s", [-1.0, 0.0, FREE_S, FREE_S + 0.9 * LEAST_WAIT_S])
def test_without_time_before_the_start_there_is_no_wait(for_s: float) -> None:
    clock = LateClock(0.0)

    assert timed(clock, for_s) == []
    assert clock.slept == 0


@pytest.mark.parametrize("late_s", [0.0, 0.001, 0.01, 0.09])
def test_no_wait_is_begun_that_would_end_after_the_start(late_s: float) -> None:
    """However late the host is, only the lateness of a single wait may reach into the time that is left free."""
    clock = LateClock(late_s)

    timed(clock, 0.3)

    assert clock.now_s <= 100.3 - FREE_S + late_s + 1e-9
    assert clock.slept >= 1


def test_a_row_has_percentiles_up_to_the_largest_and_counts_every_wait() -> None:
    process, waits, p50_s, p99_s, largest_s, bins = timer_row("root.r", [0.0001] * 36 + [0.003] * 4)

    assert (process, waits, largest_s) == ("root.r", 40, 0.003)
    assert p50_s == pytest.approx(0.0001, rel=0.05)
    assert p99_s == pytest.approx(0.003)
    assert sum(bins) == 40
    assert len(bins) == BIN_COUNT


def test_a_process_that_timed_nothing_has_no_percentiles() -> None:
    row = timer_row("root.r", [])

    assert row[1] == sum(row[5]) == 0
    assert all(math.isnan(each) for each in row[2:5])
