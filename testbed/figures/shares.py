"""Figure: how each root splits its requests over the cells, over time, a panel per arm."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from testbed.analysis.records import Floats, codes, row_count
from testbed.analysis.settling import cell_probability, probability_series
from testbed.figures.arm import DrawnArm, drawn_window, time_bins
from testbed.figures.crowd import crowd_said, draw_lines, is_crowd, line_legend, quantiles
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
from testbed.scenario.quantity import format_s

REQUESTS_PER_BIN = 30  # at one root: enough for a share to say something, at a deviation of a tenth
BINS_PER_LOOP_DELAY = 4
MOST_BINS = 400
MOST_ROOTS = 6  # whose own lines can be told from a haze


class Shares(NamedTuple):
    """Shares of the requests that went to each cell.

    Attributes:
        edges: of the bins, seconds.
        everyone: of all roots together, by cell: shape (bins,); NaN where nothing was sent.
        roots: of each root, or each class of it, by cell: shape (roots, bins); empty where there are too many cells.
        said: what they are.
    """

    edges: Floats
    everyone: dict[str, Floats]
    roots: dict[str, Floats]
    said: str


@in_style
def draw_shares(arms: Sequence[DrawnArm]) -> Figure:
    """Routing probabilities where a policy moves them, else shares of arrivals; thin: a root, thick: all roots."""
    colours, count = named_cells(arms), len(arms[0].scenario.cells)
    most_roots = max(len(arm.scenario.roots) for arm in arms)
    of_roots = "thin: each root" if most_roots <= MOST_ROOTS else f"bands: nine in ten of {most_roots} roots"
    said = (
        f"Thick: mean over roots weighted by their requests{'' if is_crowd(count) else f'; {of_roots}'}. Policies that keep "
        f"probabilities show these, the others the share of arrivals in bins of the width given.{crowd_said(count, 'cells')}"
    )
    figure, panels = arm_panels(arms, "Where each root sends its requests", caption(arms, said))
    highest = 0.0
    for arm, panel in zip(arms, panels, strict=True):
        shares = shares_of(arm)
        _draw_roots(panel, shares, colours)
        draw_lines(panel, _middles(shares.edges), shares.everyone, colours, 1.2 if is_crowd(count) else 1.8)
        if arm.fluid is not None and arm.fluid.shares is not None:
            overlay(panel, arm, arm.fluid.shares, colours)
        highest = max([highest, *(float(np.nanmax(each, initial=0.0)) for each in shares.everyone.values())])
        shade_time(panel, [arm], drawn_window(arm).to_s)
        stamp(panel, arm, shares.said)
        panel.set_xlabel(TIME_LABEL)
    panels[0].set_ylabel("share of a root's requests")
    top = min(1.0, 1.1 * highest) or 1.0 if is_crowd(count) else 1.0
    panels[0].set_ylim(-0.02 * top, 1.02 * top)  # so that all or nothing can be seen
    legend(figure, [*line_legend(count, "cells", colours, 2.2), *theory_legend(arms), *shading_legend(arms)])
    return figure


def _draw_roots(panel: Axes, shares: Shares, colours: dict[str, str]) -> None:
    at_s = _middles(shares.edges)
    for cell, roots in shares.roots.items():
        colour = colours.get(cell, "#000000")
        if 1 < len(roots) <= MOST_ROOTS:
            panel.plot(at_s, roots.T, color=colour, lw=0.6, alpha=0.45)
        elif len(roots) > MOST_ROOTS:
            lowest, *_, highest = quantiles(roots)
            panel.fill_between(at_s, lowest, highest, color=colour, alpha=0.15, lw=0)


def _middles(edges: Floats) -> Floats:
    return (edges[:-1] + edges[1:]) / 2


def shares_of(arm: DrawnArm) -> Shares:
    """What the figure shows of an arm: mean probabilities where its policies move any, else shares of the arrivals."""
    updates, requests = arm.tables.get("updates", {}), arm.tables["requests"]
    cells, end_s = list(arm.scenario.cells), drawn_window(arm).to_s
    by_root: list[str] = [] if is_crowd(len(cells)) else cells
    if row_count(updates):
        edges = time_bins(end_s)
        everyone = {cell: cell_probability(updates, requests, cell, edges) for cell in cells}
        roots = {cell: np.array(list(probability_series(updates, cell, edges).values())) for cell in by_root}
        return Shares(edges, everyone, roots, "probabilities")
    edges = _bins(arm, end_s)
    of_all = _arrival_shares(arm, ["all"], np.zeros(row_count(requests), np.int64), edges)[0]
    nodes = list(dict.fromkeys(requests["root"].tolist())) if by_root else []
    of_roots = _arrival_shares(arm, nodes, codes(requests["root"], nodes), edges)
    return Shares(
        edges,
        dict(zip(cells, of_all, strict=True)),
        {cell: of_roots[:, place] for place, cell in enumerate(by_root)},
        f"arrivals per {format_s(float(edges[1]))}",
    )


def _arrival_shares(
    arm: DrawnArm, groups: Sequence[str], group: npt.NDArray[np.int64], edges: Floats
) -> Floats:
    """Shares of the arrivals of each group of roots that went to each cell: shape (groups, cells, bins).

    Args:
        arm: whose requests.
        groups: their names.
        group: of each request.
        edges: of the bins of planned instants, seconds.
    """
    requests, cells = arm.tables["requests"], list(arm.scenario.cells)
    shape = (len(groups), len(cells), len(edges) - 1)
    bins = np.searchsorted(edges, requests["planned_at_s"], side="right") - 1
    cell = codes(requests["cell"], cells)
    inside = (group >= 0) & (cell >= 0) & (bins >= 0) & (bins < shape[2])
    places = (group * shape[1] + cell) * shape[2] + bins
    counts = np.bincount(places[inside], minlength=math.prod(shape)).reshape(shape).astype(np.float64)
    wholes = counts.sum(axis=1, keepdims=True)
    shares: Floats = np.divide(counts, wholes, out=np.full(shape, np.nan), where=wholes > 0)
    return shares


def _bins(arm: DrawnArm, end_s: float) -> Floats:
    """Bins of a quarter of the loop delay, or wider where a root would send too few requests in one."""
    sent = int((arm.tables["requests"]["planned_at_s"] < end_s).sum())
    per_root_s = sent / max(1, len(arm.scenario.roots)) / end_s
    loop_delay_s = arm.summary["policy"]["loop_delay_s"] or end_s / MOST_BINS
    width_s = max(
        loop_delay_s / BINS_PER_LOOP_DELAY, REQUESTS_PER_BIN / max(per_root_s, 1e-9), end_s / MOST_BINS
    )
    return np.linspace(0.0, end_s, max(1, round(end_s / width_s)) + 1)
