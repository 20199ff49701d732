"""Figure: requests in flight per cell over time, a panel per arm."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from testbed.figures.arm import DrawnArm, drawn_window, time_bins
from testbed.figures.crowd import crowd_said, draw_lines, line_legend
from testbed.figures.fluid_overlay import overlay, theory_legend
from testbed.figures.named_cells import named_cells
from testbed.figures.page import (
    TIME_LABEL,
    arm_panels,
    caption,
    in_style,
    legend,
    shade_time,
    shading_legend,
    stamp,
)

# Where the busiest arm holds this many times the requests of the calmest, a linear axis would flatten the latter.
LOG_RATIO = 8.0


@in_style
def draw_in_flight(arms: Sequence[DrawnArm]) -> Figure:
    """Requests in flight per cell over time, averaged exactly over narrow bins, all arms on the same axes."""
    colours, count = named_cells(arms), len(arms[0].scenario.cells)
    said = "Requests that have reached a cell's leaf and not left it, exact means over bins of 1/600 of the time."
    said += crowd_said(count, "cells")
    figure, panels = arm_panels(arms, "Requests in flight per cell", caption(arms, said))
    peaks = []
    for arm, panel in zip(arms, panels, strict=True):
        end_s = drawn_window(arm).to_s
        edges = time_bins(end_s)
        draw_lines(panel, (edges[:-1] + edges[1:]) / 2, arm.in_flight, colours, 1.2)
        if arm.fluid is not None:
            overlay(panel, arm, arm.fluid.in_flight, colours)
        shade_time(panel, [arm], end_s)
        stamp(panel, arm, _swing(arm))
        panel.set_xlabel(TIME_LABEL)
        peaks.append(max(float(series.max()) for series in arm.in_flight.values()))
    panels[0].set_ylabel("requests in flight")
    if min(peaks) > 0 and max(peaks) > LOG_RATIO * min(peaks):
        panels[0].set_yscale("symlog", linthresh=10, linscale=0.5)
        panels[0].set_ylabel("requests in flight (log scale above 10)")
    panels[0].set_ylim(bottom=0)
    legend(figure, [*line_legend(count, "cells", colours, 2.0), *theory_legend(arms), *shading_legend(arms)])
    return figure


def _swing(arm: DrawnArm) -> str:
    """Amplitude and period in words."""
    swing = arm.summary["oscillation"]
    if swing["amplitude"] is None:
        return ""
    period = f", period {swing['period_s']:.2g} s" if swing["significant"] else ", no period"
    return f"amplitude {swing['amplitude']:.2f}{period}"
