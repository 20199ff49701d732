"""How fast the processors run: a fixed piece of computing, timed again and again.

A virtual machine may be slowed to a tenth of its speed for a fifth of a second with no stolen time shown: its clock
goes on, and so does the time that its kernel charges to whoever runs. So what is timed is the processor time of the
piece, which waiting for a core does not lengthen. It is done once before, untimed, since a process that has slept begins
on cold caches.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

SLOW = 3.0  # times as long as usual: beyond what caches and neighbours on the same core do
LEAST_PROBES = 8  # before one can tell what is usual
WINDOW = 128  # probes, the last ones, of which the usual time is found
USUAL_PART = 0.2  # the usual time is that which a fifth of them do not exceed
_MODULUS = (1 << 256) - 189
_EXPONENT = (1 << 24) - 59


class Slowness(NamedTuple):
    """How much longer than usual the piece took in a stretch of time; NaN where nothing was timed.

    Attributes:
        largest: the longest time over the usual one.
        slow_fraction: share of the probes that took more than three times the usual.
    """

    largest: float
    slow_fraction: float


def piece() -> None:
    """The work that is timed: 10 to 20 us of multiplying large numbers."""
    pow(3, _EXPONENT, _MODULUS)


class SpeedGauge:
    """Times the piece, and compares with what was usual: the fastest usual time so far, so a long slow spell is none."""

    def __init__(
        self, clock_ns: Callable[[], int] = time.thread_time_ns, work: Callable[[], None] = piece
    ) -> None:
        """Args:
        clock_ns: of processor time.
        work: the piece.
        """
        self._clock_ns, self._work = clock_ns, work
        self._last: deque[int] = deque(maxlen=WINDOW)
        self._fresh: list[int] = []
        self._usual_ns = float("inf")

    def probe(self) -> None:
        """Do the piece twice, and time the second."""
        clock_ns, work = self._clock_ns, self._work
        work()
        began_ns = clock_ns()
        work()
        taken_ns = clock_ns() - began_ns
        self._last.append(taken_ns)
        self._fresh.append(taken_ns)

    def take(self) -> Slowness:
        """Of the probes since the last call."""
        fresh, self._fresh = self._fresh, []
        if not fresh or len(self._last) < LEAST_PROBES:
            return Slowness(float("nan"), float("nan"))
        usual_ns = sorted(self._last)[int(USUAL_PART * len(self._last))]
        self._usual_ns = max(1.0, min(self._usual_ns, usual_ns))
        ratios = [taken_ns / self._usual_ns for taken_ns in fresh]
        return Slowness(max(ratios), sum(ratio > SLOW for ratio in ratios) / len(ratios))
