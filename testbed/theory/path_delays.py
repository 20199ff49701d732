"""Effective delays of the paths between roots and cells: over all links of a path, jitter at its mean.

Faults are not considered. Source: measures.md, section 2.
"""

from __future__ import annotations

from typing import NamedTuple

from testbed.links.delay import least_delay_s, mean_delay_s, mean_loss
from testbed.scenario.topology import Effect, Topology, root_name


class PathDelay(NamedTuple):
    """One-way delay of a path, over its links: mean of the means, least of the least, mean loss."""

    mean_s: float
    least_s: float
    loss: float


class PathDelays:
    """The delays of all paths of a topology, gathered in one pass over its links."""

    def __init__(self, topology: Topology) -> None:
        """Sort the links by the pair of nodes that they serve."""
        groups: dict[tuple[str, str, str], list[Effect]] = {}
        for link in topology.links:
            source, target = topology.nodes[link.source], topology.nodes[link.target]
            root = next((node.name for node in (source, target) if node.kind == "root"), "")
            cell = source.cell or target.cell
            groups.setdefault((root, cell, link.path), []).append(link.effect)
        self._delays = {key: of_effects(effects) for key, effects in groups.items()}

    def between(self, root: str, cell: str, path: str) -> PathDelay:
        """The delay between a root and the leaves of a cell on a path (`request`, `reply`, `observation`)."""
        return self._delays[root_name(root), cell, path]

    def inside(self, cell: str, path: str) -> PathDelay | None:
        """The delay between the leaves and the servers of a cell; None where they have no such path."""
        return self._delays.get(("", cell, path))


def of_effects(effects: list[Effect]) -> PathDelay:
    """The delay over several links taken together."""
    return PathDelay(
        sum(mean_delay_s(effect) for effect in effects) / len(effects),
        min(least_delay_s(effect) for effect in effects),
        sum(mean_loss(effect) for effect in effects) / len(effects),
    )
