"""Figure: servers in use in each cell that has an autoscaler, and what it wanted, over time, a panel per arm."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from testbed.figures.arm import DrawnArm, drawn_window
from testbed.figures.colours import cell_colours
from testbed.figures.page import arm_panels, caption, in_style, legend, shade_time, shading_legend, stamp


@in_style
def draw_scaling(arms: Sequence[DrawnArm]) -> Figure:
    """Servers that take requests; thin: what the rule wanted, whatever came of it."""
    colours = cell_colours(arms[0].scenario.cells)
    said = "Thick: servers that take requests, without those that start up; thin: what the rule wanted."
    figure, panels = arm_panels(arms, "Servers in use", caption(arms, said))
    for arm, panel in zip(arms, panels, strict=True):
        scalings = arm.tables["scalings"]
        for cell, colour in colours.items():
            mine = scalings["cell"] == cell
            at_s = scalings["at_s"][mine]
            panel.step(at_s, scalings["wanted"][mine], where="post", color=colour, lw=0.6, alpha=0.6)
            panel.step(at_s, scalings["in_use"][mine], where="post", color=colour, lw=1.8)
        shade_time(panel, [arm], drawn_window(arm).to_s)
        stamp(panel, arm, "in use and wanted")
        panel.set_xlabel("time (s)")
        panel.set_xlim(0.0, drawn_window(arm).to_s)
    panels[0].set_ylabel("servers of a cell")
    panels[0].set_ylim(bottom=0.0)
    scaled = [cell for cell, words in arms[0].scenario.cells.items() if words.autoscaler is not None]
    handles = [Line2D([], [], color=colours[cell], lw=2.2, label=cell) for cell in scaled]
    legend(figure, [*handles, *shading_legend(arms)])
    return figure
