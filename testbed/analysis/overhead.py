"""What the testbed itself adds to each hop, from the lateness of the links of a null run; wall time."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from testbed.analysis.lateness import LEAST_MESSAGES
from testbed.analysis.records import Table, row_count
from testbed.links.lateness import percentile_s
from testbed.scenario.topology import Topology


class HopOverhead(NamedTuple):
    """Of all links of one kind together, wall seconds.

    Attributes:
        hop: from which kind of node to which, and the path.
        messages: that were delivered.
        p50_s: median of handled less sent, within 5 %.
        p99_s: percentile.
        max_s: the largest.
        worst_p99_s: of the link whose p99 is the largest, of those with 100 messages or more; NaN: none has as many.
    """

    hop: str
    messages: int
    p50_s: float
    p99_s: float
    max_s: float
    worst_p99_s: float


def hop_overheads(topology: Topology, lateness: Table) -> list[HopOverhead]:
    """One entry per kind of hop that carried anything, in the order of a request's way; reports and probes last."""
    if not row_count(lateness):
        return []
    rows: dict[str, list[int]] = {}
    for row, (source, target, path) in enumerate(
        zip(*(lateness[name].tolist() for name in ("source", "target", "path")), strict=True)
    ):
        hop = f"{topology.nodes[source].kind} -> {topology.nodes[target].kind} ({path})"
        rows.setdefault(hop, []).append(row)
    order = [hop for hop in HOPS if hop in rows] + [hop for hop in rows if hop not in HOPS]
    found = [_overhead(hop, lateness, rows[hop]) for hop in order]
    return [each for each in found if each.messages]


HOPS = (
    "root -> leaf (request)",
    "leaf -> server (request)",
    "server -> leaf (reply)",
    "leaf -> root (reply)",
)


def _overhead(hop: str, lateness: Table, rows: list[int]) -> HopOverhead:
    bins = np.zeros(max(len(lateness["lateness_bins"][row]) for row in rows), np.int64)
    for row in rows:
        each = np.asarray(lateness["lateness_bins"][row])
        bins[: len(each)] += each
    max_s = float(np.nanmax(np.append(lateness["lateness_s_max"][rows], -math.inf)))
    counted = [row for row in rows if lateness["delivered"][row] >= LEAST_MESSAGES]
    worst_s = float(np.max(lateness["lateness_s_p99"][counted])) if counted else math.nan
    counts = bins.tolist()
    return HopOverhead(
        hop,
        int(bins.sum()),
        min(percentile_s(counts, 0.5), max_s),
        min(percentile_s(counts, 0.99), max_s),
        max_s,
        min(worst_s, max_s) if counted else math.nan,
    )
