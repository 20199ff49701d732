"""A policy that is bad on purpose."""

from __future__ import annotations

import random

from testbed.roles.messages import Request
from testbed.routing.greedy import LeastCost
from testbed.routing.view import Target, View


class Worst(LeastCost):
    """The allowed target of highest believed cost: to the busiest, which thereby stays the busiest.

    To see that measures and alarms tell bad routing from good, and how bad it can get; for nothing else. The first
    in the scenario among equals.

    Source: the reverse of `least_cost`.
    """

    def choose(self, view: View, request: Request, rng: random.Random) -> Target | None:
        """The dearest as the view has it."""
        return max(view.allowed, key=self.cost) if view.allowed else None
