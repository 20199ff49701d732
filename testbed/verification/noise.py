"""V9: how noise and delay together make cells swing, and where the swing jumps to a large cycle; by events."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from testbed.analysis.in_flight import in_flight_by_cell
from testbed.analysis.oscillation import dominant_cycle
from testbed.verification.equal_cells import EqualCells
from testbed.verification.finding import Finding, within
from testbed.verification.trial import run_trial, scenario_of

SETTING = EqualCells(2, 0.8, "hyperbolic", 100.0, 20.0, 0.2)
_EVERY_S = 0.04  # between reports: a tenth of the loop delay
_WARMUP_S = 40.0  # eight relaxation times
_GRID_S = 0.05
_SHORT_S, _LONG_S, _CYCLE_S = (
    400.0,
    2400.0,
    200.0,
)  # of runs: quick, full, and of greedy, which repeats every 1.6 s
_SOURCE = "theory 2.8"


class Noise(NamedTuple):
    """What a run showed: sd of N_1 - N_2, mean of N_1 + N_2, period of the difference."""

    deviation: float
    in_flight: float
    period_s: float


def amplification(quick: bool) -> Iterator[Finding]:
    """V9; the quick form has greedy routing alone: the slow swings of the others take long runs to measure to 10 %."""
    if not quick:
        for name, fraction, deviation in (
            ("static split", 0.0, 28.0),
            ("flow at 0.1 of the critical step", 0.1, 30.0),
            ("flow at 0.3 of the critical step", 0.3, 36.0),
        ):
            yield within(
                "V9", f"sd of N1 - N2, {name}", _SOURCE, "virtual",
                expected=deviation, measured=measured(fraction, _LONG_S).deviation, relative=0.1, unit="requests",
            )  # fmt: skip
        yield within(
            "V9", "mean in flight, flow at 0.7 of the critical step, cost not cut: the large cycle", _SOURCE, "virtual",
            expected=240.0, measured=measured(0.7, _LONG_S).in_flight, relative=0.1, unit="requests",
        )  # fmt: skip
    greedy = measured(None, _CYCLE_S)
    yield within(
        "V9", "mean in flight, greedy", _SOURCE, "virtual",
        expected=172.0, measured=greedy.in_flight, relative=0.1, unit="requests",
    )  # fmt: skip
    yield within(
        "V9", "period, greedy", _SOURCE, "virtual",
        expected=1.6, measured=greedy.period_s, relative=0.1, unit="s",
    )  # fmt: skip


@cache
def measured(fraction: float | None, length_s: float) -> Noise:
    """A run at a fraction of the critical step; 0: a random split; None: greedy."""
    trial = run_trial(scenario_of(_words(_policy(fraction), length_s)))
    edges_s = np.arange(_WARMUP_S, length_s, _GRID_S)
    first, second = in_flight_by_cell(trial.tables["requests"], ["a", "b"], edges_s)
    difference = first - second
    return Noise(
        float(difference.std()),
        float((first + second).mean()),
        dominant_cycle(difference).lag_bins * _GRID_S,
    )


def _policy(fraction: float | None) -> dict[str, Any]:
    if fraction is None:
        return {"kind": "least_cost", "cost": "in_flight", "ties": "random"}
    if fraction == 0.0:
        return {"kind": "random"}
    params = {"step_per_s2": fraction * SETTING.edge.gain, "interval_s": _EVERY_S}
    return {"kind": "testbed.verification.uncut_flow:UncutFlow", "params": params}


def _words(policy: dict[str, Any], length_s: float) -> dict[str, Any]:
    curve = {"capacity": f"{SETTING.capacity_per_s!r} /s", "half": SETTING.half}
    delay = f"{SETTING.one_way_s!r} s"
    return {
        "name": "noise",
        "duration": f"{length_s!r} s",
        "cells": {
            name: {"servers": 1, "service": {"rate_curve": curve, "work": "exponential"}} for name in "ab"
        },
        "roots": {
            "root": {"traffic": [{"class": "c", "rate": f"{SETTING.rate_per_s!r} /s", "policy": "tried"}]}
        },
        "reports": {"every": f"{_EVERY_S!r} s", "phase": "in_phase"},
        "classes": {"c": {"timeout": "1000 s"}},
        "policies": {"tried": policy},
        "records": {"decisions": "0 %", "samples": "100 s"},
        "links": [
            {"from": "root.*", "to": "cell.*", "path": "request", "delay": delay},
            {"from": "cell.*", "to": "root.*", "path": "observation", "delay": delay},
        ],
    }
