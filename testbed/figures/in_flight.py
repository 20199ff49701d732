"""Figure: requests in flight per cell over time, a panel per arm."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from testbed.analysis.in_flight import in_flight_by_cell
from testbed.figures.arm import DrawnArm, drawn_window
from testbed.figures.colours import cell_colours
from testbed.figures.fluid_overlay import dashed, theory_legend
from testbed.figures.page import (
    TIME_LABEL,
    arm_panels,
    caption,
    in_style,
    legend,
    shade_time,
    shading_legend,
    stamp,
    time_bins,
)

# Where the busiest arm holds this many times the requests of the calmest, a linear axis would flatten the latter.
LOG_RATIO = 8.0


@in_style
def draw_in_flight(arms: Sequence[DrawnArm]) -> Figure:
    """Requests in flight per cell over time, averaged exactly over narrow bins, all arms on the same axes."""
    colours = cell_colours(arms[0].scenario.cells)
    said = "Requests that have reached a cell's leaf and not left it, exact means over bins of 1/600 of the time."
    figure, panels = arm_panels(arms, "Requests in flight per cell", caption(arms, said))
    peaks = []
    for arm, panel in zip(arms, panels, strict=True):
        end_s = drawn_window(arm).to_s
        edges = time_bins(end_s)
        in_flight = in_flight_by_cell(arm.tables["requests"], list(arm.scenario.cells), edges)
        middles = (edges[:-1] + edges[1:]) / 2
        for cell, series in zip(arm.scenario.cells, in_flight, strict=True):
            panel.plot(middles, series, color=colours.get(cell, "#000000"), lw=1.2)
        theory = arm.fluid
        if theory is not None:
            for cell, line in zip(arm.scenario.cells, theory.in_flight.T, strict=True):
                dashed(panel, theory.at_s, line, colours.get(cell, "#000000"))
        shade_time(panel, arm, end_s)
        stamp(panel, arm, _swing(arm))
        panel.set_xlabel(TIME_LABEL)
        peaks.append(float(in_flight.max()))
    panels[0].set_ylabel("requests in flight")
    if min(peaks) > 0 and max(peaks) > LOG_RATIO * min(peaks):
        panels[0].set_yscale("symlog", linthresh=10, linscale=0.5)
        panels[0].set_ylabel("requests in flight (log scale above 10)")
    panels[0].set_ylim(bottom=0)
    handles = [Line2D([], [], color=colour, lw=2, label=cell) for cell, colour in colours.items()]
    legend(figure, [*handles, *theory_legend(arms), *shading_legend(arms)])
    return figure


def _swing(arm: DrawnArm) -> str:
    """Amplitude and period in words."""
    swing = arm.summary["oscillation"]
    if swing["amplitude"] is None:
        return ""
    period = f", period {swing['period_s']:.2g} s" if swing["significant"] else ", no period"
    return f"amplitude {swing['amplitude']:.2f}{period}"
