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
from testbed.figures.outcomes import draw_outcomes, has_outcomes_to_tell
from testbed.figures.scaling import draw_scaling
from testbed.figures.servers import draw_servers
from testbed.figures.shares import draw_shares
from testbed.figures.sojourn import draw_sojourn
from testbed.figures.split import draw_split

__all__ = ["FIGURES", "STEMS", "DrawnArm", "draw_all"]

FIGURES: dict[str, Callable[[Sequence[DrawnArm]], Figure]] = {
    "in_flight": draw_in_flight,
    "servers": draw_servers,
    "shares": draw_shares,
    "sojourn": draw_sojourn,
    "split": draw_split,
    "age": draw_age,
    "decisions": draw_decisions,
}
STEMS = (*FIGURES, "outcomes", "scaling", "lateness")


def draw_all(arms: Sequence[DrawnArm], only: Sequence[str] = ()) -> dict[str, Figure]:
    """Every figure that these arms have data for, or those of some stems alone.

    Outcomes are drawn where not every request was completed at the first go, scaling where cells scale, lateness where
    an arm ran live.
    """
    draws = {stem: (draw, arms) for stem, draw in FIGURES.items()}
    if any(has_outcomes_to_tell(arm) for arm in arms):
        draws["outcomes"] = (draw_outcomes, arms)
    scaled = [arm for arm in arms if row_count(arm.tables.get("scalings", {}))]
    if scaled:
        draws["scaling"] = (draw_scaling, scaled)
    live = [
        arm for arm in arms if arm.summary["engine"] == "live" and row_count(arm.tables.get("lateness", {}))
    ]
    if live:
        draws["lateness"] = (draw_lateness, live)
    return {stem: draw(of) for stem, (draw, of) in draws.items() if not only or stem in only}
