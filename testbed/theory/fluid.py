"""The nonlinear fluid of I lines of traffic and J cells: delay differential equations, no requests, no noise.

    dN_j/dt = sum_i lambda_i x_ij(t - tau_ij) - l_j(N_j),    x_i(t) by its rule from N_j(t - o_ij)

tau the travel of requests, o the delay of observations, x the shares of each line. Within one loop delay everything
that a cell or a root acts on is known already, so the grid is filled in blocks: the shares of a whole block at once, then
the arrivals, then the cells, by steps that are exact for arrivals and relaxation that stay as they are (exponential
Rosenbrock-Euler: second order, and stable however fast a cell relaxes). Delays that fall between grid
points are interpolated.

Sources: theory.md, section 2.2, equation (1); Hochbruck and Ostermann, Exponential integrators (Acta Numerica 2010).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from testbed.theory.fluid_rule import CostOf, Mask, Rule
from testbed.theory.rate_family import RateFamily
from testbed.theory.stability import Floats

STEPS_PER_DELAY = 16  # of the grid in the shortest loop delay
_MOST_STEPS = 2_000_000  # a grid that holds more is a mistake
_NO_SLOPE = 1e-300  # so that a cell at its cap divides 0 by 0 to 1
_WORTH_WHILE = 5  # steps of a block, from which on all at once is faster
_MOST_ROUNDS = 8  # of Newton's method: it settles in two to four
_LEAST_LEFT = 1e-130  # of a difference at the end of a block: beyond, its inverse would overflow
_SETTLED = 1e-4  # of the largest count that a round still moves: the next would move a hundredth, less than the grid costs


@dataclass(frozen=True)
class Streams:
    """Lines of traffic that follow one rule.

    Attributes:
        rates_per_s: lambda, shape (lines,).
        travel_s: tau, shape (lines, cells).
        observation_s: o, same shape.
        allowed: the cells that each line may use, same shape.
        start: shares at and before the start, same shape.
        cost: what a line sees in flight, to what it reckons that to cost.
        rule: costs to shares.
    """

    rates_per_s: Floats
    travel_s: Floats
    observation_s: Floats
    allowed: Mask
    start: Floats
    cost: CostOf
    rule: Rule


@dataclass(frozen=True)
class Reports:
    """Observations that are measured now and then, not always: at phase + n * every.

    Attributes:
        every_s: period of each cell's reports, shape (cells,).
        phase_s: of each cell, same shape.
    """

    every_s: Floats
    phase_s: Floats

    def measured_s(self, at_s: Floats) -> Floats:
        """The last measurement up to an instant; cells last in the shape."""
        turns = np.floor((at_s - self.phase_s) / self.every_s + 1e-9)
        return np.asarray(turns * self.every_s + self.phase_s)


@dataclass(frozen=True)
class Fluid:
    """Everything that moves: the cells, the lines in groups of one rule each, and how observations are sampled.

    Attributes:
        cells: their service rates.
        streams: the groups; the lines are numbered through them in order.
        reports: None: observations are continuous.
    """

    cells: RateFamily
    streams: tuple[Streams, ...]
    reports: Reports | None = None

    @property
    def rates_per_s(self) -> Floats:
        """Of all lines."""
        return np.concatenate([group.rates_per_s for group in self.streams])

    @property
    def travel_s(self) -> Floats:
        """Of all lines; shape (lines, cells)."""
        return np.concatenate([group.travel_s for group in self.streams])

    @property
    def start(self) -> Floats:
        """Shares of all lines at the start; shape (lines, cells)."""
        return np.concatenate([group.start for group in self.streams])

    @property
    def shortest_loop_s(self) -> float:
        """The shortest travel plus the shortest delay of an observation."""
        return float(self.travel_s.min()) + self.shortest_observation_s

    @property
    def shortest_observation_s(self) -> float:
        """The least that an observation is delayed."""
        return min(float(group.observation_s.min()) for group in self.streams)


@dataclass(frozen=True)
class Trajectory:
    """What the fluid did.

    Attributes:
        spacing_s: of the grid, which begins at 0.
        in_flight: N, shape (instants, cells).
        shares: x, shape (instants, lines, cells).
    """

    spacing_s: float
    in_flight: Floats
    shares: Floats

    @property
    def at_s(self) -> Floats:
        """The instants of the grid."""
        return np.asarray(np.arange(len(self.in_flight)) * self.spacing_s)

    def after(self, at_s: float) -> Trajectory:
        """The part from an instant on."""
        first = min(math.ceil(at_s / self.spacing_s - 1e-9), len(self.in_flight) - 1)
        return Trajectory(self.spacing_s, self.in_flight[first:], self.shares[first:])

    def until(self, at_s: float) -> Trajectory:
        """The part up to an instant."""
        count = len(self.in_flight)
        last = count if math.isinf(at_s) else min(math.ceil(at_s / self.spacing_s) + 1, count)
        return Trajectory(self.spacing_s, self.in_flight[:last], self.shares[:last])

    def in_system(self, rates_per_s: Floats, travel_s: Floats) -> Floats:
        """F at each instant: requests in flight, and lambda x tau on their way at these shares."""
        under_way = np.einsum("i,kij,ij->k", rates_per_s, self.shares, travel_s)
        return np.asarray(self.in_flight.sum(axis=1) + under_way)


def solve(
    fluid: Fluid,
    duration_s: float,
    *,
    in_flight: Floats | None = None,
    primed: bool = True,
    spacing_s: float | None = None,
) -> Trajectory:
    """Follow the fluid from its start.

    Args:
        fluid: what moves.
        duration_s: how long.
        in_flight: N at and before the start, shape (cells,); what the starting shares sustain, unless given.
        primed: requests sent before the start by the starting shares are under way; otherwise none are.
        spacing_s: of the grid; a sixteenth of the shortest loop delay, unless given.

    Raises:
        ValueError: there is no delay at all and no spacing is given, the starting shares ask too much of a cell and
            `in_flight` is not given, or the grid would have more than two million instants.
    """
    spacing_s = fluid.shortest_loop_s / STEPS_PER_DELAY if spacing_s is None else spacing_s
    if not spacing_s > 0.0:
        raise ValueError("without any delay the fluid needs the spacing of its grid")
    steps = math.ceil(duration_s / spacing_s - 1e-9)
    if steps > _MOST_STEPS:
        raise ValueError(f"{duration_s} s in steps of {spacing_s} s: more than {_MOST_STEPS} steps")
    start = steady_in_flight(fluid) if in_flight is None else np.asarray(in_flight, np.float64)
    if not np.isfinite(start).all():
        raise ValueError("the starting shares ask more of a cell than it completes")
    return _Solution(fluid, steps, spacing_s, start, primed).run()


def steady_in_flight(fluid: Fluid) -> Floats:
    """N at which the cells complete what the starting shares send; infinite where they cannot."""
    return fluid.cells.in_flight(fluid.rates_per_s @ fluid.start)


class _Solution:
    """The grid while it is filled."""

    def __init__(self, fluid: Fluid, steps: int, spacing_s: float, start: Floats, primed: bool) -> None:
        self._fluid = fluid
        self._spacing_s = spacing_s
        self._steps = steps
        self._in_flight = np.empty((steps + 1, len(start)))
        self._in_flight[0] = start
        self._shares = np.empty((steps + 1, *fluid.start.shape))
        self._shares[0] = fluid.start
        self._shares_known = 0  # index of the last known instant
        self._cells = np.arange(len(start))
        self._lines = np.arange(len(fluid.start))[:, None]
        self._rates_per_s = fluid.rates_per_s
        self._offset, self._part = _split(fluid.travel_s / spacing_s)
        self._between = bool(self._part.any())  # some request arrives between two points of the grid
        self._primed = primed
        # A loop shorter than the grid is stretched to one step of it.
        self._view = math.floor(fluid.shortest_observation_s / spacing_s + 1e-9)
        self._block = max(1, self._view + math.floor(float(fluid.travel_s.min()) / spacing_s + 1e-9))

    def run(self) -> Trajectory:
        """Fill the grid."""
        for known in range(0, self._steps, self._block):
            until = min(known + self._block, self._steps)
            self._move_shares(known, min(known + max(self._view, 1), self._steps))
            self._move_cells(known, until)
        self._move_shares(self._steps, self._steps)
        return Trajectory(self._spacing_s, self._in_flight, self._shares)

    def _move_shares(self, known: int, until: int) -> None:
        """Shares up to an index, from cells known up to another."""
        first = self._shares_known + 1
        if first > until:
            return
        grid_s = np.asarray(np.arange(first, until + 1) * self._spacing_s, np.float64)
        line = 0
        for group in self._fluid.streams:
            lines = slice(line, line + len(group.rates_per_s))
            looks_s, weights_s = group.rule.instants.looks_s(grid_s, self._spacing_s)
            seen = self._seen(looks_s[:, :, None] - group.observation_s, known)
            self._shares[first : until + 1, lines] = group.rule.shares(
                group.cost(seen), weights_s, self._shares[first - 1, lines], group.allowed
            )
            line = lines.stop
        self._shares_known = until

    def _seen(self, at_s: Floats, known: int) -> Floats:
        """In flight as observed at these instants, or as last reported up to them."""
        reports = self._fluid.reports
        measured_s = at_s if reports is None else reports.measured_s(at_s)
        at = np.minimum(np.maximum(measured_s / self._spacing_s, 0.0), known)
        index = at.astype(np.intp)
        part = at - index
        low = self._in_flight[index, self._cells]
        return np.asarray(low + part * (self._in_flight[np.minimum(index + 1, known), self._cells] - low))

    def _move_cells(self, known: int, until: int) -> None:
        """In flight from one index to another."""
        arriving = self._arriving(known, until)
        middles = 0.5 * (arriving[:-1] + arriving[1:])
        start = self._in_flight[known]
        path = None
        if len(middles) >= _WORTH_WHILE:
            path = _all_at_once(self._fluid.cells, start, middles, self._spacing_s)
        if path is None:
            path = _one_by_one(self._fluid.cells, start, middles, self._spacing_s)
        self._in_flight[known + 1 : until + 1] = path

    def _arriving(self, first: int, last: int) -> Floats:
        """Requests per second that reach each cell, at the indices first to last; shape (indices, cells)."""
        sent = self._sent(np.arange(first - 1, last + 1)[:, None, None] - self._offset)
        arriving = sent[1:]
        if self._between:
            arriving = arriving + self._part * (sent[:-1] - arriving)
        return np.asarray(np.einsum("i,kij->kj", self._rates_per_s, arriving))

    def _sent(self, index: NDArray[np.intp]) -> Floats:
        """Shares at these indices; before the start those of the start, or none."""
        known = np.minimum(np.maximum(index, 0), self._shares_known)
        shares = self._shares[known, self._lines, self._cells]
        return shares if self._primed else np.where(index >= 0, shares, 0.0)


def _one_by_one(cells: RateFamily, start: Floats, arriving: Floats, spacing_s: float) -> Floats:
    """In flight at the end of each step: N + (1 - exp(-a h)) / a * (r - l(N)), a = l'(N); shape of `arriving`."""
    path = np.empty(arriving.shape)
    now = start
    for index, rate in enumerate(arriving):
        relaxed = np.maximum(cells.slope_per_s(now) * spacing_s, _NO_SLOPE)
        gained = (rate - cells.rate_per_s(now)) * (-np.expm1(-relaxed) / relaxed)
        now = path[index] = np.maximum(now + spacing_s * gained, 0.0)
    return path


def _all_at_once(cells: RateFamily, start: Floats, arriving: Floats, spacing_s: float) -> Floats | None:
    """The same path by Newton's method for all steps together, several times as fast; None where it does not settle.

    With the steps linearised about a guess they are a linear recurrence, whose solution is a sum; the solution is the
    next guess. A corner of l (a cap) or a cell that runs empty may keep it from settling.
    """
    before = np.empty(arriving.shape)  # N at the beginning of each step
    before[0] = start
    steady = arriving[:-1] - cells.rate_per_s(start)
    before[1:] = np.maximum(start + spacing_s * steady.cumsum(axis=0), 0.0)  # as if no cell changed its rate
    for _ in range(_MOST_ROUNDS):
        rate_per_s, slope_per_s, bend_per_s = cells.expansion(before)
        slope_per_s = np.maximum(slope_per_s, _NO_SLOPE)
        weight_s = np.expm1(-spacing_s * slope_per_s) / -slope_per_s
        net_per_s = arriving - rate_per_s
        # How much of a difference before a step is left after it; the weight falls by half a spacing times itself for
        # each unit of slope, to first order.
        kept = 1.0 - weight_s * (slope_per_s + 0.5 * spacing_s * bend_per_s * net_per_s)
        left = kept.cumprod(axis=0)
        if kept.min() <= 0.0 or left[-1].min() < _LEAST_LEFT:
            return None
        gains = weight_s * net_per_s + (1.0 - kept) * before
        path = left * (start + (gains / left).cumsum(axis=0))
        moved = np.abs(path[:-1] - before[1:]).max()
        if moved <= _SETTLED * path.max():
            return np.asarray(path) if path.min() >= 0.0 else None
        before[1:] = path[:-1]
    return None


def _split(delays: Floats) -> tuple[NDArray[np.intp], Floats]:
    """Whole steps of delays, and the part of a step beyond; rounding does not count as a part."""
    whole = np.floor(delays + 1e-9)
    return whole.astype(np.intp), np.maximum(delays - whole, 0.0)
