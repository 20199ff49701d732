"""What each link carried, and how late the receiver handled it: by second, and over the whole run."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from testbed.links.counts import DROP_CAUSES
from testbed.links.lateness import BIN_COUNT, bin_end_s
from testbed.record.gather import Rows, Texts
from testbed.scenario.topology import Topology

_ENDS_S = np.array([bin_end_s(i) for i in range(BIN_COUNT)])
_BLOCK = 1024  # seconds of links whose bins are held at once: 3 MB
_FRACTIONS = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}

_DROPPED = tuple(f"dropped_{cause}" for cause in DROP_CAUSES)
_SENT = ("sent", *_DROPPED, "duplicated", "reordered")

Groups = NDArray[np.intp]


def links_table(topology: Topology, sent: Rows, delivered: Rows, time_scale: float) -> Rows:
    """A row per link and second of run time in which it carried something, in the order of links.

    Both ends write at their own instants; a row counts for the second nearest to it.
    """
    sent_keys, delivered_keys = _keys(sent, time_scale), _keys(delivered, time_scale)
    keys = np.unique(np.concatenate([sent_keys, delivered_keys]))
    link, second = (keys >> 32).astype(np.intp), keys & 0xFFFFFFFF
    of_sent, of_delivered = np.searchsorted(keys, sent_keys), np.searchsorted(keys, delivered_keys)
    table = {**_identity(topology, link), "at_s": second / time_scale}
    table.update(_counts(sent, of_sent, delivered, of_delivered, len(keys)))
    table.update(_percentiles(delivered["lateness_bins"], of_delivered, table, ("p50", "p99")))
    return table


def lateness_table(topology: Topology, sent: Rows, delivered: Rows) -> Rows:
    """A row per link, over the whole run."""
    number = len(topology.links)
    link = np.arange(number)
    table = _identity(topology, link)
    table.update(_counts(sent, sent["link"], delivered, delivered["link"], number))
    table.update(_percentiles(delivered["lateness_bins"], delivered["link"], table, tuple(_FRACTIONS)))
    filled = [row for row, bins in enumerate(delivered["lateness_bins"]) if bins]
    bins = [delivered["lateness_bins"][row] for row in filled]
    return {**table, "lateness_bins": _dense(bins, delivered["link"][filled], 0, number)}


def _keys(table: Rows, time_scale: float) -> NDArray[np.int64]:
    """Link and second of each row as one number."""
    second = np.floor(table["at_s"] * time_scale + 0.5).astype(np.int64)
    return np.asarray((table["link"] << 32) + second)


def _identity(topology: Topology, link: Groups) -> Rows:
    """The names of these links."""
    names = {key: [getattr(each, key) for each in topology.links] for key in ("source", "target", "path")}
    return {key: Texts.of(of_link).taken(link) for key, of_link in names.items()}


def _counts(sent: Rows, of_sent: Groups, delivered: Rows, of_delivered: Groups, number: int) -> Rows:
    """Counts and means of each group, and its largest lateness."""
    totals = {
        **{name: _sums(sent[name], of_sent, number) for name in _SENT},
        "delivered": _sums(delivered["delivered"], of_delivered, number),
        "inversions": _sums(delivered["inversions"], of_delivered, number),
    }
    largest_s = np.full(number, -np.inf)
    np.maximum.at(largest_s, of_delivered, delivered["lateness_max_s"])
    return {
        **{name: total.astype(np.int64) for name, total in totals.items()},
        "drawn_s_mean": _ratio(_sums(sent["drawn_s"], of_sent, number), _carried(totals)),
        "lateness_s_mean": _ratio(_sums(delivered["lateness_s"], of_delivered, number), totals["delivered"]),
        "lateness_s_max": np.where(totals["delivered"] > 0, largest_s, np.nan),
    }


def _carried(totals: dict[str, NDArray[np.float64]]) -> NDArray[np.float64]:
    """Messages and copies that were given a release."""
    return np.asarray(totals["sent"] + totals["duplicated"] - sum(totals[name] for name in _DROPPED))


def _sums(values: NDArray[Any], groups: Groups, number: int) -> NDArray[np.float64]:
    return np.bincount(groups, weights=values, minlength=number).astype(np.float64)


def _ratio(sums: NDArray[np.float64], counts: NDArray[np.float64]) -> NDArray[np.float64]:
    ratios = np.full(len(sums), np.nan)
    np.divide(sums, counts, out=ratios, where=counts > 0)
    return ratios


def _percentiles(bins: list[list[int]], groups: Groups, table: Rows, names: tuple[str, ...]) -> Rows:
    """Percentiles of lateness of each group, as `links.lateness.percentile_s` reads them from the bins.

    Where messages were delivered and none counted in a bin (virtual time), none was late.
    """
    delivered = table["delivered"]
    number = len(delivered)
    found = {name: np.where(delivered > 0, 0.0, np.nan) for name in names}
    if not any(bins):  # virtual time, where nothing is late
        number = 0
    for start in range(0, number, _BLOCK):
        counts = _dense(bins, groups, start, min(start + _BLOCK, number))
        seen = np.cumsum(counts, axis=1)
        counted = np.flatnonzero(seen[:, -1])
        for name in names:
            wanted = _FRACTIONS[name] * seen[counted, -1:]
            reached = (seen[counted] >= wanted) & (counts[counted] > 0)
            found[name][start + counted] = _ENDS_S[reached.argmax(axis=1)]
    return {f"lateness_s_{name}": values for name, values in found.items()}


def _dense(bins: list[list[int]], groups: Groups, start: int, end: int) -> NDArray[np.int64]:
    """The sum of the bins of each group from `start` to `end`: shape (groups, BIN_COUNT)."""
    counts = np.zeros((end - start, BIN_COUNT), dtype=np.int64)
    for row in np.flatnonzero((groups >= start) & (groups < end)):
        of_row = np.asarray(bins[row], dtype=np.int64)
        counts[groups[row] - start, : len(of_row)] += of_row
    return counts
