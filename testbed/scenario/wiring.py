"""Whether the patterns of groups, links and faults find nodes and links, and what the links do makes sense."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from testbed.scenario.finding import Finding, Keys, time_text
from testbed.scenario.schema import Impairment, Scenario
from testbed.scenario.spelling import listed, nearest
from testbed.scenario.topology import (
    Effect,
    Node,
    build_nodes,
    build_topology,
    matching_links,
    matching_nodes,
)

# Tables and figures are per link; a slip such as `servers: 1000000` should be told at once.
MAX_LINKS = 2_000_000

# Who sends what to whom; a leaf and a server are of one cell.
_EXCHANGES = {
    ("root", "leaf"): ("request",),
    ("leaf", "root"): ("reply", "observation"),
    ("leaf", "server"): ("request", "probe"),
    ("server", "leaf"): ("reply", "observation", "probe"),
}


def wiring_findings(scenario: Scenario) -> Iterator[Finding]:
    """Groups, links and faults that touch nothing, and jitter that does not fit its delay."""
    count = link_count(scenario)
    if count > MAX_LINKS:
        yield Finding(("cells",), f"{count} links in all", f"up to {MAX_LINKS} links")
        return
    circles = list(_circles(scenario))
    yield from circles
    if circles:
        return
    nodes = build_nodes(scenario)
    yield from _groups(scenario, nodes)
    yield from _processes(scenario, nodes)
    bad = list(_link_ends(scenario, nodes))
    yield from bad
    yield from _fault_servers(scenario, nodes)
    leaf_policies = {cell.leaf.policy for cell in scenario.cells.values()} - {None}
    if leaf_policies <= set(scenario.policies):
        yield from dict.fromkeys(_spreads(scenario))


def link_count(scenario: Scenario) -> int:
    """An upper bound of the number of links, without building them."""
    per_leaf = [
        cell.leaf.count * (3 * len(scenario.roots) + 5 * cell.servers) for cell in scenario.cells.values()
    ]
    return sum(per_leaf)


def _circles(scenario: Scenario) -> Iterator[Finding]:
    """Groups that hold themselves."""
    for name, members in scenario.groups.items():
        for i, member in enumerate(members):
            if name in _reachable(scenario, member):
                yield Finding(
                    ("groups", name, i), f"{member!r} leads back to {name!r}", "nodes, globs, other groups"
                )


def _reachable(scenario: Scenario, member: str) -> set[str]:
    found: set[str] = set()
    waiting = [member]
    while waiting:
        group = waiting.pop()
        if group in scenario.groups and group not in found:
            found.add(group)
            waiting += scenario.groups[group]
    return found


def _groups(scenario: Scenario, nodes: dict[str, Node]) -> Iterator[Finding]:
    for name, members in scenario.groups.items():
        for i, member in enumerate(members):
            yield from _no_node(scenario, nodes, ("groups", name, i), member)


def _processes(scenario: Scenario, nodes: dict[str, Node]) -> Iterator[Finding]:
    """Named processes whose words find no node, or one that another process has."""
    homes: dict[str, str] = {}
    for process, patterns in scenario.processes.named.items():
        for i, pattern in enumerate(patterns):
            keys = ("processes", "named", process, i)
            yield from _no_node(scenario, nodes, keys, pattern)
            for node in matching_nodes(scenario, nodes, pattern):
                if homes.setdefault(node, process) != process:
                    yield Finding(keys, f"{node} is in {homes[node]!r} already", "each node in one process")


def _no_node(scenario: Scenario, nodes: dict[str, Node], keys: Keys, pattern: str) -> Iterator[Finding]:
    if not matching_nodes(scenario, nodes, pattern):
        known = [*scenario.groups, *(f"cell.{cell}" for cell in scenario.cells), *nodes]
        problem = f"{pattern!r} matches no node{nearest(pattern, known)}"
        yield Finding(keys, problem, "a node, a glob or a group, such as root.*, cell.us, us/server-1")


def _link_ends(scenario: Scenario, nodes: dict[str, Node]) -> Iterator[Finding]:
    lines: list[tuple[Keys, str, str, str | None]] = [
        (("links", i), line.from_, line.to, line.path) for i, line in enumerate(scenario.links)
    ]
    lines += [
        (("faults", i, "link"), line.link.from_, line.link.to, line.link.path)
        for i, line in enumerate(scenario.faults)
        if line.link is not None
    ]
    for keys, source, target, path in lines:
        bad = [
            *_no_node(scenario, nodes, (*keys, "from"), source),
            *_no_node(scenario, nodes, (*keys, "to"), target),
        ]
        yield from bad
        if not bad:
            yield from _no_link(scenario, nodes, keys, source, target, path)


def _no_link(
    scenario: Scenario, nodes: dict[str, Node], keys: Keys, source: str, target: str, path: str | None
) -> Iterator[Finding]:
    """A line that would touch nothing under any policy."""
    ends = [
        {(nodes[name].kind, nodes[name].cell) for name in matching_nodes(scenario, nodes, pattern)}
        for pattern in (source, target)
    ]
    joined = {
        each
        for kind, cell in ends[0]
        for other_kind, other_cell in ends[1]
        if cell == other_cell or "root" in (kind, other_kind)
        for each in _EXCHANGES.get((kind, other_kind), ())
    }
    if not joined:
        accepted = "root and cell, cell and root, or a leaf and servers of its cell"
        yield Finding(keys, f"no link goes from {source!r} to {target!r}", accepted)
    elif path is not None and path not in joined:
        problem = f"no link from {source!r} to {target!r} carries {path!r}"
        yield Finding((*keys, "path"), problem, listed(sorted(joined)))


def _fault_servers(scenario: Scenario, nodes: dict[str, Node]) -> Iterator[Finding]:
    for i, fault in enumerate(scenario.faults):
        if fault.server is None:
            continue
        matched = matching_nodes(scenario, nodes, fault.server)
        if not any(nodes[name].kind == "server" for name in matched):
            servers = [name for name, node in nodes.items() if node.kind == "server"]
            problem = f"{fault.server!r} matches no server{nearest(fault.server, servers)}"
            yield Finding(("faults", i, "server"), problem, listed(servers))


class _Spread(NamedTuple):
    """The effect on one link, and which lines gave it its delay and its jitter."""

    effect: Effect
    delay_keys: Keys = ()
    jitter_keys: Keys = ()

    def changed(self, words: Impairment, keys: Keys) -> _Spread:
        return _Spread(
            self.effect.changed(words),
            self.delay_keys if words.delay is None else (*keys, "delay"),
            self.jitter_keys if words.jitter is None else (*keys, "jitter"),
        )


def _spreads(scenario: Scenario) -> Iterator[Finding]:
    """Jitter that does not fit the delay it is added to, on any link, as it is and under any one fault."""
    words = [*scenario.links, *(fault.set_ for fault in scenario.faults)]
    if not any(each.jitter is not None for each in words):
        return
    topology = build_topology(scenario)
    spreads = [_Spread(Effect())] * len(topology.links)
    for i, line in enumerate(scenario.links):
        sources = set(matching_nodes(scenario, topology.nodes, line.from_))
        targets = set(matching_nodes(scenario, topology.nodes, line.to))
        for link in topology.links:
            if link.source in sources and link.target in targets and line.path in (None, link.path):
                spreads[link.number] = spreads[link.number].changed(line, ("links", i))
    for spread in spreads:
        yield from _too_wide(spread)
    for i, fault in enumerate(scenario.faults):
        for link in matching_links(scenario, topology, fault):
            yield from _too_wide(spreads[link.number].changed(fault.set_, ("faults", i, "set")))


def _too_wide(spread: _Spread) -> Iterator[Finding]:
    jitter, delay_s = spread.effect.jitter, spread.effect.delay_s
    if jitter is None:
        return
    delay_keys = spread.delay_keys or (*spread.jitter_keys[:-1], "delay")
    if jitter.uniform is not None and jitter.uniform > delay_s:
        problem = f"{time_text(jitter.uniform)} is wider than {{other}}, {time_text(delay_s)}"
        yield Finding((*spread.jitter_keys, "uniform"), problem, "a time up to the delay", delay_keys)
    if jitter.lognormal is not None and jitter.lognormal > 0 and delay_s == 0:
        problem = f"{time_text(jitter.lognormal)} is spread around {{other}}, which is 0"
        yield Finding((*spread.jitter_keys, "lognormal"), problem, "a delay above 0", delay_keys)
