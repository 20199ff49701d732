"""Figure: how late the emulator was on each link, in wall time; live runs only."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from testbed.analysis.lateness import LEAST_MESSAGES, LinkLateness, link_lateness
from testbed.analysis.limits import SUSPECT_FRACTION, lateness_limit_s
from testbed.figures.arm import DrawnArm
from testbed.figures.colours import LIMIT_COLOUR
from testbed.figures.page import arm_panels, caption, in_style, legend, stamp
from testbed.scenario.quantity import format_s
from testbed.scenario.topology import build_topology

MOST_LINKS = 18  # the worst ones; more would not be legible, and no better one decides
PATH_COLOURS = {"request": "#0072B2", "reply": "#009E73", "observation": "#E69F00", "probe": "#CC79A7"}


@in_style
def draw_lateness(arms: Sequence[DrawnArm]) -> Figure:
    """Median, 99th percentile and largest lateness of the worst links of each arm, with the limits of the verdict."""
    links = {arm.name: _worst(arm) for arm in arms}
    most = max(len(each) for each in links.values())
    said = (
        f"Handled less released, wall time, per link over the whole run; the {MOST_LINKS} links of the largest "
        f"99th percentile. Hollow: fewer than {LEAST_MESSAGES} messages, which the verdict judges together with others."
        " It counts what a p99 is at least, with 95 % confidence: of few messages that is less than the dot shows."
    )
    figure, panels = arm_panels(
        arms, "Lateness of the emulator", caption(arms, said), panel_height_in=1.2 + 0.2 * most
    )
    for arm, panel in zip(arms, panels, strict=True):
        limit_s = lateness_limit_s(arm.scenario, build_topology(arm.scenario))
        stamp(panel, arm)
        _draw_links(panel, links[arm.name])
        panel.axvline(limit_s, color=LIMIT_COLOUR, lw=1.4)
        panel.axvline(limit_s * SUSPECT_FRACTION, color=LIMIT_COLOUR, lw=1.2, ls=(0, (4, 2)))
        panel.set_xlabel("lateness (wall time)")
    panels[0].set_xscale("log")
    panels[0].xaxis.set_major_formatter(FuncFormatter(lambda seconds, _: format_s(seconds)))
    legend(figure, _handles({link.path for each in links.values() for link in each}))
    return figure


def _worst(arm: DrawnArm) -> list[LinkLateness]:
    links = link_lateness(arm.tables.get("lateness", {}))
    return sorted(links, key=lambda link: -link.p99_s)[:MOST_LINKS]


def _draw_links(panel: Axes, links: Sequence[LinkLateness]) -> None:
    for place, link in enumerate(links):
        colour = PATH_COLOURS[link.path]
        panel.plot([link.p50_s, link.max_s], [place, place], color=colour, lw=1.0, alpha=0.5)
        panel.plot(link.p50_s, place, marker="|", color=colour, ms=9, mew=1.6, ls="none")
        decides = link.messages >= LEAST_MESSAGES
        panel.plot(
            link.p99_s, place, marker="o", color=colour, ms=5, ls="none", mfc=colour if decides else "white"
        )
        panel.plot(link.max_s, place, marker=">", color=colour, ms=4, ls="none", mfc="white")
        panel.annotate(
            f"{link.source} → {link.target}",
            (1.01, place),
            xycoords=("axes fraction", "data"),
            va="center",
            fontsize=7,
        )
    panel.set_yticks([])
    panel.set_ylim(len(links) - 0.4, -0.6)


def _handles(paths: set[str]) -> list[Line2D]:
    grey = "#555555"
    return [
        *[
            Line2D([], [], color=colour, lw=3, label=path)
            for path, colour in PATH_COLOURS.items()
            if path in paths
        ],
        Line2D([], [], color=grey, marker="|", ms=9, mew=1.6, ls="none", label="p50"),
        Line2D([], [], color=grey, marker="o", ms=5, ls="none", label="p99"),
        Line2D([], [], color=grey, marker=">", ms=4, mfc="white", ls="none", label="largest"),
        Line2D([], [], color=LIMIT_COLOUR, lw=1.4, label="invalid (p99)"),
        Line2D([], [], color=LIMIT_COLOUR, lw=1.2, ls=(0, (4, 2)), label="suspect (p99)"),
    ]
