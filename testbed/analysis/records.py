"""The merged tables of an arm as the analysis sees them: columns by name, and the windows that figures cover."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, repeat
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from testbed.record.gather import Texts
from testbed.record.outcome import RunOutcome
from testbed.record.read import Columns
from testbed.scenario.schema import Scenario

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Table = Columns
Tables = dict[str, Columns]


class Window(NamedTuple):
    """A stretch of scenario time, seconds, its end excluded."""

    from_s: float
    to_s: float

    def holds(self, instants_s: Floats) -> Mask:
        """Which instants lie in it."""
        return (instants_s >= self.from_s) & (instants_s < self.to_s)


def measured_window(scenario: Scenario, outcome: RunOutcome) -> Window:
    """From the warm-up to the end of the arrivals, or to the end of a run that was cut short."""
    return Window(scenario.warmup, max(scenario.warmup, min(scenario.duration, ended_s(scenario, outcome))))


def ended_s(scenario: Scenario, outcome: RunOutcome) -> float:
    """When the nodes were stopped, scenario time."""
    return outcome.ended_at_s / scenario.time_scale


def rows(table: Table, mask: Mask) -> Table:
    """The rows of a table that the mask keeps; a stretch of rows is a view, so that it costs neither time nor memory."""
    kept = int(np.count_nonzero(mask))
    first = int(np.argmax(mask)) if kept else 0
    is_stretch = bool(mask[first : first + kept].all())
    chosen: Any = slice(first, first + kept) if is_stretch else mask
    return {name: column[chosen] for name, column in table.items()}


def answered_column(requests: Table) -> str:
    """The column of the instants at which servers answered.

    Runs of earlier versions have none: there it is that of the planned boundaries, at which they were to answer.
    """
    return "answered_at_s" if "answered_at_s" in requests else "finished_at_s"


def row_count(table: Table) -> int:
    """Number of rows."""
    return len(next(iter(table.values()))) if table else 0


def codes(column: npt.NDArray[Any] | Texts, names: Sequence[str]) -> npt.NDArray[np.int64]:
    """Position of each text in `names`; -1 for one that is not there."""
    if isinstance(column, Texts):
        return column.places(names).astype(np.int64)
    positions = {name: position for position, name in enumerate(names)}
    return np.fromiter(map(positions.get, column.tolist(), repeat(-1)), np.int64, len(column))


def positions_by(groups: npt.NDArray[np.integer[Any]], count: int) -> list[npt.NDArray[np.intp]]:
    """The rows of each group 0, 1, .. `count` - 1, in their order; one sorting for all of them."""
    order = np.argsort(groups, kind="stable")
    bounds = np.searchsorted(groups[order], np.arange(count + 1))
    return [order[a:b] for a, b in pairwise(bounds)]


def mean(values: Floats) -> float:
    """Mean of the finite values; NaN when there are none."""
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if len(finite) else float("nan")


def quantile(values: Floats, fraction: float) -> float:
    """Quantile of the finite values, interpolated; NaN when there are none."""
    finite = values[np.isfinite(values)]
    return float(np.quantile(finite, fraction)) if len(finite) else float("nan")


def weighted_quantile(values: Floats, weights: Floats, fraction: float) -> float:
    """The least value such that values up to it hold this fraction of all weight; NaN without any weight."""
    if not len(values) or not weights.sum() > 0:
        return float("nan")
    return float(np.quantile(values, fraction, weights=weights, method="inverted_cdf"))
