"""Fluids of equal cells and equal roots: the setting of most results of the theory."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from testbed.serving.delayed_loop import Edge, Floats, critical_gain, period_s
from testbed.theory.fluid import Fluid, Streams
from testbed.theory.fluid_rule import CostOf, Rule
from testbed.theory.rate_family import ExponentialSaturation, RateFamily, hyperbolic


class EqualCells(NamedTuple):
    """J equal cells, and as many equal roots as one likes, all at one distance.

    Attributes:
        cells: J.
        rho: utilisation.
        family: `hyperbolic` or `exponential`.
        capacity_per_s: C of a cell.
        half: N0.
        one_way_s: tau, of requests and of observations.
    """

    cells: int
    rho: float
    family: str
    capacity_per_s: float
    half: float
    one_way_s: float

    @property
    def rate_per_s(self) -> float:
        """Lambda."""
        return self.cells * self.rho * self.capacity_per_s

    @property
    def loop_delay_s(self) -> float:
        """T = 2 tau."""
        return 2.0 * self.one_way_s

    @property
    def family_of_cells(self) -> RateFamily:
        """The service rates of all cells."""
        ones = np.ones(self.cells)
        build: Callable[[Floats, Floats], RateFamily] = (
            hyperbolic if self.family == "hyperbolic" else ExponentialSaturation
        )
        return build(self.capacity_per_s * ones, self.half * ones)

    @property
    def in_flight(self) -> Floats:
        """N* of each cell."""
        return self.family_of_cells.in_flight(np.full(self.cells, self.rate_per_s / self.cells))

    @property
    def a_per_s(self) -> float:
        """Marginal service rate at N*."""
        return float(self.family_of_cells.slope_per_s(self.in_flight)[0])

    @property
    def edge(self) -> Edge:
        """Critical step of the marginal cost, and the period there, by equations (5) to (7)."""
        headroom = self.capacity_per_s * (1.0 - self.rho)
        sigma_s = (2.0 if self.family == "hyperbolic" else 1.0) / headroom
        gain = critical_gain(self.a_per_s, self.loop_delay_s)
        return Edge(gain / (self.rate_per_s * sigma_s), period_s(self.a_per_s, self.loop_delay_s))

    def fluid(self, rule: Rule, *, roots: int = 1, kick: float = 0.0, cost: CostOf | None = None) -> Fluid:
        """The cells under a rule: marginal cost unless one is given; `kick` is added to the first share of each root."""
        cells = self.family_of_cells
        start = np.full((roots, self.cells), 1.0 / self.cells)
        start[:, 0] += kick
        start[:, 1] -= kick
        delays_s = np.full((roots, self.cells), self.one_way_s)
        streams = Streams(
            np.full(roots, self.rate_per_s / roots),
            delays_s,
            delays_s,
            np.ones((roots, self.cells), dtype=bool),
            start,
            cells.marginal_s if cost is None else cost,
            rule,
        )
        return Fluid(cells, (streams,))
