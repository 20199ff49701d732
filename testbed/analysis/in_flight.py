"""Requests in flight as exact step functions, and their exact means over the bins of a grid.

N(t) counts the requests that have entered a node and not left it. It comes from the instants in the records and
not from samples, so its mean over any bin is exact: the integral of the step function over the bin's width.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from testbed.analysis.records import Floats, Table

BINS_PER_LOOP_DELAY = 20
BINS_PER_SOJOURN = 4
MOST_BINS = 1_000_000  # a grid finer than this resolves nothing that a figure or a spectrum could show


def step_function(entered_s: Floats, left_s: Floats) -> tuple[Floats, npt.NDArray[np.int64]]:
    """The instants at which N(t) changes, rising, and N from each of them on.

    Args:
        entered_s: instants of entering; NaN: never, which counts nowhere.
        left_s: instants of leaving, aligned with `entered_s`; NaN: still there.
    """
    inside = np.isfinite(entered_s)
    entries = entered_s[inside]
    exits = left_s[inside]
    exits = exits[np.isfinite(exits)]
    instants = np.concatenate((entries, exits))
    changes = np.concatenate((np.ones(len(entries), np.int64), -np.ones(len(exits), np.int64)))
    order = np.argsort(
        instants, kind="stable"
    )  # entries first at equal instants: the count never dips below 0
    return instants[order], np.cumsum(changes[order])


def bin_means(instants_s: Floats, counts: npt.NDArray[np.int64], edges_s: Floats) -> Floats:
    """Exact mean of a step function over each bin: shape (len(edges_s) - 1,).

    Args:
        instants_s: instants of change, rising; the function is 0 before the first.
        counts: value from each instant on.
        edges_s: edges of the bins, rising.
    """
    first = int(np.searchsorted(instants_s, edges_s[0], side="right"))
    last = int(np.searchsorted(instants_s, edges_s[-1], side="left"))
    points = np.concatenate((edges_s, instants_s[first:last]))
    order = np.argsort(points, kind="stable")
    points = points[order]
    at = np.searchsorted(instants_s, points, side="right") - 1
    values = (
        np.where(at >= 0, counts[np.maximum(at, 0)], 0) if len(counts) else np.zeros(len(points), np.int64)
    )
    areas = values[:-1] * np.diff(points)
    bins = np.searchsorted(edges_s, points[:-1], side="right") - 1
    return np.bincount(bins, weights=areas, minlength=len(edges_s) - 1) / np.diff(edges_s)


def mean_counts(entered_s: Floats, left_s: Floats, edges_s: Floats) -> Floats:
    """Exact mean of N(t) over each bin, straight from the instants: shape (len(edges_s) - 1,).

    The same as `bin_means` of `step_function`, without sorting a million instants: N at a bin's lower edge times its
    width, and for who enters or leaves within the bin what is left of it.

    Args:
        entered_s: instants of entering; NaN: never, which counts nowhere.
        left_s: instants of leaving, aligned with `entered_s`; NaN: still there.
        edges_s: edges of the bins, rising.
    """
    inside = np.isfinite(entered_s)
    at_edges, areas = _accumulated(entered_s[inside], edges_s)
    left_s = left_s[inside]
    gone_at_edges, gone_areas = _accumulated(left_s[np.isfinite(left_s)], edges_s)
    widths = np.diff(edges_s)
    return np.asarray(at_edges - gone_at_edges + (areas - gone_areas) / widths, np.float64)


def _accumulated(instants_s: Floats, edges_s: Floats) -> tuple[Floats, Floats]:
    """How many instants lie at or before each bin's lower edge, and what those within it leave of the bin, summed."""
    bins = np.searchsorted(edges_s, instants_s, side="left") - 1  # of an instant on an edge: the bin before
    counts = np.bincount(bins + 1, minlength=len(edges_s) + 1)
    within = (bins >= 0) & (bins < len(edges_s) - 1)
    bins, instants_s = bins[within], instants_s[within]
    rest_s = edges_s[bins + 1] - instants_s
    left = np.bincount(bins, weights=rest_s, minlength=len(edges_s) - 1).astype(np.float64)
    return np.cumsum(counts)[: len(edges_s) - 1].astype(np.float64), left


def grid_edges(start_s: float, end_s: float, loop_delay_s: float, mean_sojourn_s: float) -> Floats:
    """Edges of the analysis grid: bins of a twentieth of the loop delay, at most a quarter of the mean sojourn.

    A length that is NaN or 0 sets no limit; with neither, the window has 400 bins. The last bin ends at or before
    `end_s`.

    Raises:
        ValueError: the window is empty.

    Source: measures.md, section 3 (the grid of N_j).
    """
    span_s = end_s - start_s
    if not span_s > 0:
        raise ValueError(f"an empty window: from {start_s} s to {end_s} s")
    limits = [loop_delay_s / BINS_PER_LOOP_DELAY, mean_sojourn_s / BINS_PER_SOJOURN]
    width_s = min([limit for limit in limits if limit > 0], default=span_s / 400)
    width_s = min(max(width_s, span_s / MOST_BINS), span_s)
    count = int(span_s / width_s * (1 + 1e-12))
    return np.asarray(start_s + width_s * np.arange(count + 1), np.float64)


def in_flight_by_cell(requests: Table, cells: Sequence[str], edges_s: Floats) -> Floats:
    """Mean of N_j over each bin, from receipt by the cell's leaf to the reply's leaving it: (cells, bins)."""
    chosen = [requests["cell"] == cell for cell in cells]
    return np.array(
        [mean_counts(requests["at_leaf_s"][mine], requests["left_leaf_s"][mine], edges_s) for mine in chosen]
    )
