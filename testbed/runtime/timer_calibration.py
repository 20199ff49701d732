"""How late the timer of a process wakes it, as it finds while it waits for the common start."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from testbed.links.lateness import BIN_COUNT, bin_of, percentile_s

MOST_WAITS = 40
LEAST_WAIT_S = 0.001  # shorter waits would keep a core busy that others need to get ready
FREE_S = 0.02  # before the start, in which nothing is timed: a late wake-up is not to delay it


def time_waits(
    sleep_until: Callable[[float], None], start_s: float, clock: Callable[[], float] = time.monotonic
) -> list[float]:
    """By how much waits were too long, seconds: up to 40 of equal length that fill the time before the start.

    Args:
        sleep_until: waits for an instant of the clock.
        start_s: that instant at which the run begins; none where hardly any time is left until then.
        clock: seconds.
    """
    last_s = start_s - FREE_S
    wait_s = max((last_s - clock()) / MOST_WAITS, LEAST_WAIT_S)
    late_s: list[float] = []
    while len(late_s) < MOST_WAITS and (due_s := clock() + wait_s) <= last_s:
        sleep_until(due_s)
        late_s.append(clock() - due_s)
    return late_s


def timer_row(process: str, late_s: list[float]) -> tuple[Any, ...]:
    """The row of table `timers`."""
    bins = [0] * BIN_COUNT
    for each in late_s:
        bins[bin_of(each)] += 1
    largest_s = max(late_s, default=float("nan"))
    p50_s, p99_s = (min(percentile_s(bins, part), largest_s) for part in (0.5, 0.99))
    return (process, len(late_s), p50_s, p99_s, largest_s, bins)
