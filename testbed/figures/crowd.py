"""More lines than can be told apart: all of them as bands of quantiles, and by name the few that stray furthest.

Up to MOST_LINES each has a line and a colour of its own. Beyond that a reader still wants to see where most of them are,
how far apart, and which are not like the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from testbed.analysis.records import Floats
from testbed.figures.colours import CELL_COLOURS

MOST_LINES = len(CELL_COLOURS)
MOST_NAMED = 4
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
CROWD_COLOUR = "#5E4FA2"  # violet: neither a cell's nor that of a shaded time
_OUTER, _INNER = 0.16, 0.28  # how dark the bands are
_UNNAMED = "#000000"  # a line of an arm that has other names than the rest


def is_crowd(count: int) -> bool:
    """Whether so many lines are too many for each to have a colour."""
    return count > MOST_LINES


def quantiles(series: Floats) -> Floats:
    """QUANTILES over the lines at each point: shape (5, points); NaN where nothing is known of any.

    Args:
        series: shape (lines, points); NaN: nothing known.
    """
    found = np.full((len(QUANTILES), series.shape[1]), np.nan)
    known = np.isfinite(series).any(axis=0)
    found[:, known] = np.nanquantile(series[:, known], QUANTILES, axis=0)
    return found


def straying(series: Floats) -> Floats:
    """How far each line is from the median of all, root mean square over its points: shape (lines,)."""
    known = np.isfinite(series)
    apart = np.where(known, series - quantiles(series)[QUANTILES.index(0.5)], 0.0)
    return np.asarray(np.sqrt((apart**2).sum(axis=1) / np.maximum(1, known.sum(axis=1))), np.float64)


def noted(panels: Sequence[Mapping[str, Floats]], struck: Sequence[str]) -> list[str]:
    """The lines to be named, MOST_NAMED of them: those struck, then those that stray furthest in any panel.

    Args:
        panels: the lines of each panel by name, all of one length.
        struck: names that a fault is about; some may have no line.

    Returns: names in the order of the first panel.
    """
    worst: dict[str, float] = {}
    for lines in panels:
        for name, far in zip(lines, straying(np.array(list(lines.values()))).tolist(), strict=True):
            worst[name] = max(far, worst.get(name, 0.0))
    chosen = sorted(worst, key=lambda name: (name not in struck, -worst[name]))[:MOST_NAMED]
    return [name for name in worst if name in chosen]


def draw_lines(
    panel: Axes, at_s: Floats, lines: Mapping[str, Floats], colours: Mapping[str, str], width: float
) -> None:
    """The lines that have a colour; of a crowd also the bands that all of them fill."""
    crowd = is_crowd(len(lines))
    if crowd:
        draw_bands(panel, at_s, np.array(list(lines.values())), CROWD_COLOUR)
    for name, series in lines.items():
        if name in colours or not crowd:
            panel.plot(at_s, series, color=colours.get(name, _UNNAMED), lw=width)


def draw_bands(panel: Axes, at_s: Floats, series: Floats, colour: str) -> None:
    """Nine in ten of the lines, half of them, and their median."""
    lowest, lower, median, upper, highest = quantiles(series)
    panel.fill_between(at_s, lowest, highest, color=colour, alpha=_OUTER, lw=0)
    panel.fill_between(at_s, lower, upper, color=colour, alpha=_INNER, lw=0)
    panel.plot(at_s, median, color=colour, lw=1.4)


def line_legend(count: int, noun: str, colours: Mapping[str, str], width: float) -> list[Artist]:
    """Names of the lines, and what the bands mean where there are any.

    Args:
        count: of lines in all.
        noun: what they are, such as 'cells'.
        colours: of those that have a name.
        width: of a line in the legend, points.
    """
    named: list[Artist] = [
        Line2D([], [], color=colour, lw=width, label=name) for name, colour in colours.items()
    ]
    if not is_crowd(count):
        return named
    bands: list[Artist] = [
        Line2D([], [], color=CROWD_COLOUR, lw=1.4, label=f"median of {count:,} {noun}"),
        Patch(color=CROWD_COLOUR, alpha=_OUTER + _INNER, lw=0, label="half of them"),
        Patch(color=CROWD_COLOUR, alpha=_OUTER, lw=0, label="nine in ten"),
    ]
    return [*named, *bands]


def crowd_said(count: int, noun: str) -> str:
    """A sentence for the caption, of bands and of who is named; empty where each line has a name."""
    if not is_crowd(count):
        return ""
    return (
        f" Bands: where half and nine in ten of the {count:,} {noun} are; by name {MOST_NAMED}: those of a fault, then those whose"
        " numbers of requests stray furthest from the median (root mean square)."
    )
