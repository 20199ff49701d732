"""Figure: where the time of a request goes, layer by layer, a bar per arm and class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from testbed.figures.arm import DrawnArm
from testbed.figures.colours import VERDICT_COLOURS
from testbed.figures.page import caption, in_style, legend, new_page

# In the order of the way; Okabe and Ito's colours, with travel of either way in greys.
LAYERS = {
    "earlier_attempts": "#CC79A7",
    "slip": "#D55E00",
    "root_hold": "#F0E442",
    "request_travel": "#BBBBBB",
    "leaf_wait": "#56B4E9",
    "server_queue": "#E69F00",
    "prefill": "#009E73",
    "decode": "#0072B2",
    "reply_travel": "#777777",
}
NEGLIGIBLE = (
    0.01  # of the longest bar: a layer that never takes more cannot be seen, and has no place in the legend
)
INSIDE_A_CELL = ("leaf_wait", "reply_travel")  # these hold its links
BAR_IN = 0.34


class Bar(NamedTuple):
    """One bar: whom it is about, its verdict, and the mean seconds of each layer."""

    arm: str
    class_name: str
    verdict: str
    split_s: dict[str, Any]


@in_style
def draw_split(arms: Sequence[DrawnArm]) -> Figure:
    """Mean sojourn of the completed requests, split into layers that add up to it."""
    bars = bars_of(arms)
    longest_s = max((sum(bar.split_s.values()) for bar in bars), default=0.0)
    seen = [
        name for name in LAYERS if any(bar.split_s.get(name, 0.0) > NEGLIGIBLE * longest_s for bar in bars)
    ]
    shown = seen or list(LAYERS)
    width_in, height_in = 9.6, 1.5 + BAR_IN * max(2, len(bars))
    figure = new_page("Where the time goes", caption(arms, _said(bars, shown)), width_in, height_in)
    panel = figure.subplots()
    for place, bar in enumerate(bars):
        _draw_bar(panel, place, bar, longest_s)
    _name_bars(panel, bars)
    panel.set_xlim(0, longest_s * 1.12 or 1.0)
    panel.set_xlabel("mean sojourn (s)")
    panel.grid(visible=False, axis="y")
    legend(figure, [Patch(facecolor=LAYERS[name], label=_words(name)) for name in shown])
    return figure


def bars_of(arms: Sequence[DrawnArm]) -> list[Bar]:
    """One bar per arm and class that completed anything, classes beneath one another within their arm."""
    return [
        Bar(arm.name, name, arm.summary["verdict"], words["split_s"])
        for arm in arms
        for name, words in arm.summary["classes"].items()
        if None not in words.get("split_s", {"": None}).values()
    ]


def _said(bars: Sequence[Bar], shown: Sequence[str]) -> str:
    """What the bars are, with the layers that hold more than their name says, and those too thin to be seen."""
    said = "Mean over the completed requests of the counted time, from the planned arrival to the reply"
    holding = [_words(name) for name in INSIDE_A_CELL if name in shown]
    if holding:
        said += f"; in {' and '.join(holding)} the links inside a cell, too"
    thin = [
        _words(name) for name in LAYERS if name not in shown and any(bar.split_s.get(name) for bar in bars)
    ]
    return f"{said}." + (f" Too thin to be seen: {', '.join(thin)}." if thin else "")


def _words(name: str) -> str:
    return name.replace("_", " ")


def _draw_bar(panel: Axes, place: int, bar: Bar, longest_s: float) -> None:
    from_s = 0.0
    for name, colour in LAYERS.items():
        panel.barh(
            place,
            bar.split_s.get(name, 0.0),
            left=from_s,
            color=colour,
            height=0.7,
            edgecolor="white",
            lw=0.4,
        )
        from_s += bar.split_s.get(name, 0.0)
    panel.text(from_s + 0.008 * longest_s, place, f"{from_s:.3g} s", va="center", fontsize=9)


def _name_bars(panel: Axes, bars: Sequence[Bar]) -> None:
    several = len({bar.class_name for bar in bars}) > 1
    names = [f"{bar.arm}, {bar.class_name}" if several else bar.arm for bar in bars]
    names = [f"{name} ({bar.verdict})" for name, bar in zip(names, bars, strict=True)]
    panel.set_yticks(range(len(bars)), names)
    for label, bar in zip(panel.get_yticklabels(), bars, strict=True):
        label.set_color(VERDICT_COLOURS[bar.verdict])
    panel.set_ylim(max(len(bars), 1) - 0.4, -0.6)
