"""Figure: how good the decisions were, and whether the roots moved together, a bar per arm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from testbed.figures.arm import DrawnArm
from testbed.figures.colours import LIMIT_COLOUR, VERDICT_COLOURS, LineStyle, arm_styles
from testbed.figures.page import caption, in_style, legend, new_page

PARTS = {"staleness": "#CC3311", "transit": "#EE7733", "rule": "#999999"}
BAR_IN = 0.42


@in_style
def draw_decisions(arms: Sequence[DrawnArm]) -> Figure:
    """Regret by cause; requests and shares away from the optimum; synchrony of the roots against chance."""
    styles = arm_styles([(arm.name, arm.summary["policy"]["kind"]) for arm in arms])
    said = (
        "Regret: expected sojourn of sampled choices over that of the best cell on arrival, by what is to blame: old "
        "news, the way there, or the rule itself, which gives that much away though it knew all. Deviation: part of the "
        "traffic elsewhere than at the optimum (time mean). Synchrony: mean correlation of the roots' changes at the "
        "same report; below the line, chance does as much in 95 % of circular shifts."
    )
    figure = new_page("Quality of the decisions", caption(arms, said), 12.0, 1.6 + BAR_IN * max(2, len(arms)))
    regret, deviation, synchrony = figure.subplots(1, 3, sharey=True, width_ratios=(1.2, 1.0, 1.0))
    for place, arm in enumerate(arms):
        _regret(regret, place, arm.summary.get("regret_s") or {})
        _deviation(deviation, place, arm.summary.get("deviation") or {}, styles[arm.name])
        _synchrony(synchrony, place, arm.summary.get("synchrony") or {}, styles[arm.name])
    regret.set_xlabel("mean regret per request (s)")
    deviation.set(xlabel="part of the traffic", xlim=(0, None))
    synchrony.set(xlabel="correlation", xlim=(-0.3, 1.05))
    titles = ("regret", "deviation from the optimum", "synchrony of the roots")
    for panel, title in zip((regret, deviation, synchrony), titles, strict=True):
        panel.set_title(title, fontsize=10, loc="left")
        panel.grid(visible=False, axis="y")
        panel.axvline(0.0, color="#AAAAAA", lw=0.8)
    _name_arms(regret, arms)
    parts = [Patch(facecolor=colour, label=f"regret: {name}") for name, colour in PARTS.items()]
    chance = Line2D([], [], color=LIMIT_COLOUR, marker="|", ms=14, mew=2, ls="none", label="chance (95 %)")
    legend(figure, [*parts, chance])
    return figure


def _regret(panel: Axes, place: int, parts: dict[str, Any]) -> None:
    """The parts end to end; a negative one to the left of 0, for a part may help where the others cost."""
    values = {name: parts.get(name) for name in PARTS}
    if None in values.values():
        _say_none(panel, place)
        return
    right_s = left_s = 0.0
    for name, value in values.items():
        assert value is not None, "looked at above"
        start_s = right_s if value >= 0 else left_s
        panel.barh(place, value, left=start_s, color=PARTS[name], height=0.6, edgecolor="white", lw=0.4)
        right_s, left_s = (right_s + value, left_s) if value >= 0 else (right_s, left_s + value)


def _deviation(panel: Axes, place: int, found: dict[str, Any], look: LineStyle) -> None:
    if found.get("dev_x") is None:
        _say_none(panel, place)
        return
    panel.barh(place, found["dev_x"], color=look.colour, height=0.6)


def _synchrony(panel: Axes, place: int, found: dict[str, Any], look: LineStyle) -> None:
    if found.get("correlation") is None:
        _say_none(panel, place)
        return
    panel.barh(place, found["correlation"], color=look.colour, height=0.6)
    panel.plot(found["chance_high"], place, color=LIMIT_COLOUR, marker="|", ms=18, mew=2, ls="none")


def _say_none(panel: Axes, place: int) -> None:
    panel.text(0.0, place, " not known", va="center", fontsize=9, color="#666666")


def _name_arms(panel: Axes, arms: Sequence[DrawnArm]) -> None:
    panel.set_yticks(np.arange(len(arms)), [f"{arm.name} ({arm.summary['verdict']})" for arm in arms])
    for label, arm in zip(panel.get_yticklabels(), arms, strict=True):
        label.set_color(VERDICT_COLOURS[arm.summary["verdict"]])
    panel.set_ylim(len(arms) - 0.4, -0.6)
