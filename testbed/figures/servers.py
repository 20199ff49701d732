"""Figure: requests at each server over time, a panel per arm."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from testbed.analysis.records import Floats, Window, codes, positions_by, row_count
from testbed.figures.arm import DrawnArm, drawn_window
from testbed.figures.colours import CELL_COLOURS, cell_colours
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
from testbed.scenario.topology import build_topology

MOST_POINTS = 600  # of a line; more samples than that are averaged
FEW = len(CELL_COLOURS)  # servers that have a colour each; of more, all of a cell share one


@in_style
def draw_servers(arms: Sequence[DrawnArm]) -> Figure:
    """Requests queued and running at each server, from the samples of the truth, all arms on the same axes."""
    said = "Requests that wait or run at a server, from samples of the truth."
    figure, panels = arm_panels(arms, "Requests at each server", caption(arms, said))
    colours = server_colours(arms[0])
    for arm, panel in zip(arms, panels, strict=True):
        end_s = drawn_window(arm).to_s
        _draw_arm(panel, arm, colours, end_s)
        shade_time(panel, arm, end_s)
        stamp(panel, arm)
        panel.set_xlabel(TIME_LABEL)
    panels[0].set_ylabel("requests")
    panels[0].set_ylim(bottom=0)
    legend(figure, [*_lines(arms[0], colours), *shading_legend(arms)])
    return figure


def server_colours(arm: DrawnArm) -> dict[str, str]:
    """The colour of each server: its own where there are few, else that of its cell."""
    servers = build_topology(arm.scenario).servers
    names = [name for of_cell in servers.values() for name in of_cell]
    if len(names) <= FEW:
        return cell_colours(names)
    cells = cell_colours(servers)
    return {name: cells[cell] for cell, of_cell in servers.items() for name in of_cell}


def requests_at_servers(arm: DrawnArm, window: Window) -> dict[str, tuple[Floats, Floats]]:
    """Instants and requests there, of each server that was sampled in the window; averaged where samples are many."""
    samples = arm.tables.get("cells", {})
    if not row_count(samples):
        return {}
    names = [name for of_cell in build_topology(arm.scenario).servers.values() for name in of_cell]
    at_s = samples["at_s"]
    inside = window.holds(at_s)
    groups = positions_by(np.where(inside, codes(samples["server"], names), -1), len(names))
    there = samples["queued"] + samples["running"]
    return {
        name: (_thinned(at_s[rows]), _thinned(there[rows].astype(np.float64)))
        for name, rows in zip(names, groups, strict=True)
        if len(rows)
    }


def _draw_arm(panel: Axes, arm: DrawnArm, colours: dict[str, str], end_s: float) -> None:
    width = 1.2 if len(colours) <= FEW else 0.6
    for name, (at_s, there) in requests_at_servers(arm, Window(0.0, end_s)).items():
        panel.plot(at_s, there, color=colours.get(name, "#000000"), lw=width)


def _thinned(values: Floats) -> Floats:
    """Means over equal numbers of successive values, such that at most MOST_POINTS are left."""
    together = math.ceil(len(values) / MOST_POINTS)
    whole = len(values) // together * together
    return np.asarray(values[:whole].reshape(-1, together).mean(axis=1), np.float64)


def _lines(arm: DrawnArm, colours: dict[str, str]) -> list[Artist]:
    if len(colours) > FEW:
        named = cell_colours(arm.scenario.cells)
    elif len(arm.scenario.cells) == 1:
        named = {name.rpartition("/")[2]: colour for name, colour in colours.items()}
    else:
        named = colours
    return [Line2D([], [], color=colour, lw=2, label=name) for name, colour in named.items()]
