"""Messages whose sending and receipt are both on record, beside the delay that was drawn for each.

Draws are keyed, so the delay of every message can be drawn again from the seed, the link and the message's key, apart
from what the engine did with it. That needs links whose draws have no memory, and that no fault changed. A link is left
out, too, where a fault killed or stopped the process at one of its ends (what waits there is late by no fault of the
host), and where order is kept under jitter, since then a draw hangs on all before it.

Sent and received are what the roles recorded. Where they are told the due instants (`dating: due`), these are exact by
construction, and say nothing of the host.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from testbed.analysis.records import (
    Floats,
    Mask,
    Table,
    Tables,
    answered_column,
    codes,
    positions_by,
    row_count,
)
from testbed.links.delay import mean_delay_s
from testbed.links.link import LinkModel
from testbed.scenario.fault_plan import fault_plan
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import Link, Topology

MOST_MESSAGES = 100_000  # of all links together: drawing again takes a microsecond each
LEAST_PER_LINK = 200  # however many links there are
_LATE_OR_FALSE = ("kill", "pause", "telemetry", "clock_skew", "clock_drift")


class Hop(NamedTuple):
    """Messages of one link, or a pool, in the order of sending, scenario time; evenly spaced ones of all, where there are many.

    Attributes:
        link: of the topology; of a pool, its first.
        sent_at_s: shape (messages,), seconds.
        received_at_s: the same.
        drawn_s: the delay of each by its link's model.
        pool: its name in words; empty: one link.
    """

    link: Link
    sent_at_s: Floats
    received_at_s: Floats
    drawn_s: Floats
    pool: str = ""

    @property
    def name(self) -> str:
        """The link or the pool in words, for people."""
        return self.pool or f"{self.link.source} -> {self.link.target} ({self.link.path})"


class _Leg(NamedTuple):
    """One of the ways whose both ends are on record: names of columns, and which rows went it."""

    path: str
    source: str
    target: str
    sent: str
    received: str
    key: str
    went: Mask


def recorded_hops(scenario: Scenario, topology: Topology, tables: Tables) -> Iterator[Hop]:
    """Every link that can be looked at, with its messages; those of requests that were sent once."""
    links = _plain_links(scenario, topology)
    most = max(LEAST_PER_LINK, MOST_MESSAGES // max(1, len(links)))
    requests, observations = tables["requests"], tables.get("observations", {})
    once = _sent_once(requests, tables.get("attempts", {}))
    answered = once & (requests["outcome"] == "completed")
    legs = (
        _Leg("request", "root", "leaf", "sent_at_s", "at_leaf_s", "request_id", once),
        _Leg("reply", "leaf", "root", "left_leaf_s", "replied_at_s", "request_id", answered),
        _Leg("reply", "server", "leaf", answered_column(requests), "left_leaf_s", "request_id", answered),
    )
    for leg in legs:
        yield from _hops(requests, leg, topology, links, scenario.seed, most)
    if row_count(observations):
        everyone = np.ones(row_count(observations), bool)
        news = _Leg("observation", "leaf", "root", "measured_at_s", "received_at_s", "sequence", everyone)
        yield from _hops(observations, news, topology, links, scenario.seed, most)


def _sent_once(requests: Table, attempts: Table) -> Mask:
    """The requests that neither their root nor their leaf sent again: the others' messages have keys of their attempts."""
    once: Mask = requests["attempts"] <= 1
    if row_count(attempts):
        once = once & ~np.isin(requests["request_id"], attempts["request_id"])
    return once


def untouched_links(scenario: Scenario, topology: Topology) -> list[Link]:
    """The links that no fault changes, and that begin and end at nodes that none kills, stops or makes tell untruths."""
    changed = {number for fault in fault_plan(scenario, topology) for number in fault.links}
    shaken = shaken_nodes(scenario, topology)
    return [
        link
        for link in topology.links
        if link.number not in changed and link.source not in shaken and link.target not in shaken
    ]


def shaken_nodes(scenario: Scenario, topology: Topology) -> set[str]:
    """The nodes that a fault kills, stops or makes tell untruths."""
    return {
        name
        for fault in fault_plan(scenario, topology)
        if any(getattr(fault.words, key) is not None for key in _LATE_OR_FALSE)
        for name in fault.nodes
    }


def _plain_links(scenario: Scenario, topology: Topology) -> dict[tuple[str, str, str], Link]:
    return {
        (link.source, link.target, link.path): link
        for link in untouched_links(scenario, topology)
        if link.effect.is_simple and (link.effect.order == "free" or link.effect.jitter is None)
    }


def _hops(
    table: Table,
    leg: _Leg,
    topology: Topology,
    links: dict[tuple[str, str, str], Link],
    seed: int,
    most: int,
) -> Iterator[Hop]:
    sources = [node.name for node in topology.nodes.values() if node.kind == leg.source]
    targets = [node.name for node in topology.nodes.values() if node.kind == leg.target]
    came = leg.went & np.isfinite(table[leg.sent]) & np.isfinite(table[leg.received])
    source, target = codes(table[leg.source], sources), codes(table[leg.target], targets)
    pair = np.where(came & (source >= 0) & (target >= 0), source * len(targets) + target, -1)
    for number, rows in enumerate(positions_by(pair, len(sources) * len(targets))):
        if not len(rows):
            continue
        link = links.get((sources[number // len(targets)], targets[number % len(targets)], leg.path))
        if link is None:
            continue
        rows = _spaced(rows[np.argsort(table[leg.sent][rows], kind="stable")], most)
        sent_at_s, received_at_s = table[leg.sent][rows], table[leg.received][rows]
        drawn_s = _drawn_s(link, seed, table[leg.key][rows].tolist(), sent_at_s)
        yield Hop(link, sent_at_s, received_at_s, drawn_s)


def _spaced(rows: npt.NDArray[np.intp], most: int) -> npt.NDArray[np.intp]:
    """At most so many of the rows, the first and the last among them: the first ones alone would be those of the warm-up."""
    return rows if len(rows) <= most else rows[np.linspace(0, len(rows) - 1, most).astype(np.intp)]


def _drawn_s(link: Link, seed: int, identities: list[int], sent_at_s: Floats) -> Floats:
    """The delay of each message; NaN for one that the model would have lost, which cannot have come."""
    if link.effect.jitter is None and not link.effect.loss:
        return np.full(len(identities), mean_delay_s(link.effect))
    draw = LinkModel(seed, link).draw
    releases = [
        draw(identity, 0, at_s) for identity, at_s in zip(identities, sent_at_s.tolist(), strict=True)
    ]
    return np.array([np.nan if each is None else each for each in releases], float) - sent_at_s
