"""Figure: how long requests took, and until their first token, per arm."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from testbed.analysis.sojourn import Waits, first_tokens, sojourns
from testbed.figures.arm import DrawnArm, counted_requests
from testbed.figures.colours import LineStyle, arm_styles
from testbed.figures.page import arm_lines, caption, in_style, legend, new_page

MARKS = {"p50": "o", "p90": "s", "p99": "D"}
POINTS = 400
LEAST_SHARE = 1e-3  # of the slowest requests, the last that the tail shows


@in_style
def draw_sojourn(arms: Sequence[DrawnArm]) -> Figure:
    """Percentiles of sojourn and first token, and below them the whole tails, on logarithmic axes."""
    styles = arm_styles([(arm.name, arm.summary["policy"]["kind"]) for arm in arms])
    height_in = 4.6 + 0.32 * len(arms)
    said = (
        "From the planned arrival to the client; requests without an answer count with the time that they are "
        "known to have waited, so percentiles that reach them are lower bounds. Warm-up left out."
    )
    figure = new_page("Sojourn and first token", caption(arms, said), 10.5, height_in)
    ratios = (0.7 + 0.32 * len(arms), 3.0)
    grid = figure.subplots(2, 2, sharex="col", sharey="row", height_ratios=ratios)
    for column, (key, measure, name) in enumerate(
        (("sojourn_s", sojourns, "sojourn"), ("first_token_s", first_tokens, "first token"))
    ):
        _percentiles(grid[0, column], arms, key, styles)
        for arm in arms:
            _tail(
                grid[1, column],
                measure(counted_requests(arm), arm.scenario, arm.summary["ended_s"]),
                styles[arm.name],
            )
        grid[0, column].set_title(name, loc="left", fontweight="bold")
        grid[0, column].tick_params(labelbottom=True)
        grid[1, column].set_xlabel(f"{name} (s)")
        _log_seconds(grid[1, column])
    _name_rows(grid[0, 0], arms)
    grid[1, 0].set(ylabel="share of requests slower", yscale="log", ylim=(LEAST_SHARE, 1.15))
    grid[1, 0].yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{share * 100:g} %"))
    marks = [
        Line2D([], [], color="#555555", marker=mark, ls="none", label=name) for name, mark in MARKS.items()
    ]
    legend(figure, [*arm_lines(arms, styles), *marks])
    return figure


def _percentiles(panel: Axes, arms: Sequence[DrawnArm], key: str, styles: dict[str, LineStyle]) -> None:
    panel.grid(visible=False, axis="y")
    for place, arm in enumerate(arms):
        figures = arm.summary[key]
        values = [figures[name] for name in MARKS]
        if None in values:
            continue
        colour = styles[arm.name].colour
        panel.plot(values, [place] * len(values), color=colour, lw=1.5, alpha=0.6)
        for value, mark in zip(values, MARKS.values(), strict=True):
            panel.plot(value, place, marker=mark, color=colour, ms=6.5, ls="none")


def _name_rows(panel: Axes, arms: Sequence[DrawnArm]) -> None:
    panel.set_yticks(range(len(arms)), [arm.name for arm in arms])
    panel.set_ylim(len(arms) - 0.4, -0.6)


def _tail(panel: Axes, waits: Waits, look: LineStyle) -> None:
    """The share of requests that are slower than x, at points even in the logarithm of the share."""
    known = waits.seconds[np.isfinite(waits.seconds)]
    if len(known):
        least = max(LEAST_SHARE, 1.0 / len(known))
        shares = np.concatenate((np.linspace(1.0, 0.1, POINTS // 2), np.geomspace(0.1, least, POINTS // 2)))
        panel.plot(np.quantile(known, 1.0 - shares), shares, color=look.colour, ls=look.dashes, lw=1.8)


def _log_seconds(panel: Axes) -> None:
    panel.set_xscale("log")
    panel.xaxis.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0), numticks=12))
    panel.xaxis.set_major_formatter(FuncFormatter(lambda seconds, _: f"{seconds:g}"))
    panel.xaxis.set_minor_formatter(NullFormatter())
