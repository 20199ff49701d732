"""The laws of queueing that no service model may break: one virtual run, a root of its own for each queue.

Tolerances are four standard errors, by batch means.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from testbed.analysis.records import Table
from testbed.serving.service import clipped_normal_mean
from testbed.theory.queueing import erlang_c, md1_wait_s, mm1_sojourn_s
from testbed.theory.stability import Floats
from testbed.verification.finding import Finding
from testbed.verification.trial import Trial, run_trial, scenario_of

SERVICE_S, RHO, SLOTS, SPLIT = 0.02, 0.5, 4, 4
RATE_PER_S = RHO / SERVICE_S
NORMAL_S = clipped_normal_mean(SERVICE_S, SERVICE_S)
_BATCHES = 30
_ERRORS = 4.0
_WARMUP_S = 10.0
_SHORT_S, _LONG_S = 200.0, 3000.0
_SAMPLES_S = 0.05
_SOURCE = "Kleinrock, Queueing Systems"


def laws(quick: bool) -> Iterator[Finding]:
    """M/M/1, M/D/1, Erlang C, insensitivity of processor sharing, random split, Little."""
    trial = _trial(_SHORT_S if quick else _LONG_S)
    exponential_s, fixed_s = mm1_sojourn_s(RATE_PER_S, SERVICE_S), md1_wait_s(RATE_PER_S, SERVICE_S)
    yield _law("M/M/1: mean sojourn", exponential_s, _sojourns(trial, "mm1"))
    yield _law("M/D/1: mean wait, half that of M/M/1", fixed_s, _waits(trial, "md1"))
    waited: Floats = np.asarray(_waits(trial, "mmc") > 1e-9, np.float64)
    yield _law(
        f"M/M/{SLOTS}: share of arrivals that wait, Erlang C",
        erlang_c(SLOTS, RHO * SLOTS), waited, unit="",
    )  # fmt: skip
    normal_s = NORMAL_S / (1.0 - RHO)
    for kind, cell, mean_s in (
        ("exponential", "ps_exponential", exponential_s),
        ("fixed", "ps_fixed", exponential_s),
        ("normal, cut at 0", "ps_normal", normal_s),
    ):
        yield _law(f"processor sharing, {kind} work: mean sojourn", mean_s, _sojourns(trial, cell))
    for cell in (f"split_{i}" for i in range(SPLIT)):
        what = f"Poisson arrivals dealt at random to {SPLIT} servers: mean sojourn at {cell}"
        yield _law(what, exponential_s, _sojourns(trial, cell))
    yield _little(trial)


def _law(what: str, expected: float, values: Floats, unit: str = "ms") -> Finding:
    """A mean, in order of arrival, against its closed form."""
    means = np.array([batch.mean() for batch in np.array_split(values, _BATCHES)])
    error = float(means.std(ddof=1)) / math.sqrt(_BATCHES)
    measured, scale = float(values.mean()), 1000.0 if unit == "ms" else 1.0
    return Finding(
        "queueing", what, _SOURCE, "virtual",
        f"{expected * scale:.4g} {unit}".strip(), f"{measured * scale:.4g} {unit}".strip(),
        f"4 standard errors, {_ERRORS * error * scale:.2g} {unit}".strip(),
        abs(measured - expected) <= _ERRORS * error,
    )  # fmt: skip


def _little(trial: Trial) -> Finding:
    """Samples of the truth at the M/M/1 server against rate times sojourn from the instants of its requests."""
    samples = trial.tables["cells"]
    mine = (
        (samples["cell"] == "mm1")
        & (samples["at_s"] >= _WARMUP_S)
        & (samples["at_s"] < trial.scenario.duration)
    )
    seen = (samples["queued"] + samples["running"])[mine].astype(np.float64)
    requests = _of(trial, "mm1")
    span_s = trial.scenario.duration - _WARMUP_S
    expected = float((requests["finished_at_s"] - requests["at_server_s"]).sum()) / span_s
    means = np.array([batch.mean() for batch in np.array_split(seen, _BATCHES)])
    error = float(means.std(ddof=1)) / math.sqrt(_BATCHES)
    return Finding(
        "queueing", "Little: requests at the server as sampled, against rate times sojourn", "Little (1961)", "virtual",
        f"{expected:.4g}", f"{seen.mean():.4g}", f"4 standard errors, {_ERRORS * error:.2g}",
        abs(float(seen.mean()) - expected) <= _ERRORS * error,
    )  # fmt: skip


def _of(trial: Trial, cell: str) -> Table:
    """The requests of a cell after the warm-up, in order of arrival at its server."""
    requests = trial.tables["requests"]
    mine = np.flatnonzero((requests["cell"] == cell) & (requests["planned_at_s"] >= _WARMUP_S))
    order = mine[np.argsort(requests["at_server_s"][mine], kind="stable")]
    return {name: column[order] for name, column in requests.items()}


def _sojourns(trial: Trial, cell: str) -> Floats:
    requests = _of(trial, cell)
    return np.asarray(requests["finished_at_s"] - requests["at_server_s"])


def _waits(trial: Trial, cell: str) -> Floats:
    requests = _of(trial, cell)
    return np.asarray(requests["started_at_s"] - requests["at_server_s"])


@cache
def _trial(length_s: float) -> Trial:
    work = f"{SERVICE_S!r} s"
    services: dict[str, dict[str, Any]] = {
        "mm1": {"slots": 1, "exponential": work},
        "md1": {"slots": 1, "fixed": work},
        "mmc": {"slots": SLOTS, "exponential": work},
        "ps_exponential": {"sharing": {"allocation": 1.0}, "exponential": work},
        "ps_fixed": {"sharing": {"allocation": 1.0}, "fixed": work},
        "ps_normal": {"sharing": {"allocation": 1.0}, "normal": {"mean": work, "sd": work}},
        **{f"split_{i}": {"slots": 1, "exponential": work} for i in range(SPLIT)},
    }
    split = [cell for cell in services if cell.startswith("split_")]
    roots = {cell: _root(RATE_PER_S, [cell]) for cell in services if cell not in split}
    roots["mmc"] = _root(RATE_PER_S * SLOTS, ["mmc"])
    roots["split"] = _root(RATE_PER_S * SPLIT, split)
    roots["ps_normal"] = _root(RHO / NORMAL_S, ["ps_normal"])
    return run_trial(
        scenario_of(
            {
                "name": "queueing",
                "duration": f"{length_s!r} s",
                "cells": {cell: {"servers": 1, "service": service} for cell, service in services.items()},
                "roots": roots,
                "reports": {"every": "100 s"},
                "classes": {"c": {"timeout": "1000 s"}},
                "policies": {"random": {"kind": "random"}},
                "records": {"decisions": "0 %", "samples": f"{_SAMPLES_S!r} s"},
            }
        )
    )


def _root(rate_per_s: float, cells: list[str]) -> dict[str, Any]:
    return {"traffic": [{"class": "c", "rate": f"{rate_per_s!r} /s", "policy": "random"}], "allowed": cells}
