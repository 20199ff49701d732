"""The page that all figures share: fonts, panels side by side, title, legend outside the data, caption, stamps."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any

import numpy.typing as npt
from matplotlib import rc_context
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import ScaledTranslation

from testbed.figures.arm import DrawnArm
from testbed.figures.colours import FAULT_COLOUR, VERDICT_COLOURS, WARMUP_COLOUR, LineStyle
from testbed.scenario.quantity import format_s

DPI = 150
MOST_COLUMNS = 4  # panels in a row, beyond which they would be too narrow to read
PANEL_WIDTH_IN = 3.9
LEAST_WIDTH_IN = 8.4
CAPTION_SIZE = 8.5
CAPTION_LINE_IN = 0.165
CAPTION_LETTERS_PER_IN = 15.5
MARGIN_IN = 0.12
MOST_FAULTS_SAID = 4
TIME_LABEL = "time (s)"
FEW_ONSETS = 6  # of faults, up to which each gets a strong line
FAULT_ALPHA, WARMUP_ALPHA = 0.08, 0.16
AREA_ZORDER = 1.0  # of patches, unless told otherwise
STRIP_FROM, STRIP_ALPHA = (
    0.965,
    0.5,
)  # of the height of a panel: above all areas, which leave a twentieth free

STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.labelsize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 9.5,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "figure.dpi": DPI,
    "figure.facecolor": "white",
}

Draw = Callable[[Sequence[DrawnArm]], Figure]


def in_style(draw: Draw) -> Draw:
    """Make a figure in the style of the page, its ticks too, which are otherwise made when it is saved."""

    @wraps(draw)
    def draw_in_style(arms: Sequence[DrawnArm]) -> Figure:
        with rc_context(STYLE):
            figure = draw(arms)
            figure.draw_without_rendering()
            figure.set_layout_engine("none")  # it is laid out: saving it need not do so again
        return figure

    return draw_in_style


def new_page(title: str, caption: str, width_in: float, height_in: float) -> Figure:
    """An empty page: its title on top, its caption below, and room between them for panels."""
    lines = textwrap.wrap(caption, width=int(width_in * CAPTION_LETTERS_PER_IN))
    below_in = CAPTION_LINE_IN * len(lines) + 0.15
    layout = ConstrainedLayoutEngine(h_pad=0.06, w_pad=0.08)
    figure = Figure(figsize=(width_in, height_in), layout=layout)
    figure.suptitle(title, x=MARGIN_IN / width_in, ha="left", fontsize=13, fontweight="bold")
    text = figure.text(
        0.0, 0.0, "\n".join(lines), ha="left", va="bottom", fontsize=CAPTION_SIZE, color="#333333"
    )
    text.set_transform(figure.dpi_scale_trans + ScaledTranslation(MARGIN_IN, 0.07, figure.dpi_scale_trans))
    _make_room(figure, below_in)
    return figure


def _make_room(figure: Figure, more_in: float) -> None:
    """Make the page taller at its lower end, and keep the panels out of there."""
    layout = figure.get_layout_engine()
    assert isinstance(layout, ConstrainedLayoutEngine), "every page has a constrained layout"
    width_in, height_in = figure.get_size_inches()
    _, below, _, _ = layout.get()["rect"]
    below_in = below * height_in + more_in
    figure.set_size_inches(width_in, height_in + more_in)
    below = below_in / (height_in + more_in)
    layout.set(rect=(0.0, below, 1.0, 1.0 - below))


def arm_panels(
    arms: Sequence[DrawnArm], title: str, caption: str, *, panel_height_in: float = 3.0
) -> tuple[Figure, list[Axes]]:
    """A page with a panel for each arm, side by side on the same axes."""
    columns = columns_for(len(arms))
    rows = math.ceil(len(arms) / columns)
    width_in = max(LEAST_WIDTH_IN, PANEL_WIDTH_IN * columns)
    figure = new_page(title, caption, width_in, rows * panel_height_in + 0.6)
    grid: npt.NDArray[Any] = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    panels: list[Axes] = list(grid.flat)
    for panel in panels[len(arms) :]:
        panel.set_visible(False)
    for panel in panels[: len(arms)]:
        panel.tick_params(labelbottom=True)
    return figure, panels[: len(arms)]


def columns_for(count: int) -> int:
    """Panels in a row, such that the rows are as full as may be."""
    rows = math.ceil(count / MOST_COLUMNS)
    return math.ceil(count / rows)


def stamp(axes: Axes, arm: DrawnArm, said: str = "") -> None:
    """Title a panel with the arm's name and verdict; a run not to be believed is marked across the data."""
    verdict = arm.summary["verdict"]
    axes.set_title(arm.name, loc="left", fontweight="bold", pad=19)
    axes.annotate(
        f"{verdict}{', ' if said else ''}{said}", (0.0, 1.0), (0, 5), xycoords="axes fraction",
        textcoords="offset points", fontsize=9, color=VERDICT_COLOURS[verdict], va="bottom",
    )  # fmt: skip
    if verdict in ("invalid", "incomplete"):
        axes.text(
            0.5, 0.5, verdict.upper(), transform=axes.transAxes, ha="center", va="center", rotation=20,
            fontsize=30, color=VERDICT_COLOURS[verdict], alpha=0.35, zorder=5,
        )  # fmt: skip


def shade_time(axes: Axes, arms: Sequence[DrawnArm], end_s: float, *, filled: bool = False) -> None:
    """Shade the warm-up, and the time of every fault; a fault for good is shaded to the end.

    Args:
        axes: the panel.
        arms: whose lines are in it; the faults of each are shaded, those that several have once.
        end_s: of the time that is shown.
        filled: whether areas fill the panel and hide what is behind them: then a strip above them has the shades as
            well, and lines on them where each fault begins and ends.
    """
    edge_zorder = AREA_ZORDER + 0.1 if filled else AREA_ZORDER
    warmup_s = min(max(arm.scenario.warmup for arm in arms), end_s)
    if warmup_s > 0:
        _shade(axes, 0.0, warmup_s, WARMUP_COLOUR, WARMUP_ALPHA, filled)
    spans = list(dict.fromkeys(span for arm in arms for span in _fault_spans(arm)))
    onset_width = 0.9 if len(spans) <= FEW_ONSETS else 0.4  # many strong lines would hide the data
    for at_s, until_s in spans:
        if at_s < end_s:
            _shade(axes, at_s, min(end_s, until_s), FAULT_COLOUR, FAULT_ALPHA, filled)
            axes.axvline(at_s, color=FAULT_COLOUR, lw=onset_width, zorder=edge_zorder)
            if filled and until_s < end_s:
                axes.axvline(until_s, color=FAULT_COLOUR, lw=onset_width, ls=":", zorder=edge_zorder)
    axes.set_xlim(0.0, end_s)
    axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))


def _shade(axes: Axes, from_s: float, to_s: float, colour: str, alpha: float, has_strip: bool) -> None:
    axes.axvspan(from_s, to_s, color=colour, alpha=alpha, lw=0, zorder=0)
    if has_strip:
        axes.axvspan(
            from_s, to_s, STRIP_FROM, 1.0, color=colour, alpha=STRIP_ALPHA, lw=0, zorder=AREA_ZORDER + 0.1
        )


def _fault_spans(arm: DrawnArm) -> list[tuple[float, float]]:
    faults = arm.tables["faults"]
    ends_s = [math.inf if math.isnan(heal_s) else float(heal_s) for heal_s in faults["heal_planned_at_s"]]
    return list(zip(faults["planned_at_s"].tolist(), ends_s, strict=True))


def zoom(figure: Figure, from_s: float, to_s: float) -> None:
    """Show a part of the time alone, in a figure over time; the others stay as they are."""
    for axes in figure.axes:
        if axes.get_xlabel() == TIME_LABEL:
            axes.set_xlim(from_s, to_s)


def shading_legend(arms: Sequence[DrawnArm]) -> list[Artist]:
    """What the shades mean, for the legend."""
    handles: list[Artist] = []
    if any(arm.scenario.warmup > 0 for arm in arms):
        handles.append(Patch(color=WARMUP_COLOUR, alpha=WARMUP_ALPHA, lw=0, label="warm-up (not counted)"))
    if any(len(arm.tables["faults"]["fault"]) for arm in arms):
        handles.append(Patch(color=FAULT_COLOUR, alpha=0.15, lw=0, label="fault"))
    return handles


def arm_lines(arms: Sequence[DrawnArm], styles: dict[str, LineStyle]) -> list[Artist]:
    """The line of each arm for the legend, with its verdict and the requests that were not answered."""
    handles: list[Artist] = []
    for arm in arms:
        look, censored = styles[arm.name], arm.summary["sojourn_s"]["censored"]
        unanswered = f", {censored:,} unanswered" if censored else ""
        label = f"{arm.name} ({arm.summary['verdict']}{unanswered})"
        handles.append(Line2D([], [], color=look.colour, ls=look.dashes, lw=2, label=label))
    return handles


def legend(figure: Figure, handles: Sequence[Artist]) -> None:
    """The one legend of a page, between its panels and its caption, in as few rows as its width allows."""
    layout = figure.get_layout_engine()
    assert isinstance(layout, ConstrainedLayoutEngine), "every page has a constrained layout"
    width_in, height_in = figure.get_size_inches()
    below_in = layout.get()["rect"][1] * height_in
    for columns in range(len(handles), 0, -1):
        drawn = figure.legend(
            handles, [str(each.get_label()) for each in handles], ncols=columns, loc="lower left", borderaxespad=0.0,
            bbox_to_anchor=(MARGIN_IN, below_in), bbox_transform=figure.dpi_scale_trans, handlelength=2.2,
        )  # fmt: skip
        drawn.set_in_layout(False)  # its room is made below, once its height is known
        extent = drawn.get_window_extent()
        if extent.width <= (width_in - 2 * MARGIN_IN) * figure.dpi or columns == 1:
            break
        drawn.remove()
    _make_room(figure, extent.height / figure.dpi + 0.05)


def caption(arms: Sequence[DrawnArm], said: str) -> str:
    """What is shown, and of which run: scenario, seed, engine, requests, verdicts, warm-up, faults."""
    first = arms[0]
    seeds = sorted({arm.scenario.seed for arm in arms})
    engines = sorted({_engine(arm.summary) for arm in arms})
    return " ".join(
        [
            said,
            f"Scenario {first.scenario.name}, seed {', '.join(map(str, seeds))}, {', '.join(engines)};",
            f"requests completed of planned: {_per_arm(arms, _requests)};",
            f"verdict: {_per_arm(arms, lambda arm: arm.summary['verdict'])}.",
            *_faults_said(arms),
        ]
    )


def _engine(summary: Mapping[str, Any]) -> str:
    """The engine; of a live run also what its roles took for now."""
    dating = summary.get("dating")
    return f"{summary['engine']} engine" + (f" (dating {dating})" if summary["engine"] == "live" else "")


def faults_of(arms: Sequence[DrawnArm]) -> list[str]:
    """Each fault in words, those that come again in one, with the arms that have it where not all do; of many, the first."""
    of_fault: dict[str, list[str]] = {}
    for arm in arms:
        for fault in _faults_in_words(arm):
            of_fault.setdefault(fault, []).append(arm.name)
    names = [arm.name for arm in arms]
    said = [f"{fault}{_whose(having, names)}" for fault, having in of_fault.items()]
    more = len(said) - MOST_FAULTS_SAID
    return said if more <= 0 else [*said[:MOST_FAULTS_SAID], f"{more} more"]


def _whose(having: list[str], names: list[str]) -> str:
    """Which of the arms have a fault, in as few names as may be; nothing where all do."""
    lacking = [name for name in names if name not in having]
    if not lacking:
        return ""
    word, said = ("not in", lacking) if len(lacking) < len(having) else ("in", having)
    return f" ({word} {', '.join(said)})"


def _faults_in_words(arm: DrawnArm) -> list[str]:
    faults = arm.tables["faults"]
    rows = zip(
        *(faults[name].tolist() for name in ("target", "parameters", "planned_at_s", "heal_planned_at_s")),
        strict=True,
    )
    onsets_s: dict[tuple[str, str, str], list[float]] = {}
    for target, parameters, at_s, heal_s in rows:
        length = "for good" if math.isnan(heal_s) else f"for {_seconds(round(heal_s - at_s, 9))}"
        onsets_s.setdefault((target, parameters, length), []).append(at_s)
    return [_fault_said(*fault, at_s) for fault, at_s in onsets_s.items()]


def _fault_said(target: str, parameters: str, length: str, onsets_s: Sequence[float]) -> str:
    again = f", {len(onsets_s)} times up to {_seconds(onsets_s[-1])}" if len(onsets_s) > 1 else ""
    return f"{target}: {parameters} at {_seconds(onsets_s[0])} {length}{again}"


def _seconds(value_s: float) -> str:
    """As in the scenario, which may say 20.49 s."""
    return format_s(value_s) if 0 < value_s < 0.1 else f"{value_s:.6g} s"


def _per_arm(arms: Sequence[DrawnArm], say: Any) -> str:
    """A word and the arms of which it holds; the one that holds of most of many stands last."""
    named: dict[str, list[str]] = {}
    for arm in arms:
        named.setdefault(say(arm), []).append(arm.name)
    if len(named) == 1:
        return f"{next(iter(named))}{' in each arm' if len(arms) > 1 else ''}"
    most = max(named, key=lambda word: len(named[word]))
    others = named.pop(most) if len(named[most]) > 2 else []
    said = [f"{word} in {', '.join(names)}" for word, names in named.items()]
    return "; ".join([*said, f"{most} in the others"] if others else said)


def _requests(arm: DrawnArm) -> str:
    counts = arm.summary["requests"]
    return f"{counts['completed']:,} of {counts['planned']:,}"


def _faults_said(arms: Sequence[DrawnArm]) -> list[str]:
    said = faults_of(arms)
    return [f"Fault{'s' if len(said) > 1 else ''}: {'; '.join(said)}."] if said else []
