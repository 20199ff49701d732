"""Figure: what became of the requests, by planned instant, and how many servers got; a panel per arm."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from testbed.analysis.records import Floats, row_count
from testbed.analysis.resending import given_at_s
from testbed.figures.arm import DrawnArm, drawn_window
from testbed.figures.colours import OUTCOME_COLOURS
from testbed.figures.page import (
    LEAST_WIDTH_IN,
    PANEL_WIDTH_IN,
    TIME_LABEL,
    caption,
    columns_for,
    in_style,
    legend,
    new_page,
    shade_time,
    shading_legend,
    stamp,
)
from testbed.roles.messages import OUTCOMES

BINS = 90
UPPER_IN, LOWER_IN = 2.6, 1.5
GIVEN_COLOUR = "#222222"


def has_outcomes_to_tell(arm: DrawnArm) -> bool:
    """Whether any request was not completed, or sent more than once."""
    return bool((arm.tables["requests"]["outcome"] != "completed").any()) or _sent_again(arm)


def _sent_again(arm: DrawnArm) -> bool:
    return row_count(arm.tables.get("attempts", {})) > 0


@in_style
def draw_outcomes(arms: Sequence[DrawnArm]) -> Figure:
    """Requests a second by what became of them; below, where any was sent again, how many copies servers got."""
    again = any(_sent_again(arm) for arm in arms)
    columns = columns_for(len(arms))
    rows = math.ceil(len(arms) / columns)
    heights = [UPPER_IN, LOWER_IN] if again else [UPPER_IN]
    said = f"Requests by the instant that they were planned for, in bins of 1/{BINS} of the time" + (
        "; below, copies that leaves gave to servers." if again else "."
    )
    width_in = max(LEAST_WIDTH_IN, PANEL_WIDTH_IN * columns)
    figure = new_page("What became of the requests", caption(arms, said), width_in, rows * sum(heights) + 0.6)
    grid = figure.subplots(
        rows * len(heights), columns, sharex=True, squeeze=False, height_ratios=heights * rows
    )
    for place in range(rows * columns):
        row, column = divmod(place, columns)
        panels = [grid[row * len(heights) + part, column] for part in range(len(heights))]
        if place < len(arms):
            _draw_arm(panels, arms[place])
        else:
            for panel in panels:
                panel.set_visible(False)
    _share_axes(grid, len(heights))
    legend(figure, [*_areas(arms), *_copies(again), *shading_legend(arms)])
    return figure


def _draw_arm(panels: Sequence[Axes], arm: DrawnArm) -> None:
    end_s = drawn_window(arm).to_s
    edges = np.linspace(0.0, max(end_s, 1e-9), BINS + 1)
    requests, width_s = arm.tables["requests"], float(edges[1])
    floor = np.zeros(BINS)
    for outcome in OUTCOMES:
        counts, _ = np.histogram(requests["planned_at_s"][requests["outcome"] == outcome], edges)
        top = floor + counts / width_s
        panels[0].stairs(top, edges, baseline=floor, fill=True, color=OUTCOME_COLOURS[outcome], lw=0)
        floor = top
    for part in panels[1:]:
        part.stairs(given_per_s(arm, edges), edges, baseline=None, color=GIVEN_COLOUR, lw=1.3)
    for panel in panels:
        shade_time(panel, [arm], end_s, filled=panel is panels[0])
        panel.set_ylim(bottom=0)
    stamp(panels[0], arm)
    panels[-1].set_xlabel(TIME_LABEL)
    panels[-1].tick_params(labelbottom=True)


def given_per_s(arm: DrawnArm, edges: Floats) -> Floats:
    """Copies of requests that leaves gave to servers, a second, in each bin."""
    counts, _ = np.histogram(given_at_s(arm.tables["requests"], arm.tables.get("attempts", {})), edges)
    return np.asarray(counts / (edges[1] - edges[0]), np.float64)


def _share_axes(grid: np.ndarray[tuple[int, int], np.dtype[np.object_]], parts: int) -> None:
    """The same limits for all panels of a kind, with a name at the left."""
    for part, name in zip(range(parts), ("requests per s", "given per s"), strict=False):
        alike = [panel for row in grid[part::parts] for panel in row]
        highest = max(panel.get_ylim()[1] for panel in alike if panel.get_visible())
        for panel in alike:
            panel.set_ylim(0, highest)
        for row in grid[part::parts]:
            row[0].set_ylabel(name)
            for panel in row[1:]:
                panel.tick_params(labelleft=False)


def _areas(arms: Sequence[DrawnArm]) -> list[Artist]:
    """The outcomes that any arm has."""
    seen = [name for name in OUTCOMES if any(arm.summary["requests"][name] for arm in arms)]
    return [Patch(color=OUTCOME_COLOURS[name], lw=0, label=name.replace("_", " ")) for name in seen]


def _copies(again: bool) -> list[Artist]:
    return [Line2D([], [], color=GIVEN_COLOUR, lw=1.5, label="copies given to servers")] if again else []
