"""V5 to V7: the herd of greedy routing on delayed counts, in the noise-free model."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np

from testbed.theory.fluid import Fluid, Streams, solve
from testbed.theory.fluid_rule import BetterOfTwo, Greedy, Rule
from testbed.theory.limit_cycle import LimitCycle, greedy_cycle
from testbed.theory.rate_family import ClippedServers
from testbed.theory.stability import Floats
from testbed.verification.equal_cells import EqualCells
from testbed.verification.finding import Finding, within

RHO, CAPACITY_PER_S, HALF = 0.8, 50.0, 10.0
_POINTS = 100  # of the grid in a loop delay: they lock the period to a hundredth of it
_LOOPS = 120  # loop delays that are followed; the second half counts


class Herd(NamedTuple):
    """The limit cycle of greedy routing between equal hyperbolic cells.

    Attributes:
        cost: mean requests in flight over those at the optimum.
        peak: largest count of a cell over that at the optimum.
        swing: half of the range of N_1 - N_2 over the count of both at the optimum.
        period: in loop delays.
    """

    cost: float
    peak: float
    swing: float
    period: float


def period_and_swing(quick: bool) -> Iterator[Finding]:
    """V5: two cells, the period from 4 T to 2 T as they relax faster, and the swing of requests in flight."""
    for relaxations in (0.1, 0.5, 1.0, 5.0):
        cycle, found_cycle = greedy_cycle(1.0, relaxations, 1.0), linear_cycle(relaxations)
        yield within(
            "V5", f"greedy, two linear cells, aT={relaxations:g}: period", "theory 7, (11)", "fluid",
            expected=cycle.period_s, measured=found_cycle.period_s, relative=0.05, unit="T",
        )  # fmt: skip
        yield within(
            "V5", f"greedy, two linear cells, aT={relaxations:g}: peak of N1 - N2", "theory 7, (11)", "fluid",
            expected=cycle.peak, measured=found_cycle.peak, relative=0.05, unit="Lambda T",
        )  # fmt: skip
    for ratio in (0.2, 0.5, 1.0):
        setting = _setting(2, ratio)
        cycle = greedy_cycle(setting.rate_per_s, setting.a_per_s, setting.loop_delay_s)
        found = herd(2, ratio)
        yield within(
            "V5", f"greedy, two hyperbolic cells, T/W={ratio:g}: period", "theory 7, (11)", "fluid",
            expected=cycle.period_s / setting.loop_delay_s, measured=found.period, relative=0.05, unit="T",
        )  # fmt: skip
        yield within(
            "V5", f"greedy, two hyperbolic cells, T/W={ratio:g}: swing of a cell over the optimum",
            "theory 7, (11): near T/W", "fluid",
            expected=cycle.peak / (2 * float(setting.in_flight[0])), measured=found.swing, relative=0.05,
        )  # fmt: skip


def cost_of_herding(quick: bool) -> Iterator[Finding]:
    """V6: mean requests in the cells over the optimum."""
    for ratio, cost in ((0.2, 1.010), (0.8, 1.144), (1.0, 1.216), (4.0, 2.784)):
        yield within(
            "V6", f"greedy, two cells, rho 0.8, T/W={ratio:g}: cost / optimum", "theory 7", "fluid",
            expected=cost, measured=herd(2, ratio).cost, relative=0.03,
        )  # fmt: skip


def many_cells(quick: bool) -> Iterator[Finding]:
    """V7: the herd grows with the number of cells; the better of two does not."""
    for cells, shortest, two in ((2, 1.54, 1.54), (4, 2.22, 1.36), (8, 3.83, 1.35)):
        for name, peak, of_two in (("shortest queue", shortest, False), ("better of two", two, True)):
            yield within(
                "V7", f"{name}, {cells} cells, T/W=0.5: peak / optimum", "theory 7", "fluid",
                expected=peak, measured=herd(cells, 0.5, of_two).peak, relative=0.05,
            )  # fmt: skip
    for name, cost, of_two in (("shortest queue", 1.777, False), ("better of two", 1.031, True)):
        yield within(
            "V7", f"{name}, 8 cells, T/W=0.5: cost / optimum", "theory 7", "fluid",
            expected=cost, measured=herd(8, 0.5, of_two).cost, relative=0.05,
        )  # fmt: skip


@cache
def herd(cells: int, ratio: float, of_two: bool = False) -> Herd:
    """Greedy routing, or the better of two, on delayed counts; `ratio` is T/W."""
    setting = _setting(cells, ratio)
    rule: Rule = BetterOfTwo() if of_two else Greedy()
    delay_s = setting.loop_delay_s
    spread = np.linspace(1.01, 0.99, cells)
    path = solve(
        setting.fluid(rule, cost=_count),
        _LOOPS * delay_s,
        in_flight=setting.in_flight * spread,
        spacing_s=delay_s / _POINTS,
    ).after(_LOOPS / 2 * delay_s)
    optimum, first = float(setting.in_flight[0]), path.in_flight[:, 0]
    difference = first - path.in_flight[:, 1]
    return Herd(
        float(path.in_flight.mean()) / optimum,
        float(path.in_flight.max()) / optimum,
        float(np.ptp(difference)) / 2 / (2 * optimum),
        _period(first - first.mean(), path.spacing_s) / delay_s,
    )


def _setting(cells: int, ratio: float) -> EqualCells:
    sojourn_s = HALF / CAPACITY_PER_S / (1.0 - RHO)
    return EqualCells(cells, RHO, "hyperbolic", CAPACITY_PER_S, HALF, ratio * sojourn_s / 2)


@cache
def linear_cycle(relaxations: float) -> LimitCycle:
    """The cycle that the fluid of two cells of l = a N falls into under one greedy root; in T and Lambda T."""
    cells = ClippedServers(np.full(2, relaxations), np.full(2, np.inf))
    half = np.full((1, 2), 0.5)
    streams = Streams(
        np.ones(1), half, half, np.ones((1, 2), dtype=bool), np.array([[1.0, 0.0]]), _count, Greedy()
    )
    path = solve(Fluid(cells, (streams,)), _LOOPS, in_flight=np.array([0.1, 0.0]), spacing_s=1.0 / _POINTS)
    last = path.after(_LOOPS / 2).in_flight
    difference = last[:, 0] - last[:, 1]
    return LimitCycle(_period(difference, path.spacing_s), float(difference.max()))


def _count(seen: Floats) -> Floats:
    """Requests in flight themselves are the cost."""
    return seen


def _period(series: Floats, spacing_s: float) -> float:
    """Mean distance of the upward crossings of 0."""
    crossings = np.flatnonzero((series[:-1] < 0.0) & (series[1:] >= 0.0))
    return float(np.diff(crossings).mean()) * spacing_s if len(crossings) > 1 else float("nan")
