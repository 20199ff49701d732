"""Least latency by one's own replies."""

from __future__ import annotations

import random

from testbed.roles.messages import Outcome, Request
from testbed.routing.cost import ERROR_FRACTION_MAX
from testbed.routing.greedy import LeastCost
from testbed.routing.view import Target, View


class LeastLatency(LeastCost):
    """The allowed target whose replies took the least time of late, over the share of them that succeeded.

    Each reply moves its target's smoothed sojourn, and its smoothed share of failures, by `weight`. Targets that
    never replied count as 0 and are tried first; a share `explore` of the requests goes to a target at random, since
    one that is never chosen is never measured again. It needs no reports, and sees everything that makes a target
    slow, network included. But what a reply tells is as old as its request: the loop delay is at least one sojourn,
    so it herds even where the network takes no time. For few requests to unlike targets, not for many senders.

    Source: theory.md section 2.10; least_time of NGINX Plus, and the EWMA balancer of Finagle, are of this kind.
    """

    def __init__(self, count: int, weight: float, explore: float) -> None:
        """For so many targets; `weight` of the newest reply, `explore` the share sent at random."""
        super().__init__(self._latency_s)
        self._weight = weight
        self._explore = explore
        self._sojourns_s = [0.0] * count
        self._failures = [0.0] * count
        self._is_measured = [False] * count

    def choose(self, view: View, request: Request, rng: random.Random) -> Target | None:
        """The quickest of late, or now and then any."""
        allowed = view.allowed
        if len(allowed) > 1 and rng.random() < self._explore:
            return allowed[int(rng.random() * len(allowed))]
        return self.cheapest(allowed, rng)

    def on_reply(self, target: Target, sojourn_s: float, outcome: Outcome) -> None:
        """One more measurement."""
        index = target.index
        weight = self._weight if self._is_measured[index] else 1.0
        self._is_measured[index] = True
        self._sojourns_s[index] += weight * (sojourn_s - self._sojourns_s[index])
        failed = outcome != Outcome.COMPLETED
        self._failures[index] += self._weight * (failed - self._failures[index])

    def _latency_s(self, target: Target) -> float:
        failures = min(self._failures[target.index], ERROR_FRACTION_MAX)
        return self._sojourns_s[target.index] / (1.0 - failures)
