"""How late the emulator handed messages over: each link's lateness, handled less released, in wall time.

The worst link decides a verdict, since a percentile over all links hides the slowest. But the p99 of a hundred
messages is their second largest, and the worst of many such links is chance: so links are judged by the lower 95 %
confidence bound of their p99, the order statistic that a binomial count of exceedances allows. On a busy link the two
are the same. Links of fewer than a hundred messages are judged in pools (see pools.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import bdtr, bdtrik

from testbed.analysis.records import Table, row_count
from testbed.links.lateness import percentile_s

CONFIDENCE = 0.95
LEAST_MESSAGES = 100  # a p99 of fewer messages is hardly more than their largest


Bins = np.ndarray[tuple[int], np.dtype[np.int64]]


class LinkLateness(NamedTuple):
    """The lateness of one link, or of a pool of links, over the whole run, wall seconds.

    Attributes:
        source: the node that sends; of a pool, that of its first link, as are the next two.
        target: the node that receives.
        path: request, reply, observation or probe.
        messages: that were delivered.
        p50_s: median.
        p99_s: percentile.
        p99_low_s: it is at least this, with 95 % confidence.
        max_s: the largest.
        bins: messages by lateness.
        pool: its name in words; empty: one link.
        members: source, target and path of the links of a pool.
    """

    source: str
    target: str
    path: str
    messages: int
    p50_s: float
    p99_s: float
    p99_low_s: float
    max_s: float
    bins: Bins
    pool: str = ""
    members: tuple[tuple[str, str, str], ...] = ()

    @property
    def name(self) -> str:
        """The link or the pool in words, for people."""
        return self.pool or f"{self.source} -> {self.target} ({self.path})"

    @property
    def keys(self) -> tuple[tuple[str, str, str], ...]:
        """Source, target and path of each of its links."""
        return self.members or ((self.source, self.target, self.path),)


def link_lateness(lateness: Table) -> list[LinkLateness]:
    """One entry per link that delivered a message, from the merged table `lateness`.

    Percentiles are upper ends of bins, so they may lie a little above the largest lateness; that bounds them here.
    """
    if not row_count(lateness):
        return []
    columns = ("source", "target", "path", "delivered", "lateness_s_p50", "lateness_s_p99", "lateness_s_max")
    rows = zip(*(lateness[column].tolist() for column in columns), lateness["lateness_bins"], strict=True)
    return [
        LinkLateness(
            source,
            target,
            path,
            messages,
            min(p50_s, max_s),
            min(p99_s, max_s),
            min(p99_low_s(bins), p99_s, max_s),
            max_s,
            bins,
        )
        for source, target, path, messages, p50_s, p99_s, max_s, bins in rows
        if messages > 0
    ]


def pool_lateness(pool: str, links: Sequence[LinkLateness]) -> LinkLateness:
    """Of several links as if they were one.

    Args:
        pool: its name in words.
        links: at least one.
    """
    bins: Bins = np.zeros(max(len(link.bins) for link in links), np.int64)
    for link in links:
        bins[: len(link.bins)] += link.bins
    counts, max_s = bins.tolist(), max(link.max_s for link in links)
    first = links[0]
    return LinkLateness(
        first.source,
        first.target,
        first.path,
        sum(link.messages for link in links),
        min(percentile_s(counts, 0.5), max_s),
        min(percentile_s(counts, 0.99), max_s),
        min(p99_low_s(bins), max_s),
        max_s,
        bins,
        pool,
        tuple(key for link in links for key in link.keys),
    )


def p99_low_s(bins: Bins) -> float:
    """The least that the p99 of binned lateness is with 95 % confidence, seconds; 0 where nothing was counted."""
    messages = int(np.sum(bins))
    return percentile_s(bins.tolist(), 1.0 - _exceedances(messages) / messages) if messages else 0.0


def _exceedances(messages: int) -> int:
    """So many of these may exceed a p99 by chance: the quantile of a binomial count, without `scipy.stats`.

    That package alone would double the time that a command takes to begin.
    """
    count: int = math.ceil(bdtrik(CONFIDENCE, messages, 0.01))
    is_one_too_many = count > 0 and bool(bdtr(count - 1, messages, 0.01) >= CONFIDENCE)
    return count - is_one_too_many


def worst_link(links: list[LinkLateness]) -> LinkLateness | None:
    """The link whose p99 is surely the largest, among those with enough messages, or among all where none has."""
    counted = [link for link in links if link.messages >= LEAST_MESSAGES] or links
    return max(counted, key=lambda link: link.p99_low_s, default=None)


def release_lateness_s(links: list[LinkLateness]) -> dict[str, float | str]:
    """The worst link's percentiles and its name."""
    worst = worst_link(links)
    if worst is None:
        return {"p50": math.nan, "p99": math.nan, "link": ""}
    return {"p50": worst.p50_s, "p99": worst.p99_s, "link": worst.name}
