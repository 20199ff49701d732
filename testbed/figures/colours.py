"""Which colour stands for what, the same in every figure.

Cells take the colours of Okabe and Ito in the order of the scenario; arms take theirs from the kind of their
policy, so that greedy routing looks alike in every run, and further arms of the same kind are paler and dashed
otherwise. Both sets can be told apart with any of the common colour-vision deficiencies.

Source: Okabe and Ito, "Color universal design" (2008); Tol, "Colour schemes", SRON/EPS/TN/09-002 (2021), bright.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from matplotlib.colors import to_hex, to_rgb

CELL_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#7F6000", "#000000")

KIND_COLOURS = {
    "flow": "#4477AA",
    "least_cost": "#EE6677",
    "two_choices": "#AA3377",
    "weighted": "#777777",
    "random": "#BB9911",
    "round_robin": "#228833",
    "prequal": "#33AACC",
}
OTHER_KIND = "#222222"  # policies of the user's own, and arms that mix kinds

OUTCOME_COLOURS = {
    "completed": "#A9D18E",
    "failed": "#CC3311",
    "timed_out": "#EE7733",
    "shed": "#33BBEE",
    "no_target": "#AA3377",
    "lost": "#222222",
    "unfinished": "#BBBBBB",
}

VERDICT_COLOURS = {"valid": "#22773A", "suspect": "#A86A00", "invalid": "#B2182B", "incomplete": "#B2182B"}
FAULT_COLOUR = "#B2182B"
WARMUP_COLOUR = "#888888"
LIMIT_COLOUR = "#444444"

_DASHES = ("solid", (0, (5, 1.5)), (0, (1.5, 1.5)), (0, (6, 1.5, 1.5, 1.5)))
_PALER = (0.0, 0.25, 0.45, 0.6)

Dashes = str | tuple[int, tuple[float, ...]]


class LineStyle(NamedTuple):
    """How an arm's lines look."""

    colour: str
    dashes: Dashes


def cell_colours(cells: Iterable[str]) -> dict[str, str]:
    """The colour of each cell, by its place in the scenario; the ninth begins anew."""
    return {cell: CELL_COLOURS[i % len(CELL_COLOURS)] for i, cell in enumerate(cells)}


def arm_styles(kinds: Sequence[tuple[str, str | None]]) -> dict[str, LineStyle]:
    """The look of each arm, from (name, kind of its policy) in the order of the run."""
    styles: dict[str, LineStyle] = {}
    seen: dict[str, int] = {}
    for name, kind in kinds:
        colour = KIND_COLOURS.get(kind or "", OTHER_KIND)
        turn = seen.get(colour, 0)
        seen[colour] = turn + 1
        # The shades begin anew with other dashes, so that sixteen arms of a kind can be told apart.
        dashes = _DASHES[(turn + turn // len(_PALER)) % len(_DASHES)]
        styles[name] = LineStyle(_paler(colour, _PALER[turn % len(_PALER)]), dashes)
    return styles


def _paler(colour: str, part: float) -> str:
    red, green, blue = (channel + (1.0 - channel) * part for channel in to_rgb(colour))
    return to_hex((red, green, blue))
