"""What is really in flight at each target, for the oracle: only an engine with all nodes in one process can know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from testbed.roles.environment import Role
from testbed.routing.oracle import Truth
from testbed.scenario.topology import Link, Topology


class RequestLink(Protocol):
    """A link of the engine that counts what it carries."""

    link: Link

    def under_way(self) -> int:
        """Messages sent or copied that were neither dropped nor delivered yet."""


class GroundTruth:
    """The truth of cells and servers; `speeds` are kept by the engine as faults set them."""

    def __init__(self, topology: Topology, roles: Mapping[str, Role], links: Sequence[RequestLink]) -> None:
        """Args:
        topology: cells and their nodes.
        roles: by node; filled in before the first question.
        links: all that carry requests.
        """
        self._roles = roles
        self.speeds = {name: 1.0 for names in topology.servers.values() for name in names}
        self._servers: dict[str, tuple[str, ...]] = {name: (name,) for name in self.speeds}
        self._links: dict[str, list[RequestLink]] = {name: [] for name in (*self.speeds, *topology.servers)}
        for each in links:
            node = topology.nodes[each.link.target]
            if node.kind == "server":
                self._links[node.name].append(each)
            self._links[node.cell].append(each)
        for cell, servers in topology.servers.items():
            self._servers[cell] = servers

    def __call__(self, target: str) -> Truth:
        """The truth of a cell or a server by its name."""
        servers = self._servers[target]
        return Truth(
            sum(self._roles[name].gauges()[2] for name in servers),
            sum(link.under_way() for link in self._links[target]),
            sum(self.speeds[name] for name in servers) / len(servers),
        )
