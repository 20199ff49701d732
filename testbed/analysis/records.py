"""The merged tables of an arm as the analysis sees them: columns by name, and the windows that figures cover."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

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
    """The rows of a table that the mask keeps."""
    return {name: column[mask] for name, column in table.items()}


def row_count(table: Table) -> int:
    """Number of rows."""
    return len(next(iter(table.values()))) if table else 0


def codes(column: npt.NDArray[Any], names: Sequence[str]) -> npt.NDArray[np.int64]:
    """Position of each text in `names`; -1 for one that is not there."""
    positions = {name: position for position, name in enumerate(names)}
    return np.fromiter(map(positions.get, column.tolist(), repeat(-1)), np.int64, len(column))


def mean(values: Floats) -> float:
    """Mean of the finite values; NaN when there are none."""
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if len(finite) else float("nan")


def quantile(values: Floats, fraction: float) -> float:
    """Quantile of the finite values, interpolated; NaN when there are none."""
    finite = values[np.isfinite(values)]
    return float(np.quantile(finite, fraction)) if len(finite) else float("nan")
