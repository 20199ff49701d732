"""What a figure is drawn from: the arms of a run, each with its scenario, tables and summary."""

from __future__ import annotations

from typing import Any, NamedTuple

from testbed.analysis.records import Tables, Window, rows
from testbed.scenario.schema import Scenario


class DrawnArm(NamedTuple):
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
