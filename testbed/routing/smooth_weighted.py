"""Smooth weighted round robin: turns in proportion to weights, each target's spread out over the round."""

from __future__ import annotations

import random

from testbed.roles.messages import Request
from testbed.routing.view import Target, View
from testbed.routing.weighted import Weights, weights_by


class SmoothWeighted:
    """Each choice adds every target its weight; the richest is chosen and pays the sum of all weights.

    With weights 5, 1, 1 the order is a a b a c a a and again. A target that may not be chosen keeps its credit. For
    a known, steady split without the noise of chance; it looks at no load. From five targets on the count of one
    may stray from its share by more than a request; `weighted` with `draw: low_discrepancy` never does.

    Source: nginx 1.3.1, ngx_http_upstream_round_robin.c (2012), without the weights that failures lower for a while.
    """

    def __init__(self, weights: Weights) -> None:
        """Turns by these weights, see `weights_by`."""
        self._weights = weights
        self._allowed: tuple[Target, ...] | None = None
        self._raw: list[float] = []
        self._total = 0.0
        self._credits: list[float] = []

    def choose(self, view: View, request: Request, rng: random.Random) -> Target | None:
        """The richest; the first of the scenario among equals."""
        allowed = view.allowed
        if not allowed:
            return None
        if allowed is not self._allowed:
            self._refit(view)
        chosen: Target | None = None
        for target in allowed:
            index = target.index
            if self._raw[index] > 0:
                self._credits[index] += self._raw[index]
                if chosen is None or self._credits[index] > self._credits[chosen.index]:
                    chosen = target
        assert chosen is not None, "some allowed target has a weight above 0"
        self._credits[chosen.index] -= self._total
        return chosen

    def _refit(self, view: View) -> None:
        self._allowed = view.allowed
        self._raw = weights_by(view, self._weights)
        self._total = sum(self._raw)
        self._credits = self._credits or [0.0] * len(view.targets)
