"""V10 and V11: one cell of many like servers, one request at a time each, by the policies of its leaves.

V10: all servers report at one instant every T, and a leaf sees nothing in between: a bulletin board. V11: fresh news,
as one leaf has of its own requests, or as idle servers tell their leaves.

A mean sojourn at a load of 0.9 moves by a per cent when the load that happens to come does by a thousandth. That load
is known afterwards, and so is its mean, 0.9: the means of stretches of the run are regressed on what came in each,
and read at 0.9. (A control variate; Law, Simulation Modeling and Analysis, section 11.4.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from testbed.analysis.records import Table
from testbed.verification.finding import Finding
from testbed.verification.mode import Floats
from testbed.verification.trial import run_trial, scenario_of

LOAD = 0.9
NEVER = "1000000 s"  # records and reports that nobody reads

_TIES = {"ties": "random"}
_TWO = {"kind": "two_choices", "cost": "in_flight", **_TIES}
_JSQ = {"kind": "jsq", **_TIES}
_LI = {"kind": "load_interpretation"}


NOTE = (
    "The shortest queue under a board every 10 s is the row that wanders most. An independent simulation, fifty runs of"
    " 5,000 s of which the first 1,000 do not count, gave 23.39 +- 0.07 s; from 300 s on, while the queues still fill,"
    " 23.14 +- 0.08 s. The table of the theory has 23.8 s with a standard error of 1 %."
)


class Estimate(NamedTuple):
    """A mean sojourn and its standard error, seconds."""

    mean_s: float
    error_s: float


class Length(NamedTuple):
    """How long one run is, what of it is warm-up, and into how many stretches the rest is cut."""

    duration_s: float
    warmup_s: float
    stretches: int


# Stretches are long beside the memory of the total backlog (tens of seconds), so that they are nearly independent.
_BOARD = Length(4000.0, 300.0, 20)
_BOARD_LONG = Length(5000.0, 1000.0, 8)  # where queues take hundreds of seconds to fill and to forget
_BOARD_QUICK = Length(400.0, 100.0, 6)
_FRESH = Length(1500.0, 100.0, 20)
_IDLE = Length(800.0, 100.0, 20)  # 75,000 links, which take their time too
_FRESH_QUICK = Length(110.0, 30.0, 6)  # 500 servers, and means that settle sooner


class _Case(NamedTuple):
    """A setting and the mean sojourn that is published or derived for it."""

    what: str
    policy: dict[str, Any]
    period_s: float  # between two boards
    expected_s: float
    runs: int = (
        1  # of the full form, longer ones if many: where means wander more; the quick form leaves those out
    )


_BOARDS = (
    _Case("two choices", _TWO, 1.0, 2.96),
    _Case("shortest", _JSQ, 1.0, 4.05),
    _Case("load interpretation", _LI, 1.0, 2.52),
    _Case("two choices", _TWO, 10.0, 5.08),
    _Case("shortest", _JSQ, 10.0, 23.8, runs=5),
    _Case("load interpretation", _LI, 10.0, 4.94),
    _Case("random", {"kind": "random"}, 10.0, 10.0, runs=3),
)


def bulletin_board(quick: bool) -> Iterator[Finding]:
    """V10: mean sojourns of 100 servers under boards every 1 s and 10 s."""
    for case in _BOARDS:
        if quick and case.runs > 1:
            continue
        length = _BOARD_QUICK if quick else _BOARD_LONG if case.runs > 1 else _BOARD
        seeds = range(1, case.runs + 1)
        estimate = mean_sojourn(case.policy, length, servers=100, period_s=case.period_s, seeds=seeds)
        what = f"mean sojourn, {case.what}, board every {case.period_s:g} s, 100 servers, load {LOAD}"
        yield _finding("V10", what, "theory 5.1, 5.2", case.expected_s, estimate, 0.03, quick)


def fresh_news(quick: bool) -> Iterator[Finding]:
    """V11: the best of two and of three by fresh counts, and join idle queue, 500 servers."""
    own = {"cost": "in_flight", "view": "own_counts", **_TIES}
    length = _FRESH_QUICK if quick else _FRESH
    for choices, expected_s in ((2, 2.614), (3, 2.028)):
        policy = {"kind": "d_choices", "choices": choices, **own}
        estimate = mean_sojourn(policy, length, servers=500)
        what = f"mean sojourn, best of {choices}, fresh counts, 500 servers, load {LOAD}"
        source = "theory 6: sum of rho^((d^k-d)/(d-1)), many servers"
        yield _finding("V11", what, source, expected_s, estimate, 0.02, quick)
    length = _FRESH_QUICK if quick else _IDLE
    estimate = mean_sojourn({"kind": "jiq"}, length, servers=500, leaves=50)
    what = f"mean sojourn, join idle queue, 50 leaves of 500 servers, load {LOAD}"
    source = "theory 6: 1/(1 - lambda (1 - p)), p/(1 - p) = r (1 - lambda), r = 10"
    yield _finding("V11", what, source, 1.818, estimate, 0.04, quick)


def mean_sojourn(
    policy: dict[str, Any],
    length: Length,
    *,
    servers: int,
    period_s: float = 1.0,
    seeds: Iterable[int] = (1,),
    leaves: int = 1,
) -> Estimate:
    """The mean sojourn in a cell at a load of 0.9, from runs under virtual time.

    Args:
        policy: words of the policy of its leaves.
        length: of one run.
        servers: exponential, of mean 1 s, first come first served.
        period_s: between two reports of all servers, where the policy reads reports.
        seeds: one run each.
        leaves: that share the servers; the root draws one for each request.
    """
    loads, means_s = [], []
    for seed in seeds:
        words = _scenario(policy, servers, period_s, length.duration_s, seed, leaves)
        requests = run_trial(scenario_of(words)).tables["requests"]
        each_loads, each_means_s = _stretches(requests, length, servers)
        loads.append(each_loads)
        means_s.append(each_means_s)
    return read_at(LOAD, np.concatenate(loads), np.concatenate(means_s))


def read_at(load: float, loads: Floats, means: Floats) -> Estimate:
    """The value at a load of the line through (load, mean) of each stretch, and its standard error.

    Args:
        load: where to read.
        loads: shape (stretches,).
        means: shape (stretches,), seconds.
    """
    design = np.stack([np.ones(len(loads)), loads - load], axis=1)
    solution, *_ = np.linalg.lstsq(design, means, rcond=None)
    residuals = means - design @ solution
    variance = float(residuals @ residuals) / (len(means) - 2)
    error = np.sqrt(variance * np.linalg.inv(design.T @ design)[0, 0])
    return Estimate(float(solution[0]), float(error))


def _stretches(requests: Table, length: Length, servers: int) -> tuple[Floats, Floats]:
    """Load that came and mean sojourn of each stretch after the warm-up, by planned arrival."""
    edges = np.linspace(length.warmup_s, length.duration_s, length.stretches + 1)
    planned = requests["planned_at_s"]
    work, _ = np.histogram(planned, edges, weights=requests["finished_at_s"] - requests["started_at_s"])
    total, _ = np.histogram(planned, edges, weights=requests["replied_at_s"] - planned)
    number, _ = np.histogram(planned, edges)
    return work / (servers * np.diff(edges)), total / number


def _scenario(
    policy: dict[str, Any], servers: int, period_s: float, duration_s: float, seed: int, leaves: int
) -> dict[str, Any]:
    return {
        "name": "board",
        "duration": f"{duration_s} s",
        "drain": "10000 s",  # until the last request has been served
        "seed": seed,
        "reports": {"every": NEVER},
        "cells": {
            "cell": {
                "servers": servers,
                "service": {"slots": 1, "exponential": "1 s"},
                "leaf": {"policy": "rule", "count": leaves, "pick": "random"},
                "server_reports": {"every": f"{period_s} s", "phase": "in_phase"},
            }
        },
        "roots": {
            "root": {"traffic": [{"class": "any", "rate": f"{LOAD * servers} /s", "policy": "only_cell"}]}
        },
        "classes": {"any": {"timeout": NEVER}},
        "policies": {"rule": policy, "only_cell": {"kind": "round_robin"}},
        "records": {"samples": NEVER, "decisions": "0 %"},
    }


def _finding(
    target: str, what: str, source: str, expected_s: float, estimate: Estimate, relative: float, quick: bool
) -> Finding:
    """Met within the tolerance; the quick form, whose runs are short, adds two standard errors of the measurement."""
    margin_s = relative * expected_s + (2 * estimate.error_s if quick else 0.0)
    tolerance = f"{relative * 100:g} %" + (f" + 2 x {estimate.error_s:.2g} s" if quick else "")
    return Finding(
        target,
        what,
        source,
        "virtual",
        f"{expected_s:.4g} s",
        f"{estimate.mean_s:.4g} +- {estimate.error_s:.2g} s",
        tolerance,
        abs(estimate.mean_s - expected_s) <= margin_s,
    )
