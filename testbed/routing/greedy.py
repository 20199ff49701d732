"""Discrete choices that keep no more memory than whose turn it is: random, round robin, least cost, two choices.

Each returns None when no target is allowed, and the only target, without a draw, when one is.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Callable, Sequence
from operator import attrgetter

from testbed.roles.messages import Request
from testbed.routing.cost import cost_function
from testbed.routing.view import Target, View
from testbed.scenario.policy_words import CostPolicy, LeastCostPolicy, TwoChoicesPolicy

BY_INDEX = attrgetter("index")


class RandomChoice:
    """Each allowed target with the same probability."""

    def choose(self, view: View, request: Request, rng: random.Random) -> Target | None:
        """A uniform draw."""
        allowed = view.allowed
        if len(allowed) < 2:
            return allowed[0] if allowed else None
        return allowed[int(rng.random() * len(allowed))]


class RoundRobin:
    """The allowed targets in turn, in the order of the scenario."""

    def __init__(self, last: int = -1) -> None:
        """The first in turn is the first of the scenario, or the one after the target of this index."""
        self._last = last  # index of the last choice: it stays true when the allowed targets change

    def choose(self, view: View, request: Request, rng: random.Random) -> Target | None:
        """The next one."""
        allowed = view.allowed
        if not allowed:
            return None
        chosen = _first_after(allowed, self._last, rng)
        self._last = chosen.index
        return chosen


class LeastCost:
    """The allowed target of least believed cost.

    Ties: `rotated` takes the first of the tied after the last choice, cyclically (the default); `random` one of
    them with equal probability; `first` the first in the order of the scenario.
    """

    def __init__(self, cost: Callable[[Target], float], ties: str = "rotated", last: int = -1) -> None:
        """Compare targets by `cost`; `last` is the index of the target that is taken to have been chosen before."""
        self.cost = cost
        self._pick_tied = TIES[ties]
        self._last = last

    def choose(self, view: View, request: Request, rng: random.Random) -> Target | None:
        """The cheapest as the view has it."""
        return self.cheapest(view.allowed, rng)

    def cheapest(self, candidates: Sequence[Target], rng: random.Random) -> Target | None:
        """The cheapest of these, which are in the order of their indices."""
        if len(candidates) < 2:
            return candidates[0] if candidates else None
        cost_of = self.cost
        tied = [chosen := candidates[0]]
        least = cost_of(chosen)
        for target in candidates[1:]:
            cost = cost_of(target)
            if cost < least:
                least = cost
                tied = [chosen := target]
            elif cost == least:
                tied.append(target)
        if len(tied) > 1:
            chosen = self._pick_tied(tied, self._last, rng)
        self._last = chosen.index
        return chosen


class TwoChoices:
    """The cheaper of two distinct allowed targets drawn at random; ties as in `LeastCost`, among the two.

    Source: Mitzenmacher, The power of two choices in randomized load balancing (TPDS 2001).
    """

    def __init__(self, cost: Callable[[Target], float], ties: str = "rotated") -> None:
        """Compare the two by `cost`."""
        self.cost = cost
        self._pick_tied = TIES[ties]
        self._last = -1

    def choose(self, view: View, request: Request, rng: random.Random) -> Target | None:
        """The cheaper of the two drawn."""
        allowed = view.allowed
        count = len(allowed)
        if count < 2:
            return allowed[0] if allowed else None
        one = int(rng.random() * count)
        other = int(rng.random() * (count - 1))
        if other >= one:
            other += 1
        a, b = (allowed[one], allowed[other]) if one < other else (allowed[other], allowed[one])
        difference = self.cost(a) - self.cost(b)
        if difference == 0:
            chosen = self._pick_tied([a, b], self._last, rng)
        else:
            chosen = a if difference < 0 else b
        self._last = chosen.index
        return chosen


def build_least_cost(spec: LeastCostPolicy, view: View, output_mean: float, last: int = -1) -> LeastCost:
    """The policy of a scenario, on a view that is configured."""
    return LeastCost(believed_cost(spec, view, output_mean), spec.ties, last)


def build_two_choices(spec: TwoChoicesPolicy, view: View, output_mean: float) -> TwoChoices:
    """The policy of a scenario, on a view that is configured."""
    return TwoChoices(believed_cost(spec, view, output_mean), spec.ties)


def believed_cost(spec: CostPolicy, view: View, output_mean: float) -> Callable[[Target], float]:
    """What a policy compares, on a view that is configured."""
    return cost_function(spec.cost, spec.model, output_mean, view.count)


def _first_after(tied: Sequence[Target], last: int, rng: random.Random) -> Target:
    position = bisect_right(tied, last, key=BY_INDEX)
    return tied[position] if position < len(tied) else tied[0]


def _at_random(tied: Sequence[Target], last: int, rng: random.Random) -> Target:
    return tied[int(rng.random() * len(tied))]


def _first(tied: Sequence[Target], last: int, rng: random.Random) -> Target:
    return tied[0]


TIES: dict[str, Callable[[Sequence[Target], int, random.Random], Target]] = {
    "rotated": _first_after,
    "random": _at_random,
    "first": _first,
}
