"""What a balancer learns of its own loop from what it sees: how much comes in all, and how old its news is.

The rate of all roots together is that of the cumulative arrivals in the reports, over the last few seconds of
measurement; the loop delay is the age of the observation when it is used, smoothed, the time that a decision takes, and
half the measured round trip, the travel of a request. The speed that a target reports is smoothed too, over more time: where light and
heavy requests share servers, it swings with every heavy one.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from testbed.routing.view import Target, View

AGE_WEIGHT = 1 / 16  # of the newest age
SLOWNESS_WEIGHT = 1 / 64  # of the newest speed, as its inverse: service times average, rates do not
REPORTS_KEPT = 30.0  # report periods over which arrivals are counted: a rate within a few per cent
FEWEST_REPORTS = 3.0  # report periods before a rate is believed


class _Count(NamedTuple):
    """Cumulative arrivals at an instant of measurement: of all classes, and of the balancer's own class."""

    measured_at_s: float
    arrivals: int
    of_class: int


class LoopEstimate:
    """Rates and loop delays, by target; call `observe` whenever the view is used."""

    def __init__(
        self,
        count: int,
        report_every_s: float,
        arrivals_of_class: Callable[[Target], int] | None = None,
        decision_s: float = 0.0,
    ) -> None:
        """For so many targets; of a class, if it is told how to count that class's arrivals."""
        self._decision_s = decision_s
        self._kept_s = REPORTS_KEPT * report_every_s
        self._fewest_s = FEWEST_REPORTS * report_every_s
        self._of_class = arrivals_of_class or _all_arrivals
        self._counts: list[deque[_Count]] = [deque() for _ in range(count)]
        self._ages_s = [math.nan] * count
        self._travel_s = [0.0] * count
        self._slowness = [1.0] * count

    def observe(self, view: View) -> None:
        """Take in what the view knows at `view.now_s`."""
        for target in view.targets:
            measured_at_s = target.measured_at_s
            if measured_at_s != measured_at_s:
                continue
            age_s = view.now_s - measured_at_s
            known_s = self._ages_s[target.index]
            is_first = known_s != known_s
            self._ages_s[target.index] = age_s if is_first else known_s + AGE_WEIGHT * (age_s - known_s)
            self._slowness[target.index] += SLOWNESS_WEIGHT * (
                1.0 / target.speed - self._slowness[target.index]
            )
            if target.network_s == target.network_s:
                self._travel_s[target.index] = target.network_s / 2
            self._count(target)

    def loop_delay_s(self, target: Target) -> float:
        """T of a target; NaN before its first report."""
        return self._ages_s[target.index] + self._decision_s + self._travel_s[target.index]

    def speed(self, target: Target) -> float:
        """The speed of a target, a slow mean of what it reported."""
        return 1.0 / self._slowness[target.index]

    def rates_per_s(self, view: View) -> tuple[float, float]:
        """Requests per second of all roots to the allowed targets: of all classes, and of the own class.

        NaN until every one of them has reported for a while.
        """
        total = of_class = 0.0
        for target in view.allowed:
            counts = self._counts[target.index]
            span_s = counts[-1].measured_at_s - counts[0].measured_at_s if counts else 0.0
            if span_s < self._fewest_s:
                return math.nan, math.nan
            total += (counts[-1].arrivals - counts[0].arrivals) / span_s
            of_class += (counts[-1].of_class - counts[0].of_class) / span_s
        return total, of_class

    def _count(self, target: Target) -> None:
        counts = self._counts[target.index]
        if counts and target.measured_at_s <= counts[-1].measured_at_s:
            return
        counts.append(_Count(target.measured_at_s, target.arrivals, self._of_class(target)))
        # the count just outside is kept, so that the span is not shorter than it should be
        while len(counts) > 2 and counts[1].measured_at_s < target.measured_at_s - self._kept_s:
            counts.popleft()


def _all_arrivals(target: Target) -> int:
    return target.arrivals
