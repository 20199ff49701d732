"""The operating point of a scenario: how the traffic divides over the cells, and how the cells stand then.

Two divisions: by capacity, and the optimum, which minimises F = sum_j N_j + sum_ij r_ij tau_ij, tau the travel of
request and reply. Several lines of traffic with different tokens share a cell of k servers: with
A = sum r alpha and B = sum r beta over what arrives there, n = A / (k - B) are in flight at each server.

Everything is in scenario time, at mean rates, without faults. Sources: theory.md, sections 2.2 and 2.4;
measures.md, section 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from testbed.scenario.schema import Scenario
from testbed.serving.rate_curve import RateCurve
from testbed.theory.path_delays import PathDelays
from testbed.traffic.capacity import LineRate, allowed_cells, cell_curve, line_rates, token_means

Floats = NDArray[np.float64]

_SWEEPS = 500
_CLOSE_ENOUGH = 1e-10  # of the total rate: a sweep over all lines that moves less is the last
# Beyond its cap a cell completes no more; the optimum sees a marginal cost that rises this many times as steeply
# as the curve does at the cap, so that it stays within a thousandth of it and every start is allowed.
_STEEP = 1000.0
_UNCAPPED = 1e4  # in flight, in units of alpha/beta, that stand for a cap where a curve has none (rho 0.9999)


@dataclass(frozen=True)
class Demand:
    """What the lines of traffic ask for, and what the cells are to them.

    Attributes:
        lines: (root, index in its traffic), in the scenario's order.
        cells: names, in the scenario's order.
        servers: of each cell.
        rates_per_s: of each line.
        curves: curves[line][cell], of one server.
        travel_s: mean travel of request and reply together, shape (lines, cells).
        allowed: which cells a line may use, shape (lines, cells).
    """

    lines: tuple[tuple[str, int], ...]
    cells: tuple[str, ...]
    servers: Floats
    rates_per_s: Floats
    curves: tuple[tuple[RateCurve, ...], ...]
    travel_s: Floats
    allowed: NDArray[np.bool_]


class CellState(NamedTuple):
    """How a cell stands at a division of the traffic; N and W are infinite where it is asked for too much.

    Attributes:
        cell: name.
        rate_per_s: requests that arrive.
        share: of all requests.
        capacity_per_s: for the mix that arrives.
        in_flight: N.
        sojourn_s: W = N / rate, or that of a request alone where nothing arrives.
        a_per_s: l'(N), the marginal service rate.
        sigma_s: d/dN of the marginal cost.
        of_capacity: rate / capacity.
        utilisation: rho = rate * beta / servers.
        curve: of one server, for the mix that arrives.
    """

    cell: str
    rate_per_s: float
    share: float
    capacity_per_s: float
    in_flight: float
    sojourn_s: float
    a_per_s: float
    sigma_s: float
    of_capacity: float
    utilisation: float
    curve: RateCurve


@dataclass(frozen=True)
class OperatingPoint:
    """A division of the traffic, and the cells there.

    Attributes:
        shares: of each line's requests, shape (lines, cells); every row adds up to 1.
        cells: in the scenario's order.
        in_system: F, mean requests in the whole system, travel included; infinite where a cell is overloaded.
    """

    shares: Floats
    cells: tuple[CellState, ...]
    in_system: float

    @property
    def is_sustained(self) -> bool:
        """No cell is asked for more than it can carry."""
        return math.isfinite(self.in_system)


def demand(scenario: Scenario, delays: PathDelays) -> Demand:
    """What a scenario (in scenario time) asks for.

    Raises:
        RunError: a trace is missing or malformed.
    """
    cells = tuple(scenario.cells)
    lines = tuple(
        (root, index) for root, words in scenario.roots.items() for index in range(len(words.traffic))
    )
    rates: dict[str, list[LineRate]] = {root: line_rates(scenario, root) for root in scenario.roots}
    means = {root: token_means(scenario, root) for root in scenario.roots}
    travel = {root: [_round_trip_s(delays, root, cell) for cell in cells] for root in scenario.roots}
    return Demand(
        lines,
        cells,
        np.array([float(scenario.cells[cell].servers) for cell in cells]),
        np.array([rates[root][index].rate_per_s for root, index in lines]),
        tuple(tuple(cell_curve(scenario, cell, *means[root]) for cell in cells) for root, _ in lines),
        np.array([travel[root] for root, _ in lines]),
        np.array([[cell in allowed_cells(scenario, root, index) for cell in cells] for root, index in lines]),
    )


def at_capacity_split(wanted: Demand) -> OperatingPoint:
    """Every line divides its requests over its allowed cells in proportion to their capacity for it."""
    capacities = np.array(
        [
            [curve.capacity_per_s * k for curve, k in zip(row, wanted.servers, strict=True)]
            for row in wanted.curves
        ]
    )
    weights = np.where(wanted.allowed, capacities, 0.0)
    weights[weights.sum(axis=1) == 0.0] = 1.0  # no allowed cell can serve at all: alike, so that it is seen
    weights = np.where(wanted.allowed, weights, 0.0)
    return _point(wanted, weights / weights.sum(axis=1, keepdims=True))


def at_optimum(wanted: Demand) -> OperatingPoint:
    """The division of least F, from the capacity split on: each line in turn fills its cells level.

    Where several divisions are equally good (roots at equal distances), it is the one that this start leads to.
    """
    alpha, beta = _coefficients(wanted)
    rates = at_capacity_split(wanted).shares * wanted.rates_per_s[:, None]
    total = float(wanted.rates_per_s.sum())
    for _ in range(_SWEEPS):
        before = rates.copy()
        for i in range(len(wanted.lines)):
            others = np.delete(np.arange(len(wanted.lines)), i)
            work_s = (rates[others] * alpha[others]).sum(axis=0)
            busy = (rates[others] * beta[others]).sum(axis=0)
            rates[i] = _filled(_Water(wanted, i, alpha[i], beta[i], work_s, busy))
        if np.abs(rates - before).sum() <= _CLOSE_ENOUGH * total:
            break
    sums = rates.sum(axis=1, keepdims=True)
    shares = np.divide(rates, sums, out=at_capacity_split(wanted).shares, where=sums > 0.0)
    return _point(wanted, shares)


class _Water:
    """One line's cells as vessels: how much of its rate each takes at a level (marginal cost with travel).

    With what the others send (A0, B0) and r of this line, u = k - B0 - beta r, dN/dr = k D / u^2,
    D = alpha (k - B0) + beta A0; n reaches the cap at u = D / (alpha + n_cap beta).
    """

    def __init__(
        self, wanted: Demand, line: int, alpha: Floats, beta: Floats, work_s: Floats, busy: Floats
    ) -> None:
        self.rate_per_s = float(wanted.rates_per_s[line])
        self.allowed = wanted.allowed[line]
        self.travel_s = wanted.travel_s[line]
        self._beta = beta
        caps = np.array([_cap(curve) for curve in wanted.curves[line]])
        self._free = wanted.servers - busy
        # Others with other tokens may overfill a cell on the way to the solution; D stays above 0 regardless.
        scale = np.maximum(alpha * self._free + beta * work_s, 1e-9 * alpha * wanted.servers)
        self._numerator = wanted.servers * scale
        self._least_free = scale / (alpha + caps * beta)
        self._cost_at_cap_s = self._numerator / self._least_free**2
        self._rate_at_cap = (self._free - self._least_free) / beta

    def rates_at(self, level_s: float) -> Floats:
        """Requests per second that each cell takes at this level."""
        cost_s = np.maximum(level_s - self.travel_s, 1e-300)
        below = (self._free - np.sqrt(self._numerator / cost_s)) / self._beta
        excess = cost_s / self._cost_at_cap_s - 1.0
        beyond = self._rate_at_cap + excess * self._least_free / (2.0 * self._beta * _STEEP)
        rates = np.where(excess <= 0.0, below, beyond)
        return np.where(self.allowed, np.maximum(rates, 0.0), 0.0)


def _filled(water: _Water) -> Floats:
    """The rates of one line: all cells that it uses at one level, which takes its whole rate."""
    low = float(water.travel_s.min())
    span = 1e-6
    while water.rates_at(low + span).sum() < water.rate_per_s:
        span *= 4.0
    level_s = brentq(
        lambda level: water.rates_at(level).sum() - water.rate_per_s, low, low + span, xtol=1e-15
    )
    return water.rates_at(float(level_s))


def _coefficients(wanted: Demand) -> tuple[Floats, Floats]:
    alpha = np.array([[curve.alpha_s for curve in row] for row in wanted.curves])
    # A curve with one output token and no prefill has no beta at all: a hair of it keeps the algebra.
    beta = np.array([[max(curve.beta_s, 1e-9 * curve.alpha_s) for curve in row] for row in wanted.curves])
    return alpha, beta


def _cap(curve: RateCurve) -> float:
    beta_s = max(curve.beta_s, 1e-9 * curve.alpha_s)
    return min(curve.n_cap, _UNCAPPED * curve.alpha_s / beta_s)


def _point(wanted: Demand, shares: Floats) -> OperatingPoint:
    rates = shares * wanted.rates_per_s[:, None]
    total = float(rates.sum())
    cells = tuple(_state(wanted, rates[:, j], j, total) for j in range(len(wanted.cells)))
    travelling = float((rates * wanted.travel_s).sum())
    return OperatingPoint(shares, cells, sum(cell.in_flight for cell in cells) + travelling)


def _state(wanted: Demand, rates: Floats, j: int, total_per_s: float) -> CellState:
    curve, servers = _mixed_curve(wanted, rates, j), float(wanted.servers[j])
    rate = float(rates.sum())
    capacity = servers * curve.capacity_per_s
    # The optimum may stand on the cap, a thousandth beyond: that is still full, not overfull.
    at_most = rate if rate <= capacity or rate > capacity * (1.0 + 1e-3) else capacity * (1.0 - 1e-12)
    n = curve.in_flight(at_most / servers) if rate > 0.0 else 0.0
    grown_s = curve.latency_s(n)
    return CellState(
        wanted.cells[j],
        rate,
        rate / total_per_s if total_per_s > 0.0 else 0.0,
        capacity,
        servers * n,
        grown_s,
        curve.alpha_s / grown_s**2,
        2.0 * curve.beta_s * grown_s / (curve.alpha_s * servers),
        rate / capacity if capacity > 0.0 else math.inf if rate > 0.0 else 0.0,
        rate * curve.beta_s / servers,
        curve,
    )


def _mixed_curve(wanted: Demand, rates: Floats, j: int) -> RateCurve:
    """One server's curve for what arrives at a cell: the mean of the lines' curves, weighted by rate."""
    weights = rates if rates.sum() > 0.0 else np.ones(len(rates))
    curves = [
        (row[j], float(weight / weights.sum()))
        for row, weight in zip(wanted.curves, weights, strict=True)
        if weight > 0.0
    ]
    return RateCurve(
        sum(curve.alpha_s * weight for curve, weight in curves),
        sum(curve.beta_s * weight for curve, weight in curves),
        sum(curve.n_cap * weight for curve, weight in curves),
    )


def _round_trip_s(delays: PathDelays, root: str, cell: str) -> float:
    return sum(delays.between(root, cell, path).mean_s for path in ("request", "reply"))
