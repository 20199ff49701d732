"""What a figure is drawn from: the arms of a run, each with its scenario, tables and summary."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from testbed.analysis.in_flight import in_flight_by_cell
from testbed.analysis.records import Floats, Tables, Window, rows
from testbed.figures.fluid_course import Overlay, fluid_of
from testbed.scenario.schema import Scenario


@dataclass(frozen=True)
class DrawnArm:
    """One arm of a run.

    Attributes:
        name: of the arm.
        scenario: resolved, unscaled.
        tables: the merged tables.
        summary: its entry of `summary.json`.
    """

    name: str
    scenario: Scenario
    tables: Tables
    summary: dict[str, Any]

    @cached_property
    def fluid(self) -> Overlay | None:
        """The noise-free fluid over the time that figures show; None where the theory has none."""
        return fluid_of(self.scenario, drawn_window(self).to_s)

    @cached_property
    def in_flight(self) -> dict[str, Floats]:
        """Mean requests in flight at each cell over the bins of `time_bins`."""
        cells = list(self.scenario.cells)
        series = in_flight_by_cell(self.tables["requests"], cells, time_bins(drawn_window(self).to_s))
        return dict(zip(cells, series, strict=True))


def time_bins(end_s: float, most: int = 600) -> Floats:
    """Edges of bins that a panel can resolve, so that a million requests draw as few points as a thousand."""
    return np.linspace(0.0, end_s, most + 1)


def drawn_window(arm: DrawnArm) -> Window:
    """The time that figures over time show: from the start to the end of the arrivals, or of a run cut short."""
    return Window(0.0, min(arm.scenario.duration, arm.summary["ended_s"]))


def counted_window(arm: DrawnArm) -> Window:
    """The time that statistics cover: the same without the warm-up."""
    return Window(arm.scenario.warmup, max(arm.scenario.warmup, drawn_window(arm).to_s))


def counted_requests(arm: DrawnArm) -> dict[str, Any]:
    """The rows of the requests planned in the time that statistics cover."""
    requests = arm.tables["requests"]
    return rows(requests, counted_window(arm).holds(requests["planned_at_s"]))
