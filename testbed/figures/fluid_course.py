"""The course of the noise-free fluid of an arm, at the instants that a panel can show."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from testbed.analysis.records import Floats
from testbed.scenario.schema import Scenario
from testbed.theory.fluid import Trajectory, solve
from testbed.theory.fluid_form import fluid_form
from testbed.theory.fluid_rule import BetterOfTwo, Greedy
from testbed.theory.swing import long_run

PERIODS = 3
POINTS = 1500  # of a line; a panel resolves no more


class Overlay(NamedTuple):
    """The fluid at instants that a panel can show.

    Attributes:
        at_s: shape (instants,).
        in_flight: shape (instants, cells).
        shares: of all requests together, shape (instants, cells); None where requests are placed one by one, and the
            fluid knows all or nothing.
    """

    at_s: Floats
    in_flight: Floats
    shares: Floats | None


def fluid_of(scenario: Scenario, end_s: float) -> Overlay | None:
    """The fluid of a scenario from empty until an instant; None where it has none."""
    form = fluid_form(scenario)
    if form.fluid is None or not end_s > 0.0:
        return None
    path = solve(form.fluid, end_s, in_flight=form.in_flight, primed=False, spacing_s=form.spacing_s)
    path = path.until(_shown_s(path))
    kept = np.unique(np.linspace(0, len(path.in_flight) - 1, POINTS).round().astype(np.intp))
    rates = form.fluid.rates_per_s
    is_gradual = not any(isinstance(group.rule, (Greedy, BetterOfTwo)) for group in form.fluid.streams)
    shares = np.einsum("i,kij->kj", rates / rates.sum(), path.shares[kept]) if is_gradual else None
    return Overlay(path.at_s[kept], path.in_flight[kept], shares)


def _shown_s(path: Trajectory) -> float:
    """All of it; of a lasting oscillation three periods, since noise soon shifts the phase of what was measured."""
    swing = long_run(path)
    return math.inf if swing.period_s is None else PERIODS * swing.period_s
