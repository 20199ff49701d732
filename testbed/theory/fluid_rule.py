"""The policies as fluid: delayed costs to the shares of each line of traffic.

A rule gets the costs that its lines see at the instants of a block of the grid, shape (instants, lines, cells), and
gives the shares there. Cells that a line may not use have a share of exactly 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from testbed.routing.flow import UNBOUND, Movement
from testbed.theory.stability import Floats

Mask = NDArray[np.bool_]
CostOf = Callable[[Floats], Floats]
"""Requests in flight as seen, shape (instants, lines, cells), to costs of the same shape."""

HARDLY_MORE = 1.0 + 1e-12  # costs within this factor tie: rounding does not tell cells apart


class Instants(Protocol):
    """When the lines of a rule look at what they know."""

    def looks_s(self, grid_s: Floats, spacing_s: float) -> tuple[Floats, Floats]:
        """For each grid instant and line: the last look up to it, and the time that looks since the grid instant before
        stand for; shapes (instants, lines), or (instants, 1) where all lines look alike."""


@dataclass(frozen=True)
class Always:
    """Looks without pause: the continuous form. Moves use the middle of each step of the grid."""

    of_moves: bool = False

    def looks_s(self, grid_s: Floats, spacing_s: float) -> tuple[Floats, Floats]:
        """At every instant; see `Instants`."""
        looks_s = grid_s - spacing_s / 2 if self.of_moves else grid_s
        return looks_s[:, None], np.full((len(grid_s), 1), spacing_s)


@dataclass(frozen=True)
class Periodic:
    """Looks at the instants offset + n * period of every offset.

    Attributes:
        period_s: shape (lines,).
        offsets_s: within a period, shape (lines, looks in a period).
        weights_s: the time that each look stands for; same shape, a row adds up to the period.
    """

    period_s: Floats
    offsets_s: Floats
    weights_s: Floats

    def looks_s(self, grid_s: Floats, spacing_s: float) -> tuple[Floats, Floats]:
        """See `Instants`."""
        now = self._turns(grid_s)
        passed = now - self._turns(grid_s - spacing_s)
        looks_s = (now * self.period_s[:, None] + self.offsets_s).max(axis=2)
        return looks_s, (passed * self.weights_s).sum(axis=2)

    def _turns(self, at_s: Floats) -> Floats:
        since_s = at_s[:, None, None] - self.offsets_s
        # An instant that stands on the grid belongs to it, whatever rounding says.
        return np.asarray(np.floor(since_s / self.period_s[:, None] + 1e-9))


class Rule(Protocol):
    """A policy for several lines."""

    @property
    def instants(self) -> Instants:
        """When its lines look."""

    def shares(self, costs: Floats, weights_s: Floats, before: Floats, allowed: Mask) -> Floats:
        """Shares at each instant of a block.

        Args:
            costs: shape (instants, lines, cells).
            weights_s: as `Instants.looks_s` gives them.
            before: shares at the instant before the block, shape (lines, cells).
            allowed: cells that each line may use; same shape.
        """


@dataclass(frozen=True)
class Static:
    """Shares that stay as they are."""

    instants: Instants = field(default_factory=Always)

    def shares(self, costs: Floats, weights_s: Floats, before: Floats, allowed: Mask) -> Floats:
        """Those before."""
        return np.broadcast_to(before, costs.shape)


@dataclass(frozen=True)
class Greedy:
    """Everything to the cell of least cost; evenly to those that tie."""

    instants: Instants = field(default_factory=Always)

    def shares(self, costs: Floats, weights_s: Floats, before: Floats, allowed: Mask) -> Floats:
        """See `Rule`."""
        seen = np.where(allowed, costs, np.inf)
        least_cost = seen.min(axis=2, keepdims=True)  # below 0 where `worst` turns the costs round
        least = seen <= np.maximum(least_cost * HARDLY_MORE, least_cost / HARDLY_MORE)
        return np.asarray(least / least.sum(axis=2, keepdims=True))


@dataclass(frozen=True)
class BetterOfTwo:
    """The cheaper of two different allowed cells drawn at random: with n of them, the cell of rank r (0 the cheapest)
    gets 2 (n - 1 - r) / (n (n - 1))."""

    instants: Instants = field(default_factory=Always)

    def shares(self, costs: Floats, weights_s: Floats, before: Floats, allowed: Mask) -> Floats:
        """See `Rule`; cells that tie share what their ranks get."""
        count = allowed.sum(axis=1)[:, None]
        seen = np.where(allowed, costs, np.inf)
        dearer = seen[..., None, :] > (seen * HARDLY_MORE)[..., :, None]  # [..., i, j]: j than i
        # forbidden cells are dearer than all, and do not take part
        ahead = dearer.sum(axis=3) - dearer.sum(axis=2) - (allowed.shape[1] - count)
        shares = np.where(allowed, (count - 1 + ahead) / np.maximum(count * (count - 1), 1), 0.0)
        return np.asarray(np.where((count == 1) & allowed, 1.0, shares))


@dataclass(frozen=True)
class Logit:
    """Shares proportional to exp(-cost / temperature); the temperature in the unit of the cost."""

    temperature: float
    instants: Instants = field(default_factory=Always)

    def shares(self, costs: Floats, weights_s: Floats, before: Floats, allowed: Mask) -> Floats:
        """See `Rule`."""
        seen = np.where(allowed, costs, np.inf)
        weights = np.exp((seen.min(axis=2, keepdims=True) - seen) / self.temperature)
        return np.asarray(weights / weights.sum(axis=2, keepdims=True))


@dataclass(frozen=True)
class Gradient:
    """Projected gradient steps, x <- projection(x - step * weight * cost): weight is the interval, or the spacing of the
    grid for the continuous form, whose limit is the projection of the velocity onto the tangent cone.

    Attributes:
        steps: of each line, shape (lines,); per s^2 for a cost in seconds.
        instants: when the shares move.
        movement: how a move keeps to the probabilities, to their floor and, of one update, to its largest size.
        updates_per_s: of each line, shape (lines,), or of all: how many updates share in a move of the grid.
    """

    steps: Floats
    instants: Instants = field(default_factory=lambda: Always(of_moves=True))
    movement: Movement = UNBOUND
    updates_per_s: Floats | float = 1.0

    def shares(self, costs: Floats, weights_s: Floats, before: Floats, allowed: Mask) -> Floats:
        """See `Rule`.

        While the same cells are above the floor and no move is too large the path is a plain sum; where cells come in or
        drop out it goes step by step.
        """
        pulls = costs * (self.steps * weights_s)[:, :, None]
        floors = np.minimum(self.movement.explore, 1.0 / allowed.sum(axis=1, keepdims=True))
        moving = allowed & (before > floors)
        centred = pulls - np.where(moving, pulls, 0.0).sum(axis=2, keepdims=True) / np.maximum(
            moving.sum(axis=1, keepdims=True), 1
        )
        moves = np.where(moving, centred, 0.0)
        path = before - np.cumsum(moves, axis=0)
        broken = (moving & (path < floors)) | (allowed & ~moving & ((centred < 0.0) | (before < floors)))
        updates = weights_s * self.updates_per_s
        if self.movement.max_move < 1.0:
            too_large = 0.5 * np.abs(moves).sum(axis=2) > self.movement.max_move * updates
            broken |= too_large[:, :, None]
        for line in np.flatnonzero(broken.any(axis=(0, 2))).tolist():
            first = int(np.argmax(broken[:, line].any(axis=1)))
            start = path[first - 1, line] if first else before[line]
            count = np.broadcast_to(updates, costs.shape[:2])[first:, line]
            path[first:, line] = self._followed(start, pulls[first:, line], count, allowed[line])
        return np.asarray(path)

    def _followed(self, start: Floats, pulls: Floats, updates: Floats, allowed: Mask) -> list[list[float]]:
        """The path of one line, a move for each step of the grid in which something pulls."""
        shares: list[float] = start.tolist()
        flags: list[bool] = allowed.tolist()
        most = self.movement.max_move
        path = []
        for pull, count in zip(pulls.tolist(), updates.tolist(), strict=True):
            if any(pull):
                movement = self.movement if most == 1.0 else self.movement._replace(max_move=most * count)
                shares = movement.apply(shares, [-each for each in pull], flags)
            path.append(shares)
        return path
