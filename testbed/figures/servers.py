"""Figure: requests at each server over time, a panel per arm.

Few servers have a colour each, some share that of their cell; a crowd is drawn as bands, with those that stray furthest
by name.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from testbed.analysis.records import Floats, Window, codes, positions_by, row_count
from testbed.figures.arm import DrawnArm, drawn_window, time_bins
from testbed.figures.colours import CELL_COLOURS, cell_colours
from testbed.figures.crowd import MOST_LINES, crowd_said, draw_lines, line_legend, noted
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
MOST_SERVERS = 24  # lines of shared colours in which one can still be followed


@in_style
def draw_servers(arms: Sequence[DrawnArm]) -> Figure:
    """Requests queued and running at each server, from the samples of the truth, all arms on the same axes."""
    names, crowd = _servers(arms[0]), is_crowd_of_servers(arms[0])
    said = "Requests that wait or run at a server, from samples of the truth."
    said += crowd_said(len(names), "servers") if crowd else ""
    figure, panels = arm_panels(arms, "Requests at each server", caption(arms, said))
    lines = [binned(arm) if crowd else {} for arm in arms]
    colours = (
        cell_colours(noted([each for each in lines if each], _struck(arms)))
        if crowd
        else server_colours(arms[0])
    )
    for arm, panel, series in zip(arms, panels, lines, strict=True):
        end_s = drawn_window(arm).to_s
        if series:
            edges = sample_bins(arm)
            draw_lines(panel, (edges[:-1] + edges[1:]) / 2, series, colours, 1.2)
        elif not crowd:
            _draw_arm(panel, arm, colours, end_s)
        shade_time(panel, [arm], end_s)
        stamp(panel, arm)
        panel.set_xlabel(TIME_LABEL)
    panels[0].set_ylabel("requests")
    panels[0].set_ylim(bottom=0)
    handles = line_legend(len(names), "servers", colours, 2.0) if crowd else _lines(arms[0], colours)
    legend(figure, [*handles, *shading_legend(arms)])
    return figure


def is_crowd_of_servers(arm: DrawnArm) -> bool:
    """Whether the servers are too many for a line each, or for a colour by their cell."""
    servers = build_topology(arm.scenario).servers
    count = sum(map(len, servers.values()))
    return count > MOST_SERVERS or (count > FEW and len(servers) > MOST_LINES)


def sample_bins(arm: DrawnArm) -> Floats:
    """Edges of bins in which every server is sampled at least once, as far as a panel can resolve them."""
    end_s = drawn_window(arm).to_s
    return time_bins(end_s, max(1, min(MOST_POINTS, int(end_s / arm.scenario.records.samples))))


def binned(arm: DrawnArm) -> dict[str, Floats]:
    """Mean of each server's samples in each of `sample_bins`, NaN where it has none; empty where nothing was sampled."""
    samples, names, edges = arm.tables.get("cells", {}), _servers(arm), sample_bins(arm)
    if not row_count(samples) or not edges[-1] > 0.0:
        return {}
    bins = np.searchsorted(edges, samples["at_s"], side="right") - 1
    server = codes(samples["server"], names)
    inside = (server >= 0) & (bins >= 0) & (bins < len(edges) - 1)
    places = (server * (len(edges) - 1) + bins)[inside]
    there = (samples["queued"] + samples["running"])[inside]
    shape, size = (len(names), len(edges) - 1), len(names) * (len(edges) - 1)
    sums = np.bincount(places, weights=there, minlength=size).reshape(shape)
    counts = np.bincount(places, minlength=size).reshape(shape)
    means = np.divide(sums, counts, out=np.full(shape, np.nan), where=counts > 0)
    return dict(zip(names, means, strict=True))


def _struck(arms: Sequence[DrawnArm]) -> list[str]:
    """Servers that a fault is about."""
    return [fault.server for arm in arms for fault in arm.scenario.faults if fault.server is not None]


def _servers(arm: DrawnArm) -> list[str]:
    return [name for of_cell in build_topology(arm.scenario).servers.values() for name in of_cell]


def server_colours(arm: DrawnArm) -> dict[str, str]:
    """The colour of each server: its own where there are few, else that of its cell."""
    servers, names = build_topology(arm.scenario).servers, _servers(arm)
    if len(names) <= FEW:
        return cell_colours(names)
    cells = cell_colours(servers)
    return {name: cells[cell] for cell, of_cell in servers.items() for name in of_cell}


def requests_at_servers(arm: DrawnArm, window: Window) -> dict[str, tuple[Floats, Floats]]:
    """Instants and requests there, of each server that was sampled in the window; averaged where samples are many."""
    samples = arm.tables.get("cells", {})
    if not row_count(samples):
        return {}
    names = _servers(arm)
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
