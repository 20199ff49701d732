"""How long shares and sojourns take to settle after something changed.

Settled is the first instant after which the T-averaged value stays within max(5 %, three standard deviations before
the change) of its final mean for at least 3T, T the loop delay; seconds after the change, NaN if never. Values are
averaged over bins of T counted from the change; the final mean is that of the last third of the time after it. A
value that is not near that mean for most of this third (it still grows, say) has no end to settle to: never.

Source: measures.md, section 3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from testbed.analysis.records import Floats, Mask, Table, Window, row_count
from testbed.scenario.fault_plan import spans
from testbed.scenario.schema import Scenario

NEAR = 0.05
DEVIATIONS = 3.0
STAY_BINS = 3
FINAL_PART = 1 / 3
MOST = 0.5


def changes_s(scenario: Scenario) -> list[float]:
    """Instants within the run at which a fault sets in or heals, or the rate of a stream takes a step; rising."""
    faults = [instant for span in spans(scenario) for instant in (span.at_s, span.until_s)]
    streams = [line for root in scenario.roots.values() for line in root.traffic]
    steps = [stage.at for line in streams for stage in line.stages or () if stage.at > 0]
    return sorted({instant for instant in (*faults, *steps) if 0 < instant < scenario.duration})


def settled_s(before: Floats, after: Floats, bin_s: float) -> float:
    """Time from the change until the values have settled, seconds; NaN: never.

    Args:
        before: T-averaged values up to the change; may be empty.
        after: T-averaged values from the change on; NaN: nothing happened in the bin, the value is as before.
        bin_s: T.
    """
    values = _filled(after)
    if len(values) < STAY_BINS:
        return math.nan
    last = max(STAY_BINS, round(len(values) * FINAL_PART))
    final = float(values[-last:].mean())
    known = before[np.isfinite(before)]
    width = max(NEAR * abs(final), DEVIATIONS * float(known.std()) if len(known) > 1 else 0.0)
    near = np.abs(values - final) <= width
    if near[-last:].mean() < MOST:
        return math.nan
    stays = np.lib.stride_tricks.sliding_window_view(near, STAY_BINS).all(axis=1)
    return float(np.argmax(stays)) * bin_s if stays.any() else math.nan


def shares_settled_s(
    scenario: Scenario, requests: Table, updates: Table, window: Window, change_s: float, bin_s: float
) -> float:
    """The slowest cell's settling time of its share of all requests; NaN if one never settles.

    Where roots move probabilities, the share is their mean probability over roots and classes weighted by their
    requests; otherwise the share of the arrivals.
    """
    edges = _edges(window, change_s, bin_s)
    series = [
        cell_probability(updates, requests, cell, edges)
        if row_count(updates)
        else _share(requests, requests["cell"] == cell, edges)
        for cell in scenario.cells
    ]
    return _worst([_settled(values, edges, change_s, bin_s) for values in series])


def settled_sojourn_s(
    planned_at_s: Floats, sojourn_s: Floats, window: Window, change_s: float, bin_s: float
) -> float:
    """Settling time of the mean sojourn of the requests planned in each bin; NaN if never."""
    edges = _edges(window, change_s, bin_s)
    return _settled(bin_averages(planned_at_s, sojourn_s, edges), edges, change_s, bin_s)


def bin_averages(instants_s: Floats, values: Floats, edges_s: Floats) -> Floats:
    """Mean of the values whose instants fall into each bin; NaN for an empty bin."""
    known = np.isfinite(values) & np.isfinite(instants_s)
    sums, _ = np.histogram(instants_s[known], edges_s, weights=values[known])
    counts, _ = np.histogram(instants_s[known], edges_s)
    return ratios(sums, counts)


def ratios(parts: npt.NDArray[Any], wholes: npt.NDArray[Any]) -> Floats:
    """Parts over wholes; NaN where the whole is 0."""
    quotients = np.full(len(wholes), np.nan)
    np.divide(parts, wholes, out=quotients, where=wholes > 0)
    return quotients


def cell_probability(updates: Table, requests: Table, cell: str, edges_s: Floats) -> Floats:
    """Mean probability of a cell in each bin, over roots and classes weighted by their requests."""
    streams = probability_series(updates, cell, edges_s)
    weights = [
        float(((requests["root"] == root) & (requests["class"] == name)).sum()) for root, name in streams
    ]
    total = sum(weights)
    if total == 0:
        return np.full(len(edges_s) - 1, np.nan)
    mixed = np.zeros(len(edges_s) - 1)
    for weight, series in zip(weights, streams.values(), strict=True):
        mixed += weight / total * series
    return mixed


def probability_series(updates: Table, cell: str, edges_s: Floats) -> dict[tuple[str, str], Floats]:
    """Exact time mean of a cell's probability in each bin, per (root, class)."""
    mine = updates["cell"] == cell
    streams = dict.fromkeys(zip(updates["root"][mine].tolist(), updates["class"][mine].tolist(), strict=True))
    return {
        (root, name): _step_means(
            updates, mine & (updates["root"] == root) & (updates["class"] == name), edges_s
        )
        for root, name in streams
    }


def _step_means(updates: Table, mask: Mask, edges_s: Floats) -> Floats:
    """Time means of the probability, a step at each update, the value before the first one reaching back."""
    used, after = updates["used_at_s"][mask], updates["probability"][mask]
    order = np.argsort(used, kind="stable")
    used = used[order]
    values = np.concatenate((updates["probability_before"][mask][order[:1]], after[order]))
    points = np.concatenate((edges_s, used[(used > edges_s[0]) & (used < edges_s[-1])]))
    points.sort(kind="stable")
    areas = values[np.searchsorted(used, points[:-1], side="right")] * np.diff(points)
    bins = np.searchsorted(edges_s, points[:-1], side="right") - 1
    areas_per_bin = np.bincount(bins, weights=areas, minlength=len(edges_s) - 1)
    return np.asarray(areas_per_bin / np.diff(edges_s), np.float64)


def _share(requests: Table, mask: Mask, edges: Floats) -> Floats:
    planned = requests["planned_at_s"]
    everyone, _ = np.histogram(planned[requests["cell"] != ""], edges)
    mine, _ = np.histogram(planned[mask], edges)
    return ratios(mine, everyone)


def _edges(window: Window, change_s: float, bin_s: float) -> Floats:
    """Bins of T that meet at the change, all inside the window."""
    before = max(0, int((change_s - window.from_s) / bin_s * (1 + 1e-12)))
    after = max(0, int((window.to_s - change_s) / bin_s * (1 + 1e-12)))
    return np.asarray(change_s + bin_s * np.arange(-before, after + 1), np.float64)


def _settled(values: Floats, edges: Floats, change_s: float, bin_s: float) -> float:
    first = int(np.searchsorted(edges, change_s - 1e-9 * bin_s))
    return settled_s(values[:first], values[first:], bin_s)


def _worst(times_s: Sequence[float]) -> float:
    return math.nan if any(math.isnan(each) for each in times_s) else max(times_s)


def _filled(values: Floats) -> Floats:
    """The values with each NaN replaced by the last one known; leading NaNs are dropped to the first known."""
    known = np.flatnonzero(np.isfinite(values))
    if not len(known):
        return np.empty(0)
    at = np.maximum.accumulate(np.where(np.isfinite(values), np.arange(len(values)), 0))
    return np.asarray(values[np.maximum(at, known[0])])
