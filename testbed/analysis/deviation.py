"""How far a run stayed from the optimum of its scenario: in requests in the system, and in shares.

F is the number of requests in the whole system, from their sending until the reply or until their client has gone; F*
and x* are those of the optimum for the rates that were measured, over each stretch in which nothing changes, at the
speeds that the faults of that stretch leave. With x the shares of `routing_shares`:

    dev_F           time mean of (F - F*)/F*, F counted in the records: noise of arrivals and of service included
    dev_F_shares    the same with F of the model at the shares of the moment: what the shares alone cost
    dev_x           time mean of sum_i (lambda_i/Lambda) 1/2 sum_j |x_ij - x*_ij|

Of several optima (roots at equal distances) x* is the one that the theory leads to from a split by capacity. Shares of
a policy that chooses anew for each request are all or nothing for moments, so it has no dev_F_shares. Changed delays
of requests and replies do not change F*.

Source: measures.md, section 3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from testbed.analysis.in_flight import mean_counts
from testbed.analysis.records import Floats, Table, Tables, Window, codes, row_count
from testbed.analysis.regimes import Regime, regimes_of
from testbed.analysis.routing_shares import StreamShares
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import root_name
from testbed.theory.deviation_bound import DeviationBound, centred_norm, deviation_bound
from testbed.theory.operating_point import Demand

MOST_INSTANTS = 2000  # at which F of the shares is worked out: even in time


class Deviation(NamedTuple):
    """How far a window stayed from the optimum; NaN where there is none, or it is unknown.

    Attributes:
        dev_f: fraction of F*, as counted.
        dev_f_shares: fraction of F*, of the shares alone.
        dev_x: part of the traffic that would have to go elsewhere.
        in_system: time mean of F, requests.
        in_system_optimum: time mean of F*.
        bound: on dev_f_shares; None where a change within the window leaves no single F*.
    """

    dev_f: float
    dev_f_shares: float
    dev_x: float
    in_system: float
    in_system_optimum: float
    bound: DeviationBound | None


def deviation(
    scenario: Scenario, tables: Tables, streams: Sequence[StreamShares], window: Window
) -> Deviation:
    """Of a window; `streams` are its shares."""
    regimes = regimes_of(scenario, tables["requests"], window)
    if not regimes or not streams:
        return Deviation(math.nan, math.nan, math.nan, math.nan, math.nan, None)
    requests = tables["requests"]
    lengths_s = np.array([regime.window.to_s - regime.window.from_s for regime in regimes])
    counted = np.array([in_system(scenario, requests, regime.window) for regime in regimes])
    best = np.array([regime.optimum for regime in regimes])

    def time_mean(values: Floats) -> float:
        return float(np.average(values, weights=lengths_s))

    return Deviation(
        time_mean(counted / best - 1.0),
        time_mean(np.array([_excess_of_shares(regime, streams) for regime in regimes])),
        time_mean(np.array([_distance(regime, streams) for regime in regimes])),
        time_mean(counted),
        time_mean(best),
        _bound(scenario, tables, streams, window) if len(regimes) == 1 else None,
    )


def in_system(scenario: Scenario, requests: Table, window: Window) -> float:
    """Time mean of the requests that were sent and have neither been answered nor given up; exact."""
    timeouts_s = np.array([words.timeout for words in scenario.classes.values()])
    gone_s = requests["planned_at_s"] + timeouts_s[codes(requests["class"], list(scenario.classes))]
    left_s = np.fmin(requests["replied_at_s"], gone_s)
    entered_s = np.where(requests["cell"] != "", requests["sent_at_s"], np.nan)
    return float(mean_counts(entered_s, left_s, np.array([window.from_s, window.to_s]))[0])


def model_in_system(wanted: Demand, shares: Floats) -> Floats:
    """F of the model at shares of the lines, infinite where they overload a cell: shape (instants,).

    Args:
        wanted: rates and cells.
        shares: shape (instants, lines, cells).
    """
    alpha = np.array([[curve.alpha_s for curve in row] for row in wanted.curves])
    beta = np.array([[curve.beta_s for curve in row] for row in wanted.curves])
    cap = np.array([min(curve.n_cap for curve in column) for column in zip(*wanted.curves, strict=True)])
    rates = shares * wanted.rates_per_s[:, np.newaxis]
    free = wanted.servers - (rates * beta).sum(axis=1)
    work = (rates * alpha).sum(axis=1)
    n = np.divide(work, free, out=np.full(free.shape, np.inf), where=free > 0)
    n = np.where(n <= cap * (1 + 1e-9), n, np.inf)
    return np.asarray((wanted.servers * n).sum(axis=1) + (rates * wanted.travel_s).sum(axis=(1, 2)))


def _excess_of_shares(regime: Regime, streams: Sequence[StreamShares]) -> float:
    """(F - F*)/F* of the model at the shares, its mean over even instants; NaN if shares overload a cell."""
    if any(stream.kind == "chosen" for stream in streams):
        return math.nan
    window = regime.window
    edges = np.linspace(window.from_s, window.to_s, MOST_INSTANTS + 1)
    instants_s = (edges[:-1] + edges[1:]) / 2
    by_stream = {(stream.root, stream.class_name): stream.at(instants_s) for stream in streams}
    lines = [
        by_stream.get(key, np.broadcast_to(best, (len(instants_s), len(best))))
        for key, best in zip(regime.streams, regime.optimum_shares, strict=True)
    ]
    found = float(model_in_system(regime.wanted, np.stack(lines, axis=1)).mean())
    return found / regime.optimum - 1.0 if math.isfinite(found) else math.nan


def _distance(regime: Regime, streams: Sequence[StreamShares]) -> float:
    """Time mean of the traffic that is elsewhere than at the optimum, as a part of all."""
    best = _optimum_by_stream(regime)
    window = regime.window
    total, weights = 0.0, 0.0
    for stream in streams:
        apart = 0.5 * np.abs(stream.shares - best[stream.root, stream.class_name]).sum(axis=1)
        starts_s = np.clip(stream.at_s, window.from_s, window.to_s)
        held_s = np.diff(starts_s, append=window.to_s)
        total += stream.weight * float(apart @ held_s) / (window.to_s - window.from_s)
        weights += stream.weight
    return total / weights


def _optimum_by_stream(regime: Regime) -> dict[tuple[str, str], Floats]:
    """x* per root and class: of several lines of one class, the mean weighted by rate."""
    rates: dict[tuple[str, str], Floats] = {}
    for key, rate, shares in zip(
        regime.streams, regime.wanted.rates_per_s, regime.optimum_shares, strict=True
    ):
        rates[key] = rates.get(key, np.zeros(len(shares))) + max(float(rate), 1e-300) * shares
    return {key: each / each.sum() for key, each in rates.items()}


def _bound(
    scenario: Scenario, tables: Tables, streams: Sequence[StreamShares], window: Window
) -> DeviationBound | None:
    """The bound with the largest gradients that the updates saw, and the shares that the window began with."""
    updates = tables.get("updates", {})
    if not row_count(updates) or any(stream.kind != "moved" for stream in streams):
        return DeviationBound(None, refused_because="a policy chooses anew for each request, or never moves")
    by_stream = {(stream.root, stream.class_name): stream for stream in streams}
    lines = {
        (root, index): (root_name(root), line.class_)
        for root, words in scenario.roots.items()
        for index, line in enumerate(words.traffic)
    }
    if any(key not in by_stream for key in lines.values()):
        return None  # a line without requests has no shares to start from
    norms = {line: _largest_norm_s(updates, *key, window) for line, key in lines.items()}
    starts = {line: by_stream[key].shares[0].tolist() for line, key in lines.items()}
    return deviation_bound(scenario, window.to_s - window.from_s, norms, starts)


def _largest_norm_s(updates: Table, root: str, class_name: str, window: Window) -> float:
    """G: the largest norm of the centred costs of an update."""
    mine = (updates["root"] == root) & (updates["class"] == class_name) & window.holds(updates["used_at_s"])
    numbers, row = np.unique(updates["update"][mine], return_inverse=True)
    order = np.argsort(row, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(row[order])) + 1) if len(numbers) else []
    costs, allowed = updates["believed_cost"][mine], updates["allowed"][mine].astype(bool)
    return max((centred_norm(costs[part], allowed[part]) for part in parts), default=0.0)
