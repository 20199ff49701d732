"""A run of the throughput scenario made up: what its summary, its tables and its ending say of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from testbed.analysis.host import HostSeries
from testbed.benchmark.scenes import Ran
from testbed.record.outcome import RunOutcome

SPAN_S = 10.0


def made_run(
    *,
    planned: int = 1_000,
    completed: int | None = None,
    late_ms: float | None = 0.5,
    verdict: str = "valid",
    cpu_s: float = 1.0,
    host: dict[str, Any] | None = None,
    outcome: RunOutcome | None = None,
) -> Ran:
    """Ten seconds on a machine that did nothing else, unless `host` says so: the columns of its one row."""
    row = {"span_s": SPAN_S, "at_s": SPAN_S, "pressure": 0.2, "busy_cores": cpu_s / SPAN_S, "steal": 0.0}
    row |= {"slowdown": 1.1, "slow_fraction": 0.0, "throttled_s": 0.0, "swapped_pages": 0.0}
    row |= {"clock_step_s": 0.0, "wake_late_s": 0.0, **(host or {})}
    columns = {name: np.array([value]) for name, value in row.items()}
    summary: dict[str, Any] = {
        "host": HostSeries(columns, 1.0).figures(),
        "verdict": verdict,
        "checks": {},
        "requests": {"planned": planned, "completed": planned if completed is None else completed, "lost": 0},
        "release_lateness_s": {"p99": None if late_ms is None else 1e-3 * late_ms},
    }
    tables = {
        "processes": {"cpu_s": np.array([cpu_s])},
        "host": columns,
    }
    return Ran(summary, outcome or RunOutcome("live", "actual", SPAN_S, True), tables)
