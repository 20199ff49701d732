"""Where runs differ: in what they were told to do, and in what came of it.

Keys are paths such as `policies.flow.step` or `links[1].delay`. Figures of several seeds are compared by their means
with 95 % intervals (Student's t; for a difference, Welch's degrees of freedom).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtrit

CONFIDENCE = 0.95

# What `compare` shows of an arm, in this order; `{cell}` stands for each of its cells.
MAIN_FIGURES = (
    "requests.planned",
    "requests.completed",
    "sojourn_s.mean",
    "sojourn_s.p50",
    "sojourn_s.p90",
    "sojourn_s.p99",
    "first_token_s.p50",
    "first_token_s.p99",
    "oscillation.amplitude",
    "oscillation.period_s",
    "staleness_s.p50",
    "staleness_s.p99",
    "policy.product",
    "policy.loop_delay_s",
    "settled.shares_settled_s",
    "settled.sojourn_settled_s",
    "synchrony.correlation",
    "migration_per_minute",
    "deviation.dev_F",
    "deviation.dev_x",
    "regret_s.total",
    "regret_s.staleness",
    "imbalance.requests",
    "imbalance.work",
)


class Difference(NamedTuple):
    """A key whose values differ; a side that lacks the key says `MISSING`."""

    key: str
    left: Any
    right: Any


class Estimate(NamedTuple):
    """The mean of a figure over runs, and half the width of its 95 % interval (NaN for a single run)."""

    mean: float
    half_width: float
    runs: int


class FigureDifference(NamedTuple):
    """A figure of an arm in two groups of runs, and right less left with half the width of its interval, in its unit."""

    arm: str
    figure: str
    left: Estimate
    right: Estimate
    difference: float
    half_width: float

    @property
    def relative(self) -> float:
        """The difference as a fraction of the left value; NaN where that is 0."""
        return self.difference / abs(self.left.mean) if self.left.mean else math.nan


MISSING = "(not given)"


def differing_keys(left: Any, right: Any, key: str = "") -> list[Difference]:
    """Every key in which two nested structures of mappings, lists and plain values differ, in order."""
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        names = list(dict.fromkeys((*left, *right)))
        parts = [
            (f"{key}.{name}" if key else str(name), _get(left, name), _get(right, name)) for name in names
        ]
    elif _is_list(left) and _is_list(right):
        parts = [(f"{key}[{i}]", _item(left, i), _item(right, i)) for i in range(max(len(left), len(right)))]
    else:
        return [] if _same(left, right) else [Difference(key, left, right)]
    return [found for part in parts for found in differing_keys(part[1], part[2], part[0])]


def figure_at(summary: Mapping[str, Any], key: str) -> float:
    """A number of an arm's summary by its path, such as `sojourn_s.p99`; NaN where null or not there."""
    value: Any = summary
    for name in key.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return float(value) if isinstance(value, (int, float)) else math.nan


def main_figures(summary: Mapping[str, Any]) -> dict[str, float]:
    """The main figures of an arm, with the share and the requests in flight of each cell."""
    cells = [
        f"cells.{cell}.{what}" for cell in summary.get("cells", {}) for what in ("share", "in_flight_mean")
    ]
    return {key: figure_at(summary, key) for key in (*MAIN_FIGURES, *cells)}


def estimate(values: Sequence[float]) -> Estimate:
    """Mean and 95 % t interval of the finite values."""
    known = np.array([value for value in values if math.isfinite(value)])
    if not len(known):
        return Estimate(math.nan, math.nan, 0)
    if len(known) == 1:
        return Estimate(float(known[0]), math.nan, 1)
    error = float(known.std(ddof=1)) / math.sqrt(len(known))
    return Estimate(float(known.mean()), error * _t_factor(len(known) - 1), len(known))


def compare_figures(
    left: Sequence[Mapping[str, Any]], right: Sequence[Mapping[str, Any]]
) -> list[FigureDifference]:
    """The main figures of the arms that two groups of run summaries share, or of the only arm of each.

    Args:
        left: `summary.json` of each run of the one group: one run, or several seeds of it.
        right: of the other.
    """
    differences = []
    for name, of_left, of_right in compared_arms(left, right):
        ours = [main_figures(run["arms"][of_left]) for run in left]
        theirs = [main_figures(run["arms"][of_right]) for run in right]
        for figure in dict.fromkeys((*ours[0], *theirs[0])):
            a = [run.get(figure, math.nan) for run in ours]
            b = [run.get(figure, math.nan) for run in theirs]
            differences.append(figure_difference(name, figure, a, b))
    return differences


def compared_arms(
    left: Sequence[Mapping[str, Any]], right: Sequence[Mapping[str, Any]]
) -> list[tuple[str, str, str]]:
    """What is compared: its name, the arm on the left, the arm on the right.

    Arms of one name; where there is none and each side has a single arm, these two, whatever their names.
    """
    ours, theirs = (_arms_of_all(runs) for runs in (left, right))
    shared = [(arm, arm, arm) for arm in ours if arm in theirs]
    if not shared and len(ours) == len(theirs) == 1:
        return [(f"{ours[0]}, {theirs[0]}", ours[0], theirs[0])]
    return shared


def _arms_of_all(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    return [arm for arm in runs[0]["arms"] if all(arm in run["arms"] for run in runs)]


def figure_difference(
    arm: str, figure: str, left: Sequence[float], right: Sequence[float]
) -> FigureDifference:
    """Right less left in the mean, by what two groups of runs have of a figure; NaN stands for none."""
    a, b = estimate(left), estimate(right)
    return FigureDifference(arm, figure, a, b, b.mean - a.mean, _welch_half_width(a, b))


def _welch_half_width(a: Estimate, b: Estimate) -> float:
    """Half the 95 % interval of a difference of means; NaN unless both have several runs.

    Source: Welch, Biometrika 34 (1947).
    """
    if a.runs < 2 or b.runs < 2:
        return math.nan
    variances = [(each.half_width / _t_factor(each.runs - 1)) ** 2 for each in (a, b)]
    total = sum(variances)
    if total == 0.0:
        return 0.0
    freedom = total**2 / (variances[0] ** 2 / (a.runs - 1) + variances[1] ** 2 / (b.runs - 1))
    return math.sqrt(total) * _t_factor(freedom)


def _t_factor(degrees_of_freedom: float) -> float:
    return float(stdtrit(degrees_of_freedom, 0.5 + CONFIDENCE / 2))


def _get(mapping: Mapping[str, Any], name: str) -> Any:
    return mapping.get(name, MISSING)


def _item(values: Sequence[Any], index: int) -> Any:
    return values[index] if index < len(values) else MISSING


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple))


def _same(left: Any, right: Any) -> bool:
    return bool(left == right) or (left != left and right != right)
