"""The best of d choices."""

from __future__ import annotations

import random
from collections.abc import Callable

from testbed.roles.messages import Request
from testbed.routing.greedy import BY_INDEX, LeastCost, TwoChoices, believed_cost
from testbed.routing.view import Target, View
from testbed.scenario.policy_words import DChoicesPolicy


class DChoices(LeastCost):
    """The cheapest of `choices` distinct allowed targets drawn at random; ties as in `LeastCost`, among those.

    Between random (1) and least cost (all). With fresh news each choice more shortens the queues; with old news two
    or three do better than many, since no target is asked by more than a share of choices/targets. Of two it is
    `two_choices`.

    Source: Mitzenmacher, The power of two choices in randomized load balancing (TPDS 12, 2001).
    """

    def __init__(self, cost: Callable[[Target], float], choices: int, ties: str = "rotated") -> None:
        """Compare so many targets by `cost`."""
        super().__init__(cost, ties)
        self._choices = choices
        self._deck: list[Target] = []
        self._allowed: tuple[Target, ...] | None = None

    def choose(self, view: View, request: Request, rng: random.Random) -> Target | None:
        """The cheapest of those drawn."""
        allowed = view.allowed
        count = len(allowed)
        if count <= self._choices:
            return self.cheapest(allowed, rng)
        if allowed is not self._allowed:
            self._allowed, self._deck = allowed, list(allowed)
        deck = self._deck
        for i in range(self._choices):  # the first steps of a shuffle: every set of so many is equally likely
            j = i + int(rng.random() * (count - i))
            deck[i], deck[j] = deck[j], deck[i]
        return self.cheapest(sorted(deck[: self._choices], key=BY_INDEX), rng)


def build_d_choices(spec: DChoicesPolicy, view: View, output_mean: float) -> DChoices | TwoChoices:
    """The policy of a scenario; targets learn whether own sends are to be kept."""
    cost = believed_cost(spec, view, output_mean)
    return TwoChoices(cost, spec.ties) if spec.choices == 2 else DChoices(cost, spec.choices, spec.ties)
