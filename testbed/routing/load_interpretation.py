"""Load interpretation (LI): old reports read together with the requests that must have come since."""

from __future__ import annotations

import math
import random
from bisect import bisect_right
from itertools import accumulate

from testbed.roles.messages import Request
from testbed.routing.view import Target, View

KEEP = 1 - 1 / 16  # of what was known at each report: sixteen reports tell a changed rate from noise


class LoadInterpretation:
    """Fills the targets up to one level, as water would, with the requests that come while a report is believed.

    A target reported L in flight; R requests of all senders arrive before the next news. With capacities c the level
    is h where sum max(h c - L, 0) = R. `basic` draws targets with probabilities max(h c - L, 0) / R all the while.
    `aggressive` fills the lowest first: at each decision it draws, by capacity, among those that the arrivals since
    the measurement have reached. Sharp while reports are fresh, even when they are old, without a pathology between;
    but it has to know the arrival rate, which it learns from the cumulative arrivals in the reports, and splits by
    capacity until it does. For bulletin boards: all senders see the same reports, and many of them.

    Source: Dahlin, Interpreting stale load information (IEEE TPDS 11, 2000).
    """

    def __init__(self, count: int, is_aggressive: bool) -> None:
        """For so many targets, none of which has reported."""
        self._is_aggressive = is_aggressive
        self._meters = [_Meter() for _ in range(count)]
        self._allowed: tuple[Target, ...] = ()
        self._is_stale = True
        self._turns_at_s = math.inf
        self._order: tuple[Target, ...] = ()  # allowed targets by reported level
        self._reached: list[float] = []  # arrivals that reach the second of them, the third, ...
        self._capacities: list[float] = []  # of the first, the first two, ...
        self._bounds: list[float] = []  # for the draw of `basic`
        self._rate_per_s = 0.0
        self._measured_at_s = 0.0

    def choose(self, view: View, request: Request, rng: random.Random) -> Target | None:
        """A draw by what the reports have come to mean."""
        if self._is_stale or view.allowed is not self._allowed or view.turns_at_s != self._turns_at_s:
            self._interpret(view)
        if not self._order:
            return None
        bounds = self._bounds
        last = len(bounds) - 1
        if self._is_aggressive and self._rate_per_s > 0:
            bounds = self._capacities
            last = bisect_right(self._reached, self._rate_per_s * (view.now_s - self._measured_at_s))
        return self._order[bisect_right(bounds, rng.random() * bounds[last], 0, last)]

    def on_report(self, view: View, target: Target) -> None:
        """News: count its arrivals, and think again before the next choice."""
        self._meters[target.index].take(target)
        self._is_stale = True

    def _interpret(self, view: View) -> None:
        """Work out for the reports of now in which order targets fill, and the shares of `basic`."""
        self._allowed, self._turns_at_s, self._is_stale = view.allowed, view.turns_at_s, False
        loads = {target: view.count(target) for target in view.allowed}
        levels = {target: load / target.divisor_per_s for target, load in loads.items()}
        self._order = tuple(sorted(loads, key=levels.__getitem__))
        if not self._order:
            return
        self._capacities = list(accumulate(target.divisor_per_s for target in self._order))
        filled = list(accumulate(loads[target] for target in self._order))
        self._reached = [
            levels[target] * capacity - load
            for target, capacity, load in zip(self._order[1:], self._capacities, filled, strict=False)
        ]
        arrivals = self._expected(view)
        if arrivals == 0:
            self._bounds = self._capacities
            return
        last = bisect_right(self._reached, arrivals)
        level_s = (arrivals + filled[last]) / self._capacities[last]
        raised = (level_s * target.divisor_per_s - loads[target] for target in self._order[: last + 1])
        self._bounds = list(accumulate(raised))

    def _expected(self, view: View) -> float:
        """Requests of all senders from a report's measurement until the next one comes; 0 while unknown."""
        heard = [
            (target, meter)
            for target, meter in zip(view.targets, self._meters, strict=True)
            if meter.rate_per_s > 0
        ]
        if not heard:
            return 0.0
        self._rate_per_s = sum(meter.rate_per_s for _, meter in heard)
        self._measured_at_s = sum(target.measured_at_s for target, _ in heard) / len(heard)
        believed_s = sum(
            meter.period_s + target.received_at_s - target.measured_at_s for target, meter in heard
        )
        return self._rate_per_s * believed_s / len(heard)


class _Meter:
    """Arrivals and reports of one target over its last reports."""

    def __init__(self) -> None:
        self._measured_at_s = math.nan
        self._arrivals = 0
        self._reports = self._counted = self._over_s = 0.0  # with forgetting

    @property
    def rate_per_s(self) -> float:
        """Requests per second that reach the target; 0 while unknown."""
        return self._counted / self._over_s if self._over_s else 0.0

    @property
    def period_s(self) -> float:
        """Mean time between two reports."""
        return self._over_s / self._reports

    def take(self, target: Target) -> None:
        """Count what is new since the last report; a count that fell (a restart) or an old one starts afresh."""
        elapsed_s = target.measured_at_s - self._measured_at_s
        arrived = target.arrivals - self._arrivals
        if elapsed_s == 0.0:
            return  # one of several reporters; the others' news of this instant are still to come
        if elapsed_s > 0.0 and arrived >= 0:
            self._reports = KEEP * self._reports + 1.0
            self._counted = KEEP * self._counted + arrived
            self._over_s = KEEP * self._over_s + elapsed_s
        self._measured_at_s = target.measured_at_s
        self._arrivals = target.arrivals
