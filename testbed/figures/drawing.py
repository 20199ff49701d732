"""Every figure of a run, by the stem of its file."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from matplotlib.figure import Figure

from testbed.analysis.records import row_count
from testbed.figures.age import draw_age
from testbed.figures.arm import DrawnArm
from testbed.figures.decisions import draw_decisions
from testbed.figures.in_flight import draw_in_flight
from testbed.figures.lateness import draw_lateness
from testbed.figures.scaling import draw_scaling
from testbed.figures.shares import draw_shares
from testbed.figures.sojourn import draw_sojourn
from testbed.figures.split import draw_split

__all__ = ["FIGURES", "DrawnArm", "draw_all"]

FIGURES: dict[str, Callable[[Sequence[DrawnArm]], Figure]] = {
    "in_flight": draw_in_flight,
    "shares": draw_shares,
    "sojourn": draw_sojourn,
    "split": draw_split,
    "age": draw_age,
    "decisions": draw_decisions,
}


def draw_all(arms: Sequence[DrawnArm]) -> dict[str, Figure]:
    """Every figure that these arms have data for; lateness only where an arm ran live, scaling where cells scale."""
    figures = {stem: draw(arms) for stem, draw in FIGURES.items()}
    scaled = [arm for arm in arms if row_count(arm.tables.get("scalings", {}))]
    if scaled:
        figures["scaling"] = draw_scaling(scaled)
    live = [
        arm for arm in arms if arm.summary["engine"] == "live" and row_count(arm.tables.get("lateness", {}))
    ]
    return {**figures, "lateness": draw_lateness(live)} if live else figures
