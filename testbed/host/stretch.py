"""The rows of table `host`: what the machine did in one stretch of a run after the other."""

from __future__ import annotations

from typing import Any

from testbed.host.counters import Counts
from testbed.host.speed import Slowness


class Stretches:
    """Makes a row of two readings of the counters, and of what was measured between them."""

    def __init__(self, cores: int, first: Counts) -> None:
        """Args:
        cores: of the machine, whose times the kernel adds up.
        first: the reading with which the first stretch begins.
        """
        self._cores = cores
        self._before = first

    def row(self, now: Counts, at_s: float, speed: Slowness, wake_late_s: float) -> tuple[Any, ...]:
        """The row of the stretch that ends with this reading; the next one begins here.

        Args:
            now: the reading.
            at_s: its instant, run time.
            speed: of the processors.
            wake_late_s: the largest time by which a process that asked to be woken was late.
        """
        before, self._before = self._before, now
        span_s = max(now.at_s - before.at_s, 1e-9)
        return (
            at_s,
            span_s,
            _share(now.pressure_s - before.pressure_s, span_s),
            (now.busy_s - before.busy_s) / span_s,
            _share(now.stolen_s - before.stolen_s, span_s * self._cores),
            now.throttled_s - before.throttled_s,
            now.throttles - before.throttles,
            now.swapped_pages - before.swapped_pages,
            now.wall_s - before.wall_s,
            speed.largest,
            speed.slow_fraction,
            wake_late_s,
        )


def _share(part_s: float, whole_s: float) -> float:
    """Of a whole; two clocks may disagree by a tick, so never more than all of it. NaN stays NaN."""
    share = part_s / whole_s
    return 1.0 if share > 1.0 else share
