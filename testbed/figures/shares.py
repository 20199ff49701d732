"""Figure: how each root splits its requests over the cells, over time, a panel per arm."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from testbed.analysis.records import Floats, row_count
from testbed.analysis.settling import cell_probability, probability_series, ratios
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
from testbed.scenario.quantity import format_s

REQUESTS_PER_BIN = 30  # at one root: enough for a share to say something, at a deviation of a tenth
BINS_PER_LOOP_DELAY = 4
MOST_BINS = 400
MOST_ROOTS = 6  # whose own lines can be told from a haze


@in_style
def draw_shares(arms: Sequence[DrawnArm]) -> Figure:
    """Routing probabilities where a policy moves them, else shares of arrivals; thin: a root, thick: all roots."""
    colours = cell_colours(arms[0].scenario.cells)
    said = (
        "Thick: mean over roots weighted by their requests; thin: each root. Policies that keep "
        "probabilities show these, the others the share of arrivals in bins of the width given."
    )
    figure, panels = arm_panels(arms, "Where each root sends its requests", caption(arms, said))
    for arm, panel in zip(arms, panels, strict=True):
        what = _draw_arm(panel, arm, colours)
        theory = arm.fluid
        if theory is not None and theory.shares is not None:
            for cell, line in zip(arm.scenario.cells, theory.shares.T, strict=True):
                dashed(panel, theory.at_s, line, colours[cell])
        shade_time(panel, arm, drawn_window(arm).to_s)
        stamp(panel, arm, what)
        panel.set_xlabel(TIME_LABEL)
    panels[0].set_ylabel("share of a root's requests")
    panels[0].set_ylim(-0.02, 1.02)  # so that all or nothing can be seen
    handles = [Line2D([], [], color=colour, lw=2.2, label=cell) for cell, colour in colours.items()]
    legend(figure, [*handles, *theory_legend(arms), *shading_legend(arms)])
    return figure


def _draw_arm(panel: Axes, arm: DrawnArm, colours: dict[str, str]) -> str:
    """Draw an arm's lines; says what they are."""
    updates, requests = arm.tables.get("updates", {}), arm.tables["requests"]
    end_s = drawn_window(arm).to_s
    if row_count(updates):
        edges = time_bins(end_s)
        for cell, colour in colours.items():
            thin = list(probability_series(updates, cell, edges).values())
            _lines(panel, edges, thin, cell_probability(updates, requests, cell, edges), colour)
        return "probabilities"
    edges = _bins(arm, end_s)
    nodes = list(dict.fromkeys(requests["root"].tolist()))
    for cell, colour in colours.items():
        shares = [_share(arm, cell, node, edges) for node in nodes]
        _lines(panel, edges, shares, _share(arm, cell, None, edges), colour)
    return f"arrivals per {format_s(float(edges[1]))}"


def _lines(panel: Axes, edges: Floats, roots: list[Floats], everyone: Floats, colour: str) -> None:
    middles = (edges[:-1] + edges[1:]) / 2
    if 1 < len(roots) <= MOST_ROOTS:
        for series in roots:
            panel.plot(middles, series, color=colour, lw=0.6, alpha=0.45)
    panel.plot(middles, everyone, color=colour, lw=1.8)


def _bins(arm: DrawnArm, end_s: float) -> Floats:
    """Bins of a quarter of the loop delay, or wider where a root would send too few requests in one."""
    sent = int((arm.tables["requests"]["planned_at_s"] < end_s).sum())
    per_root_s = sent / max(1, len(arm.scenario.roots)) / end_s
    loop_delay_s = arm.summary["policy"]["loop_delay_s"] or end_s / MOST_BINS
    width_s = max(
        loop_delay_s / BINS_PER_LOOP_DELAY, REQUESTS_PER_BIN / max(per_root_s, 1e-9), end_s / MOST_BINS
    )
    return np.linspace(0.0, end_s, max(1, round(end_s / width_s)) + 1)


def _share(arm: DrawnArm, cell: str, node: str | None, edges: Floats) -> Floats:
    requests = arm.tables["requests"]
    chosen = requests["cell"] != ""
    if node is not None:
        chosen = chosen & (requests["root"] == node)
    planned = requests["planned_at_s"]
    everyone, _ = np.histogram(planned[chosen], edges)
    mine, _ = np.histogram(planned[chosen & (requests["cell"] == cell)], edges)
    return ratios(mine, everyone)
