"""The noise-free fluid of an arm, dashed over what was measured; nothing where the theory does not apply."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patheffects import Normal, Stroke

from testbed.analysis.records import Floats
from testbed.figures.arm import DrawnArm
from testbed.figures.crowd import CROWD_COLOUR, is_crowd

DASHES = (4.0, 2.2)


def overlay(panel: Axes, arm: DrawnArm, lines: Floats, colours: Mapping[str, str]) -> None:
    """The lines of theory of the cells that have a colour; of a crowd also their median.

    Args:
        panel: to draw on.
        arm: whose fluid it is.
        lines: at the fluid's instants: shape (points, cells).
        colours: of cells.
    """
    assert arm.fluid is not None, "there is something to lay over"
    for cell, line in zip(arm.scenario.cells, lines.T, strict=True):
        if cell in colours:
            dashed(panel, arm.fluid.at_s, line, colours[cell])
    if is_crowd(len(arm.scenario.cells)):
        dashed(panel, arm.fluid.at_s, np.median(lines, axis=1), CROWD_COLOUR)


def dashed(panel: Axes, at_s: Floats, values: Floats, colour: str) -> None:
    """A line of theory: dashed, with a thin white rim so that it shows on what was measured."""
    panel.plot(
        at_s, values, color=colour, lw=1.3, ls="--", dashes=DASHES, zorder=4,
        path_effects=[Stroke(linewidth=2.6, foreground="white", alpha=0.75), Normal()],
    )  # fmt: skip


def theory_legend(arms: Sequence[DrawnArm]) -> list[Artist]:
    """What the dashes mean, for the legend; nothing where no arm has any."""
    if all(arm.fluid is None for arm in arms):
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
