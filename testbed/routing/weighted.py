"""Static splits, and the three ways to turn shares into choices: chance, low discrepancy, keyed by request."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Literal, Protocol

from testbed.draw import key_base, uniform
from testbed.roles.messages import Request
from testbed.routing.view import Target, View
from testbed.scenario.policy_words import Draw, WeightedPolicy

Weights = Literal["even", "capacity"] | Mapping[str, float]


class Sampler(Protocol):
    """Turns shares into choices."""

    def set_shares(self, shares: Sequence[float]) -> None:
        """From now on these shares: one per target, summing to 1; a share of 0 is never picked."""

    def pick(self, request: Request, rng: random.Random) -> int:
        """Index of a target; at least one share must be above 0."""


class Chance:
    """Each request by an independent draw."""

    def __init__(self) -> None:
        """Shares are to be set before the first pick."""
        self._indices: list[int] = []
        self._bounds: list[float] = []
        self._last = -1

    def set_shares(self, shares: Sequence[float]) -> None:
        """From now on these shares."""
        self._indices = [index for index, share in enumerate(shares) if share > 0]
        self._bounds = list(accumulate(shares[index] for index in self._indices))
        self._last = len(self._indices) - 1

    def pick(self, request: Request, rng: random.Random) -> int:
        """By a uniform draw; what rounding leaves between the last bound and 1 goes to the last."""
        return self._indices[bisect_right(self._bounds, rng.random(), 0, self._last)]


class ByRequest(Chance):
    """Each request by a draw that hangs on its id alone: the same target in every engine, at every timing.

    A retry of a request thus goes where the first attempt went.
    """

    def __init__(self, base: int) -> None:
        """`base` stands for the seed and the node, so that roots and leaves do not draw alike."""
        super().__init__()
        self._base = base

    def pick(self, request: Request, rng: random.Random) -> int:
        """By the uniform draw of this request id."""
        return self._indices[
            bisect_right(self._bounds, uniform(self._base, request.request_id), 0, self._last)
        ]


class LowDiscrepancy:
    """Without chance: counts follow shares as closely as can be.

    Each pick adds every target's share to its credit and takes 1 from the chosen one. Among the targets with a
    credit of at least 1 / (2 n - 2), n being those with a share above 0, it chooses the one whose credit would
    soonest grow to 1 - 1 / (2 n - 2). While shares stay as they are, the count of each target after any number of
    picks is within 1 - 1 / (2 n - 2) < 1 of picks times share. (Smooth weighted round robin, which takes the largest
    credit, strays by more than 1 from five targets on.) When shares change, credits are carried over: what fell
    behind is caught up, and no count runs ahead by 1 while every target keeps a share above 0.

    Source: Tijdeman, The chairman assignment problem (Discrete Mathematics 32, 1980).
    """

    def __init__(self, count: int, credits: Sequence[float] | None = None) -> None:
        """For so many targets, none with a credit yet; or with these, so that balancers with equal shares differ."""
        self._credits = [0.0] * count if credits is None else list(credits)
        self._shares: list[tuple[int, float]] = []
        self._least = 0.0
        self._most = 1.0

    def set_shares(self, shares: Sequence[float]) -> None:
        """From now on these shares; a target whose share is 0 keeps its credit until it has one again."""
        self._shares = [(index, share) for index, share in enumerate(shares) if share > 0]
        margin = 0.5 / max(1, len(self._shares) - 1)
        self._least = margin - 1e-9  # rounding must not shut out credits that stand exactly at the margin
        self._most = 1.0 - margin

    def pick(self, request: Request, rng: random.Random) -> int:
        """The most urgent of those that are not ahead; without a draw."""
        owed = self._credits
        least = self._least
        most = self._most
        chosen = -1
        soonest = 0.0
        for index, share in self._shares:
            credit = owed[index] + share
            owed[index] = credit
            if credit >= least:
                wait = (most - credit) / share
                if chosen < 0 or wait < soonest:
                    chosen = index
                    soonest = wait
        if chosen < 0:  # only after a change of shares, when those owed the most have no share now
            chosen = max((index for index, _ in self._shares), key=owed.__getitem__)
        owed[chosen] -= 1.0
        return chosen


class Weighted:
    """A split that does not look at load: by capacity or by given weights, over the allowed targets."""

    def __init__(self, weights: Weights, sampler: Sampler) -> None:
        """Split by these weights, see `shares_by`."""
        self._weights = weights
        self._sampler = sampler
        self._allowed: tuple[Target, ...] | None = None

    def choose(self, view: View, request: Request, rng: random.Random) -> Target | None:
        """As the sampler picks."""
        allowed = view.allowed
        if not allowed:
            return None
        if allowed is not self._allowed:
            self._allowed = allowed
            self._sampler.set_shares(shares_by(view, self._weights))
        return view.targets[self._sampler.pick(request, rng)]


def shares_by(view: View, weights: Weights) -> list[float]:
    """Shares of all targets of a view, proportional to weights over the allowed ones; forbidden ones get exactly 0.

    Args:
        view: at least one of its targets is allowed.
        weights: see `weights_by`.
    """
    raw = weights_by(view, weights)
    total = sum(raw)
    return [weight / total for weight in raw]


def weights_by(view: View, weights: Weights) -> list[float]:
    """Weights of all targets of a view as they are given; forbidden ones get exactly 0.

    Args:
        view: at least one of its targets is allowed.
        weights: `even`, `capacity`, or a weight by name, where a name left out counts 0. If no allowed target has
            a weight above 0 all are alike, since a request must go somewhere.
    """
    raw = [0.0] * len(view.targets)
    for target in view.allowed:
        if isinstance(weights, str):
            raw[target.index] = target.capacity_per_s if weights == "capacity" else 1.0
        else:
            raw[target.index] = weights.get(target.name, 0.0)
    return raw if sum(raw) > 0 else weights_by(view, "even")


def build_weighted(spec: WeightedPolicy, view: View, seed: int, node: str) -> Weighted:
    """The policy of a scenario."""
    return Weighted(spec.weights, sampler_of(spec.draw, view, seed, node))


def sampler_of(draw: Draw, view: View, seed: int, node: str) -> Sampler:
    """The sampler of a scenario, for one balancer."""
    samplers: dict[str, Sampler] = {
        "chance": Chance(),
        "low_discrepancy": LowDiscrepancy(len(view.targets)),
        "request": ByRequest(key_base(seed, node, "weighted")),
    }
    return samplers[draw]
