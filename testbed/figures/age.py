"""Figure: how old the observation behind a decision was."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from testbed.analysis.loop_delay import PairDelay, measured_loop_delays
from testbed.analysis.records import Floats, mean
from testbed.figures.arm import DrawnArm, counted_requests, counted_window, drawn_window
from testbed.figures.colours import LineStyle, arm_styles
from testbed.figures.page import arm_lines, caption, in_style, legend, new_page, shade_time, shading_legend

MOST_BINS = 80
LOOP_DELAYS_PER_BIN = 4  # so that a bin sees the whole saw-tooth of the age between reports
QUANTILES = np.linspace(0.0, 1.0, 501)
TRANSIT_HATCH = "////"
THINNEST = 1.4
WIDER = 0.8


class Ages(NamedTuple):
    """Mean age of the observation used, seconds: under way, and waiting at the root to be used."""

    transit_s: float
    waiting_s: float


@in_style
def draw_age(arms: Sequence[DrawnArm]) -> Figure:
    """Distribution of the age at use, weighted by requests; the age over time; transit against waiting."""
    styles = arm_styles([(arm.name, arm.summary["policy"]["kind"]) for arm in arms])
    said = (
        "Age = used less measured, of the chosen cell's observation at each request; on the right as it "
        "enters the loop delay: at updates where probabilities move. Loop delay = request travel + age at use. Where "
        "arms coincide, their lines lie inside one another."
    )
    figure = new_page("Age of the observation at use", caption(arms, said), 12.0, 4.2)
    distribution, over_time, split = figure.subplots(1, 3, width_ratios=(1.0, 1.15, 0.85))
    for place, arm in enumerate(arms):
        # Reports travel alike in all arms, so their lines coincide: each is drawn inside the one before it.
        width = THINNEST + WIDER * (len(arms) - 1 - place)
        _distribution(distribution, arm, styles[arm.name], width)
        _over_time(over_time, arm, styles[arm.name], width)
    _split(split, arms, styles)
    end_s = max(drawn_window(arm).to_s for arm in arms)
    shade_time(over_time, arms, end_s)
    over_time.set(xlabel="time (s)", ylabel="age (s)", title="median, and 99th percentile (thin)")
    distribution.set(xlabel="age at use (s)", ylabel="share of requests", ylim=(0, 1), title="distribution")
    for panel in (distribution, over_time):
        panel.set_title(panel.get_title(), fontsize=10)
    over_time.set_ylim(0, over_time.get_ylim()[1] * 1.05)
    parts = [
        Patch(facecolor="#999999", hatch=TRANSIT_HATCH, edgecolor="white", label="under way"),
        Patch(facecolor="#999999", label="waiting to be used"),
    ]
    legend(figure, [*arm_lines(arms, styles), *parts, *shading_legend(arms)])
    return figure


def _distribution(panel: Axes, arm: DrawnArm, look: LineStyle, width: float) -> None:
    ages_s = counted_requests(arm)["staleness_s"]
    ages_s = ages_s[np.isfinite(ages_s)]
    if len(ages_s):
        panel.plot(np.quantile(ages_s, QUANTILES), QUANTILES, color=look.colour, ls=look.dashes, lw=width)


def _over_time(panel: Axes, arm: DrawnArm, look: LineStyle, width: float) -> None:
    requests = arm.tables["requests"]
    end_s = drawn_window(arm).to_s
    loop_delay_s = arm.summary["policy"]["loop_delay_s"] or 0.0
    count = min(MOST_BINS, max(4, int(end_s / max(LOOP_DELAYS_PER_BIN * loop_delay_s, 1e-9))))
    edges = np.linspace(0.0, end_s, count + 1)
    middles = (edges[:-1] + edges[1:]) / 2
    median, high = _quantiles_in_bins(requests["planned_at_s"], requests["staleness_s"], edges)
    panel.plot(middles, median, color=look.colour, ls=look.dashes, lw=width)
    panel.plot(middles, high, color=look.colour, ls=look.dashes, lw=width / 2)


def _quantiles_in_bins(instants_s: Floats, values: Floats, edges: Floats) -> tuple[Floats, Floats]:
    """Median and 99th percentile of the values in each bin; NaN for an empty bin."""
    known = np.isfinite(values)
    instants_s, values = instants_s[known], values[known]
    order = np.argsort(instants_s, kind="stable")
    bounds = np.searchsorted(instants_s[order], edges)
    parts = [values[order[a:b]] for a, b in pairwise(bounds)]
    found = [np.quantile(part, (0.5, 0.99)) if len(part) else (np.nan, np.nan) for part in parts]
    return np.array([each[0] for each in found]), np.array([each[1] for each in found])


def _split(panel: Axes, arms: Sequence[DrawnArm], styles: dict[str, LineStyle]) -> None:
    for place, arm in enumerate(arms):
        ages, colour = mean_ages(arm), styles[arm.name].colour
        panel.barh(place, ages.transit_s, color=colour, hatch=TRANSIT_HATCH, edgecolor="white", height=0.6)
        panel.barh(place, ages.waiting_s, left=ages.transit_s, color=colour, height=0.6)
        loop_delay_s = arm.summary["policy"]["loop_delay_s"]
        if loop_delay_s is not None:
            panel.plot(loop_delay_s, place, marker="|", color="#222222", ms=16, mew=2, ls="none")
    panel.set_yticks(range(len(arms)), [arm.name for arm in arms])
    panel.set_ylim(len(arms) - 0.4, -0.6)
    panel.set_xlim(0, max([*panel.get_xlim(), 1e-9]) * 1.05)
    panel.grid(visible=False, axis="y")
    panel.set_xlabel("mean age (s)")
    panel.set_title("under way, waiting; loop delay: |", fontsize=10)


def mean_ages(arm: DrawnArm) -> Ages:
    """How long observations were under way and then waited to be used, means over roots and cells by requests.

    The age at use is that of the loop delay: at updates where probabilities move, else at each request.
    """
    pairs = measured_loop_delays(arm.scenario, arm.tables, counted_window(arm))
    known = [pair for pair in pairs if np.isfinite(pair.age_s)]
    if not known:
        return Ages(float("nan"), float("nan"))
    weights = [pair.requests for pair in known]
    transit_s = float(np.average([_transit_s(arm, pair) for pair in known], weights=weights))
    age_s = float(np.average([pair.age_s for pair in known], weights=weights))
    return Ages(transit_s, max(0.0, age_s - transit_s))


def _transit_s(arm: DrawnArm, pair: PairDelay) -> float:
    """Mean time that the reports of a cell were under way to a root."""
    observations = arm.tables["observations"]
    mine = (observations["root"] == pair.root) & (observations["cell"] == pair.cell)
    mine &= counted_window(arm).holds(observations["received_at_s"])
    return mean((observations["received_at_s"] - observations["measured_at_s"])[mine])
