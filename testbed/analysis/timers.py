"""How late the timer of each process was while it waited for the start, wall time.

It tells of a slow host before any message does: a process that is not woken in time can hand over nothing in time. The
waits of a process are few, so it counts as late when its p99 is so with 95 % confidence, as for links.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from testbed.analysis.lateness import p99_low_s
from testbed.analysis.limits import SUSPECT_FRACTION, Finding, Limit
from testbed.analysis.reason import reason
from testbed.analysis.records import Table, row_count
from testbed.scenario.quantity import format_s

LEAST_WAITS = 20  # of fewer, nothing is said


class Timer(NamedTuple):
    """Of one process, wall seconds."""

    process: str
    waits: int
    p50_s: float
    p99_s: float
    p99_low_s: float  # the p99 is at least this, with 95 % confidence


def timers_of(table: Table) -> list[Timer]:
    """One entry per process that timed enough waits, from the table `timers`."""
    if not row_count(table):
        return []
    columns = ("node", "waits", "lateness_s_p50", "lateness_s_p99")
    rows = zip(*(table[column].tolist() for column in columns), table["lateness_bins"], strict=True)
    return [
        Timer(process, waits, p50_s, p99_s, min(p99_low_s(bins), p99_s))
        for process, waits, p50_s, p99_s, bins in rows
        if waits >= LEAST_WAITS
    ]


def latest_timer(timers: list[Timer]) -> Timer | None:
    """The one whose p99 is surely the largest."""
    return max(timers, key=lambda each: (each.p99_low_s, each.p99_s), default=None)


def timer_findings(timers: list[Timer], limit: Limit, time_scale: float) -> Iterator[Finding]:
    """The process that was woken latest, if later than the limit: `suspect`, since no message was late yet."""
    worst = latest_timer(timers)
    if worst is None or not worst.p99_low_s > limit.at(time_scale):
        return
    late = sum(each.p99_low_s > limit.at(time_scale) for each in timers)
    more = f" ({late - 1} more processes)" if late > 1 else ""
    yield Finding(
        "suspect",
        reason(
            "timers",
            f"p99 {format_s(worst.p99_s)} late at {worst.process}",
            process="",  # its own name
            when=f"over {worst.waits} waits before the start",
            limit=f"{format_s(limit.at(time_scale))}{more}",
            advice="try fewer processes or an idle host",
        ),
        "timers",
        limit.least_scale(SUSPECT_FRACTION * worst.p99_low_s, time_scale),
    )


def timer_figures(timers: list[Timer]) -> dict[str, float | str]:
    """The latest process's percentiles and its name."""
    worst = latest_timer(timers)
    if worst is None:
        return {"p50": math.nan, "p99": math.nan, "process": ""}
    return {"p50": worst.p50_s, "p99": worst.p99_s, "process": worst.process}
