"""Workload-dependent service rates of cells: l(N), its slope, and the marginal cost 1/l'(N), for arrays of cells.

Every family broadcasts: its parameters have shape (cells,), or (lines, cells) where each line of traffic has a curve of
its own, and requests in flight have the cells last. Source: theory.md, section 2.4; measures.md, section 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from testbed.routing.cost import CEILING
from testbed.serving.rate_curve import RateCurve
from testbed.theory.stability import Floats


class RateFamily(Protocol):
    """How fast cells complete requests with so many in flight."""

    @property
    def capacity_per_s(self) -> Floats:
        """The most that each cell completes."""

    def rate_per_s(self, in_flight: Floats) -> Floats:
        """l(N)."""

    def slope_per_s(self, in_flight: Floats) -> Floats:
        """l'(N), from 0."""

    def expansion(self, in_flight: Floats) -> tuple[Floats, Floats, Floats]:
        """l(N), l'(N) and l''(N), which share most of their work; per second."""

    def marginal_s(self, in_flight: Floats) -> Floats:
        """dN/dr = 1/l'(N), cut where the family says so."""

    def sojourn_s(self, in_flight: Floats) -> Floats:
        """N / l(N); at N = 0 its limit."""

    def in_flight(self, rate_per_s: Floats) -> Floats:
        """N at which each cell completes this rate; infinite from the capacity on."""


@dataclass(frozen=True)
class BatchCurves:
    """k servers of the curve n / (alpha + beta n), n = N / k, flat beyond n_cap; the hyperbolic family without a cap.

    The marginal cost (alpha + beta n)^2 / alpha continues as a straight line beyond n_cap, and is cut at `ceiling`
    times alpha.
    """

    alpha_s: Floats
    beta_s: Floats
    n_cap: Floats
    servers: Floats
    ceiling: float = CEILING

    @property
    def capacity_per_s(self) -> Floats:
        """k times the rate at n_cap."""
        with np.errstate(divide="ignore"):
            return np.asarray(self.servers / (self.alpha_s / self.n_cap + self.beta_s))

    @property
    def divisor_per_s(self) -> Floats:
        """k times the `RateCurve.divisor_per_s` of a server: n_cap counts as at least 1."""
        return np.asarray(self.servers / (self.alpha_s / np.maximum(self.n_cap, 1.0) + self.beta_s))

    def rate_per_s(self, in_flight: Floats) -> Floats:
        """k n / (alpha + beta n), n up to n_cap."""
        n = np.minimum(in_flight / self.servers, self.n_cap)
        return np.asarray(self.servers * n / (self.alpha_s + self.beta_s * n))

    def slope_per_s(self, in_flight: Floats) -> Floats:
        """alpha / (alpha + beta n)^2, 0 beyond n_cap."""
        n = in_flight / self.servers
        grown_s = self.alpha_s + self.beta_s * n
        return np.asarray(np.where(n <= self.n_cap, self.alpha_s / (grown_s * grown_s), 0.0))

    def expansion(self, in_flight: Floats) -> tuple[Floats, Floats, Floats]:
        """As the protocol says; l'' = -2 beta / (alpha + beta n) / k times l'."""
        n = in_flight / self.servers
        within = np.minimum(n, self.n_cap)
        grown_s = self.alpha_s + self.beta_s * within
        each_per_s = within / grown_s
        slope_per_s = np.where(n <= self.n_cap, self.alpha_s / (grown_s * grown_s), 0.0)
        bend_per_s = slope_per_s * (-2.0 * self.beta_s / self.servers) / grown_s
        return self.servers * each_per_s, slope_per_s, bend_per_s

    def marginal_s(self, in_flight: Floats) -> Floats:
        """As the class says."""
        n = in_flight / self.servers
        within = np.minimum(n, self.n_cap)
        grown_s = self.alpha_s + self.beta_s * within
        beyond_s = 2.0 * self.beta_s * (n - within)
        return np.asarray(
            np.minimum(grown_s * (grown_s + beyond_s) / self.alpha_s, self.ceiling * self.alpha_s)
        )

    def sojourn_s(self, in_flight: Floats) -> Floats:
        """alpha + beta n, also beyond n_cap, as the roots reckon it."""
        return np.asarray(self.alpha_s + self.beta_s * in_flight / self.servers)

    def in_flight(self, rate_per_s: Floats) -> Floats:
        """k alpha r / (1 - beta r), r the rate per server."""
        each = rate_per_s / self.servers
        with np.errstate(divide="ignore"):
            n = self.alpha_s * each / (1.0 - self.beta_s * each)
        return np.asarray(np.where(rate_per_s < self.capacity_per_s, self.servers * n, np.inf))


def hyperbolic(capacity_per_s: Floats, half: Floats) -> BatchCurves:
    """C N / (N0 + N), its marginal cost nowhere cut."""
    none = np.full(np.shape(capacity_per_s), np.inf)
    return BatchCurves(
        half / capacity_per_s, 1.0 / capacity_per_s, none, np.ones(np.shape(capacity_per_s)), math.inf
    )


def of_curves(curves: Sequence[RateCurve], servers: Floats) -> BatchCurves:
    """The curves of one server in each cell, times its servers."""
    return BatchCurves(
        np.array([curve.alpha_s for curve in curves]),
        np.array([curve.beta_s for curve in curves]),
        np.array([curve.n_cap for curve in curves]),
        np.asarray(servers, np.float64),
    )


@dataclass(frozen=True)
class ExponentialSaturation:
    """C (1 - exp(-N / N0))."""

    capacity_per_s: Floats
    half: Floats

    def rate_per_s(self, in_flight: Floats) -> Floats:
        """As the class says."""
        return np.asarray(-self.capacity_per_s * np.expm1(-in_flight / self.half))

    def slope_per_s(self, in_flight: Floats) -> Floats:
        """(C / N0) exp(-N / N0)."""
        return np.asarray(self.capacity_per_s / self.half * np.exp(-in_flight / self.half))

    def expansion(self, in_flight: Floats) -> tuple[Floats, Floats, Floats]:
        """As the protocol says; l'' = -l' / N0."""
        slope_per_s = self.slope_per_s(in_flight)
        return self.capacity_per_s - self.half * slope_per_s, slope_per_s, -slope_per_s / self.half

    def marginal_s(self, in_flight: Floats) -> Floats:
        """(N0 / C) exp(N / N0)."""
        return np.asarray(self.half / self.capacity_per_s * np.exp(in_flight / self.half))

    def sojourn_s(self, in_flight: Floats) -> Floats:
        """N / l(N), N0 / C where nothing is in flight."""
        x = np.maximum(in_flight / self.half, 1e-12)
        return np.asarray(self.half / self.capacity_per_s * x / -np.expm1(-x))

    def in_flight(self, rate_per_s: Floats) -> Floats:
        """N0 ln(1 / (1 - r/C))."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(
                np.where(
                    rate_per_s < self.capacity_per_s,
                    -self.half * np.log1p(-rate_per_s / self.capacity_per_s),
                    np.inf,
                )
            )


@dataclass(frozen=True)
class ClippedServers:
    """k servers of rate mu, mu min(N, k); the marginal cost is 1/mu, and `ceiling` times that when all are busy.

    A cell with a cost of two values acts as a relay: where it is clipped, the linear loop says nothing.
    """

    rate_each_per_s: Floats
    servers: Floats
    ceiling: float = CEILING

    @property
    def capacity_per_s(self) -> Floats:
        """mu k."""
        return np.asarray(self.rate_each_per_s * self.servers)

    def rate_per_s(self, in_flight: Floats) -> Floats:
        """mu min(N, k)."""
        return np.asarray(self.rate_each_per_s * np.minimum(in_flight, self.servers))

    def slope_per_s(self, in_flight: Floats) -> Floats:
        """mu below k, then 0."""
        return np.asarray(np.where(in_flight < self.servers, self.rate_each_per_s, 0.0))

    def expansion(self, in_flight: Floats) -> tuple[Floats, Floats, Floats]:
        """As the protocol says; l'' = 0 but for the corner."""
        return self.rate_per_s(in_flight), self.slope_per_s(in_flight), np.zeros(in_flight.shape)

    def marginal_s(self, in_flight: Floats) -> Floats:
        """1/mu below k, then `ceiling` / mu."""
        return np.asarray(np.where(in_flight < self.servers, 1.0, self.ceiling) / self.rate_each_per_s)

    def sojourn_s(self, in_flight: Floats) -> Floats:
        """max(1, N/k) / mu."""
        return np.asarray(np.maximum(1.0, in_flight / self.servers) / self.rate_each_per_s)

    def in_flight(self, rate_per_s: Floats) -> Floats:
        """r / mu."""
        return np.asarray(
            np.where(rate_per_s < self.capacity_per_s, rate_per_s / self.rate_each_per_s, np.inf)
        )
