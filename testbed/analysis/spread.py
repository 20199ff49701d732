"""The A/A spread: by how much figures differ between runs of one plan, and so which differences between arms are noise.

Runs of one plan have the same requests at the same instants, and the same draws. What differs between them is what real
processes do in another order or a little later; under virtual time, nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from testbed.analysis.compare import Difference, differing_keys, figure_difference, main_figures

WALL_TIME = ("wall_s", "start_s")  # what a run took, of any engine: no figure of the scenario

ROUNDING = 1e-12  # of a figure: what sums in another order may come to


class Spread(NamedTuple):
    """A figure of an arm over runs of one plan, and how the arm differs from the first one.

    Attributes:
        arm: its name.
        figure: its path in the summary.
        mean: over the runs.
        spread: largest less least; NaN where fewer than two runs have the figure.
        difference: of the means, this arm less the first; NaN for the first.
        half_width: half of the difference's 95 % interval, by the spread within each arm.
    """

    arm: str
    figure: str
    mean: float
    spread: float
    difference: float
    half_width: float

    @property
    def relative(self) -> float:
        """The spread as a fraction of the mean; NaN where that is 0."""
        return self.spread / abs(self.mean) if self.mean else math.nan

    @property
    def word(self) -> str:
        """`differs`, `noise` where the interval of the difference holds 0, `equal` without one; empty: not to be judged."""
        if math.isnan(self.difference) or math.isnan(self.half_width):
            return ""
        if abs(self.difference) <= ROUNDING * abs(self.mean):
            return "equal"
        return "differs" if abs(self.difference) > self.half_width else "noise"


def spreads(summaries: Sequence[Mapping[str, Any]]) -> list[Spread]:
    """The main figures of every arm that all runs have, in the order of the arms; those that no run has are left out.

    Args:
        summaries: `summary.json` of each run.
    """
    arms = [arm for arm in summaries[0]["arms"] if all(arm in run["arms"] for run in summaries)]
    figures = {arm: [main_figures(run["arms"][arm]) for run in summaries] for arm in arms}
    return [
        found
        for arm in arms
        for figure in figures[arm][0]
        if not math.isnan((found := _spread(arm, figure, figures[arm], figures[arms[0]])).mean)
    ]


def unequal_keys(summaries: Sequence[Mapping[str, Any]]) -> list[Difference]:
    """What differs between the first run and any other, wall times apart: every key of every arm's summary."""
    first, *others = ([_timeless(words) for words in run["arms"].values()] for run in summaries)
    arms = list(summaries[0]["arms"])
    return [
        found._replace(key=f"{arm}.{found.key}")
        for other in others
        for arm, ours, theirs in zip(arms, first, other, strict=True)
        for found in differing_keys(ours, theirs)
    ]


def _timeless(words: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in words.items() if key not in WALL_TIME}


def _spread(
    arm: str, figure: str, mine: Sequence[Mapping[str, float]], first: Sequence[Mapping[str, float]]
) -> Spread:
    values = [run[figure] for run in mine]
    known = [value for value in values if math.isfinite(value)]
    against = figure_difference(arm, figure, [run.get(figure, math.nan) for run in first], values)
    is_first = mine is first
    return Spread(
        arm,
        figure,
        against.right.mean,
        max(known) - min(known) if len(known) > 1 else math.nan,
        math.nan if is_first else against.difference,
        math.nan if is_first else against.half_width,
    )
