"""Which nodes share a process of the live engine.

Every node has a process of its own unless `processes` says otherwise: whole roots, and whole cells (leaves and
servers), can be dealt over a number of processes, and named nodes can be put together. Fewer processes carry many
lightly loaded nodes with far fewer switches of context; what nodes of one process send to each other still keeps its
link.
"""

from __future__ import annotations

from testbed.scenario.schema import Scenario
from testbed.scenario.topology import Node, Topology, matching_nodes


def process_map(scenario: Scenario, topology: Topology) -> dict[str, tuple[str, ...]]:
    """The nodes of each process, in the order of the topology; a process with one node has its name."""
    home = _named(scenario, topology.nodes)
    words = scenario.processes
    free = [node for node in topology.nodes.values() if node.name not in home]
    if words.roots is not None:
        roots = [node.name for node in free if node.kind == "root"]
        home |= {name: f"roots-{i % words.roots + 1}" for i, name in enumerate(roots)}
    if words.cells is not None:
        cells = dict.fromkeys(node.cell for node in free if node.kind != "root")
        place = {cell: f"cells-{i % words.cells + 1}" for i, cell in enumerate(cells)}
        home |= {node.name: place[node.cell] for node in free if node.kind != "root"}
    found: dict[str, list[str]] = {}
    for name in topology.nodes:
        found.setdefault(home.get(name, name), []).append(name)
    return {_name(process, nodes): tuple(nodes) for process, nodes in found.items()}


def homes(processes: dict[str, tuple[str, ...]]) -> dict[str, str]:
    """The process of each node."""
    return {node: process for process, nodes in processes.items() for node in nodes}


def _named(scenario: Scenario, nodes: dict[str, Node]) -> dict[str, str]:
    return {
        name: process
        for process, patterns in scenario.processes.named.items()
        for pattern in patterns
        for name in matching_nodes(scenario, nodes, pattern)
    }


def _name(process: str, nodes: list[str]) -> str:
    return nodes[0] if len(nodes) == 1 else process
