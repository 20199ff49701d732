"""The noise-free fluid of an arm, dashed over what was measured; nothing where the theory does not apply."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patheffects import Normal, Stroke

from testbed.analysis.records import Floats
from testbed.figures.arm import DrawnArm, drawn_window
from testbed.theory.fluid import Trajectory, solve
from testbed.theory.fluid_form import fluid_form
from testbed.theory.fluid_rule import BetterOfTwo, Greedy
from testbed.theory.swing import long_run

PERIODS = 3
POINTS = 1500  # of a line; a panel resolves no more
DASHES = (4.0, 2.2)


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


def fluid_of(arm: DrawnArm) -> Overlay | None:
    """The fluid of an arm over the time that is drawn, from empty; None where the scenario has none."""
    form = fluid_form(arm.scenario)
    end_s = drawn_window(arm).to_s
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


def dashed(panel: Axes, at_s: Floats, values: Floats, colour: str) -> None:
    """A line of theory: dashed, with a thin white rim so that it shows on what was measured."""
    panel.plot(
        at_s, values, color=colour, lw=1.3, ls="--", dashes=DASHES, zorder=4,
        path_effects=[Stroke(linewidth=2.6, foreground="white", alpha=0.75), Normal()],
    )  # fmt: skip


def theory_legend(arms: Sequence[DrawnArm]) -> list[Artist]:
    """What the dashes mean, for the legend; nothing where no arm has any."""
    if all(fluid_form(arm.scenario).fluid is None for arm in arms):
        return []
    return [
        Line2D(
            [],
            [],
            color="#444444",
            lw=1.3,
            dashes=DASHES,
            label="noise-free fluid (of a lasting oscillation, the first three periods)",
        )
    ]
