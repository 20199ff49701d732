"""Weighted round robin by queries over utilisation: servers that do more with less of their time get more.

    weight = q / u * (share of requests that ended well)

with q the requests that a server finished per second and u the share of its time that it was busy, both from what its
reports count since the run began, smoothed by an exponential average over time. Balancing so makes utilisations
equal. (By requests received instead, a server that falls behind would be sent more.) A server that has reported no load
yet has the mean weight of the others.

Source: the rule `WeightedRR` of Wydrowski et al., Prequal (NSDI 2024), sections 2 and 5.2.
"""

from __future__ import annotations

import math
import random

from testbed.draw import key_base, uniform
from testbed.roles.messages import Outcome, Report, Request
from testbed.routing.success import Success
from testbed.routing.view import Target, View
from testbed.routing.weighted import Chance, LowDiscrepancy, Sampler
from testbed.scenario.policy_words import WeightedUtilisationPolicy


class Usage:
    """What the reports of one server say of its rate and its utilisation, smoothed."""

    __slots__ = ("_last", "_memory_s", "busy_fraction", "rate_per_s")

    def __init__(self, memory_s: float) -> None:
        """Nothing is known; what is `memory_s` old will count 1/e."""
        self._memory_s = memory_s
        self._last: Report | None = None
        self.rate_per_s = 0.0
        self.busy_fraction = 0.0

    def add(self, report: Report) -> None:
        """The next report; what passed since the one before it is averaged in."""
        last, self._last = self._last, report
        if last is None or report.measured_at_s <= last.measured_at_s:
            return
        passed_s = report.measured_at_s - last.measured_at_s
        finished = _finished(report) - _finished(last)
        fade = math.exp(-passed_s / self._memory_s)
        self.rate_per_s = fade * self.rate_per_s + (1 - fade) * finished / passed_s
        self.busy_fraction = fade * self.busy_fraction + (1 - fade) * (report.busy_s - last.busy_s) / passed_s


def _finished(report: Report) -> int:
    """Requests that the server has finished since the run began."""
    return report.arrivals - report.queued - report.running


class WeightedUtilisation:
    """Shares by queries over utilisation, drawn up anew every so often."""

    def __init__(self, spec: WeightedUtilisationPolicy, targets: int, sampler: Sampler) -> None:
        """Even shares, until there are reports."""
        self._every_s = spec.every
        self._sampler = sampler
        self._usage = [Usage(spec.memory) for _ in range(targets)]
        self._success = Success()
        self._allowed: tuple[Target, ...] | None = None
        self._due_at_s = 0.0

    def choose(self, view: View, request: Request, rng: random.Random) -> Target | None:
        """As the sampler picks."""
        if not view.allowed:
            return None
        if view.allowed is not self._allowed or view.now_s >= self._due_at_s:
            self._allowed = view.allowed
            self._due_at_s = view.now_s + self._every_s
            self._sampler.set_shares(self.shares(view))
        return view.targets[self._sampler.pick(request, rng)]

    def on_report(self, view: View, target: Target) -> None:
        """A server's counts are known up to now."""
        self._usage[target.index].add(target.reports[target.name])

    def on_reply(self, target: Target, sojourn_s: float, outcome: Outcome) -> None:
        """Remember how it ended."""
        self._success.on_reply(target, outcome)

    def shares(self, view: View) -> list[float]:
        """Of all targets, in the order of their indices; of those that are not allowed exactly 0."""
        known = {
            target.index: usage.rate_per_s / usage.busy_fraction
            for target in view.allowed
            if (usage := self._usage[target.index]).busy_fraction > 0 and usage.rate_per_s > 0
        }
        mean = sum(known.values()) / len(known) if known else 1.0
        weights = [0.0] * len(view.targets)
        for target in view.allowed:
            weights[target.index] = known.get(target.index, mean) * self._success.fraction(target)
        total = sum(weights)
        return [weight / total for weight in weights]


def build_utilisation(
    spec: WeightedUtilisationPolicy, view: View, seed: int, node: str
) -> WeightedUtilisation:
    """The policy of a scenario; leaves that share servers start at different points of the round."""
    count = len(view.targets)
    base = key_base(seed, node, "weighted_utilisation")
    drawn = [uniform(base, index) for index in range(count)]
    credits = [each - sum(drawn) / count for each in drawn]  # what is owed adds up to nothing
    sampler: Sampler = LowDiscrepancy(count, credits) if spec.draw == "low_discrepancy" else Chance()
    return WeightedUtilisation(spec, count, sampler)
