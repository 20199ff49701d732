"""Links that carried too few messages to be judged alone, judged together.

Where many nodes share few processes, a run may have thousands of links with some twenty messages each: no link has a
p99 to speak of, and yet all of them may be late. What makes a message late is the process that handles it. So the links
of few messages that end in one process and are of one kind (from which kind of node to which, on which path) make up a
pool, which counts as a link.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from testbed.analysis.hops import Hop
from testbed.analysis.lateness import LEAST_MESSAGES, LinkLateness, link_lateness, pool_lateness
from testbed.analysis.records import Table
from testbed.scenario.process_map import homes, process_map
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import Effect, Topology

Kind = tuple[str, str]  # the process of the target, and the hop in words


class Pools:
    """To which pool each link of a scenario belongs."""

    def __init__(self, scenario: Scenario, topology: Topology) -> None:
        """Args:
        scenario: whose keys say which nodes share a process.
        topology: of the scenario.
        """
        self._nodes = topology.nodes
        self._homes = homes(process_map(scenario, topology))

    def kind(self, source: str, target: str, path: str) -> Kind:
        """The pool of a link, if it needs one."""
        kinds = f"{self._nodes[source].kind} -> {self._nodes[target].kind}"
        return self._homes.get(target, target), f"{kinds} ({path})"

    def name(self, kind: Kind, links: int) -> str:
        """A pool of so many links in words, for people."""
        process, hop = kind
        into = process if process in self._nodes else f"process {process}"
        return (
            f"{links} links {hop} into {into}, together since each has fewer than {LEAST_MESSAGES} messages"
        )


def judged_links(lateness: Table, pools: Pools) -> list[LinkLateness]:
    """The lateness of the links that can be judged alone, then that of the pools of the others.

    Args:
        lateness: the merged table, a row per link.
        pools: of the scenario.
    """
    links = link_lateness(lateness)
    few: dict[Kind, list[LinkLateness]] = {}
    for link in links:
        if link.messages < LEAST_MESSAGES:
            few.setdefault(pools.kind(link.source, link.target, link.path), []).append(link)
    return [
        *(link for link in links if link.messages >= LEAST_MESSAGES),
        *(
            pool_lateness(pools.name(kind, len(members)), members) if len(members) > 1 else members[0]
            for kind, members in few.items()
        ),
    ]


def judged_hops(hops: Iterable[Hop], pools: Pools, *, alike: bool = False) -> list[Hop]:
    """The links with enough recorded messages, then the pools of the others.

    Args:
        hops: of all links.
        pools: of the scenario.
        alike: only links that do the same to messages make up a pool, so that it has one distribution of delays.
    """
    found: list[Hop] = []
    few: dict[tuple[Kind, Effect | None], list[Hop]] = {}
    for hop in hops:
        if len(hop.sent_at_s) >= LEAST_MESSAGES:
            found.append(hop)
        else:
            kind = pools.kind(hop.link.source, hop.link.target, hop.link.path)
            few.setdefault((kind, hop.link.effect if alike else None), []).append(hop)
    for (kind, _), members in few.items():
        found.append(_pool(pools.name(kind, len(members)), members) if len(members) > 1 else members[0])
    return found


def _pool(name: str, members: list[Hop]) -> Hop:
    sent_at_s = np.concatenate([hop.sent_at_s for hop in members])
    order = np.argsort(sent_at_s, kind="stable")
    return Hop(
        members[0].link,
        sent_at_s[order],
        np.concatenate([hop.received_at_s for hop in members])[order],
        np.concatenate([hop.drawn_s for hop in members])[order],
        name,
    )
