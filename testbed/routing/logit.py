"""Logit choice: the cheaper a target, the likelier, and never certain."""

from __future__ import annotations

import math
import random
from bisect import bisect_right
from collections.abc import Callable
from itertools import accumulate

from testbed.roles.messages import Request
from testbed.routing.cost import cost_function
from testbed.routing.view import Target, View
from testbed.scenario.policy_words import LogitPolicy


class Logit:
    """A draw with probabilities proportional to exp(-cost / temperature) over the allowed targets.

    Softens the herd without a memory: of two like cells the loop is stable at every delay if Lambda sigma / 2 is
    at most a * temperature (theory.md section 7), sigma the slope of the cost and a the marginal service rate. The
    price is a bias: as hot as that, dear targets go on getting requests. Flow routing has no such bias, and a step
    to set instead of a temperature.

    Source: McFadden, Conditional logit analysis of qualitative choice behavior (1974); Sandholm, Population Games
    and Evolutionary Dynamics (2010), section 6.2.
    """

    def __init__(self, cost: Callable[[Target], float], temperature_s: float) -> None:
        """Compare targets by `cost` in seconds; a gap of one temperature makes the dearer e times less likely."""
        self.cost = cost
        self._temperature_s = temperature_s

    def choose(self, view: View, request: Request, rng: random.Random) -> Target | None:
        """A draw by the costs of the moment."""
        allowed = view.allowed
        if len(allowed) < 2:
            return allowed[0] if allowed else None
        costs_s = list(map(self.cost, allowed))
        least_s = min(costs_s)
        bounds = list(accumulate(math.exp((least_s - cost_s) / self._temperature_s) for cost_s in costs_s))
        return allowed[bisect_right(bounds, rng.random() * bounds[-1], 0, len(bounds) - 1)]


def build_logit(spec: LogitPolicy, view: View, output_mean: float) -> Logit:
    """The policy of a scenario."""
    return Logit(cost_function(spec.cost, spec.model, output_mean, view.count), spec.temperature)
