"""Whether the patterns of groups, links and faults find nodes and links, and what the links do makes sense."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from testbed.scenario.fault_findings import fault_actions, fault_findings
from testbed.scenario.fault_words import Setting
from testbed.scenario.finding import Finding, Keys, time_text
from testbed.scenario.link_words import Impairment
from testbed.scenario.schema import Scenario
from testbed.scenario.series import replays_delay
from testbed.scenario.spelling import listed, nearest
from testbed.scenario.topology import (
    Effect,
    Node,
    Topology,
    build_nodes,
    build_topology,
    matching_nodes,
)

# Tables and figures are per link; a slip such as `servers: 1000000` should be told at once.
MAX_LINKS = 2_000_000

# Who sends what to whom; a leaf and a server are of one cell.
_EXCHANGES = {
    ("root", "leaf"): ("request", "probe"),
    ("leaf", "root"): ("reply", "observation", "probe"),
    ("leaf", "server"): ("request", "probe"),
    ("server", "leaf"): ("reply", "observation", "probe"),
}


def wiring_findings(scenario: Scenario, *, knows_effects: bool = True) -> Iterator[Finding]:
    """Groups, links and faults that touch nothing, and, where all effects are known, jitter that does not fit its delay."""
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
    yield from _link_ends(scenario, nodes)
    yield from fault_findings(scenario, nodes)
    leaf_policies = {cell.leaf.policy for cell in scenario.cells.values()} - {None}
    if knows_effects and leaf_policies <= set(scenario.policies):
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
        ((*keys, "link"), action.link.from_, action.link.to, action.link.path)
        for keys, action in fault_actions(scenario)
        if action.link is not None
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


class _Spread(NamedTuple):
    """The effect on one link, and which lines gave what of it."""

    effect: Effect
    delay_keys: Keys = ()
    jitter_keys: Keys = ()
    loss_keys: Keys = ()
    burst_keys: Keys = ()
    reorder_keys: Keys = ()
    order_keys: Keys = ()
    replay_keys: Keys = ()
    is_jittered_last: bool = False  # jitter was given after what is replayed

    def changed(self, words: Impairment | Setting, keys: Keys) -> _Spread:
        return _Spread(
            self.effect.changed(words),
            self.delay_keys if words.delay is None else (*keys, "delay"),
            self.jitter_keys if words.jitter is None else (*keys, "jitter"),
            self.loss_keys if words.loss is None else (*keys, "loss"),
            self.burst_keys if words.loss_burst is None else (*keys, "loss_burst"),
            self.reorder_keys if words.reorder is None else (*keys, "reorder"),
            self.order_keys if words.order is None else (*keys, "order"),
            self.replay_keys if words.replay is None else (*keys, "replay"),
            words.jitter is not None or (self.is_jittered_last and words.replay is None),
        )


def _spreads(scenario: Scenario) -> Iterator[Finding]:
    """What does not fit together on any link, as it is and under any one fault."""
    actions = [(keys, action) for keys, action in fault_actions(scenario) if action.link is not None]
    words = [*scenario.links, *(action.setting for _, action in actions)]
    if all(each.jitter is None and each.loss_burst is None and each.reorder is None for each in words):
        return
    topology = build_topology(scenario)
    spreads = [_Spread(Effect())] * len(topology.links)
    for i, line in enumerate(scenario.links):
        for number in _matching(scenario, topology, line.from_, line.to, line.path):
            spreads[number] = spreads[number].changed(line, ("links", i))
    for spread in spreads:
        yield from _unfit(spread)
    for keys, action in actions:
        assert action.link is not None, "actions on links alone were kept"
        for number in _matching(scenario, topology, action.link.from_, action.link.to, action.link.path):
            yield from _unfit(spreads[number].changed(action.setting, (*keys, "set")))


def _matching(
    scenario: Scenario, topology: Topology, source: str, target: str, path: str | None
) -> list[int]:
    sources = set(matching_nodes(scenario, topology.nodes, source))
    targets = set(matching_nodes(scenario, topology.nodes, target))
    return [
        link.number
        for link in topology.links
        if link.source in sources and link.target in targets and path in (None, link.path)
    ]


def _unfit(spread: _Spread) -> Iterator[Finding]:
    yield from _too_lossy(spread)
    yield from _without_effect(spread)
    yield from _too_wide(spread)


def _without_effect(spread: _Spread) -> Iterator[Finding]:
    """Messages out of turn where order is kept, and jitter of delays that come from a file."""
    effect = spread.effect
    if effect.keeps_what_it_reorders:
        yield Finding(
            spread.reorder_keys,
            "has no effect beside {other}, which is kept",
            "order: free",
            spread.order_keys,
        )
    if spread.is_jittered_last and effect.jitter is not None and replays_delay(effect):
        problem = "has no effect beside {other}, which brings its own variation"
        yield Finding(
            spread.jitter_keys, problem, "jitter and a delay, which ends the replay", spread.replay_keys
        )


def _too_wide(spread: _Spread) -> Iterator[Finding]:
    """Jitter that does not fit the delay it is added to."""
    jitter, delay_s = spread.effect.jitter, spread.effect.delay_s
    if jitter is None:
        return
    delay_keys = spread.delay_keys or (*spread.jitter_keys[:-1], "delay")
    if jitter.uniform is not None and jitter.uniform > delay_s:
        problem = f"{time_text(jitter.uniform)} is wider than {{other}}, {time_text(delay_s)}"
        yield Finding((*spread.jitter_keys, "uniform"), problem, "a time up to the delay", delay_keys)
    if jitter.exponential is not None and jitter.exponential > delay_s:
        problem = f"{time_text(jitter.exponential)} is more than {{other}}, {time_text(delay_s)}, of which it is a part"
        yield Finding((*spread.jitter_keys, "exponential"), problem, "a time up to the delay", delay_keys)
    for name in ("lognormal", "pareto"):
        sd_s = getattr(jitter, name)
        if sd_s is not None and sd_s > 0 and delay_s == 0:
            problem = f"{time_text(sd_s)} is spread around {{other}}, which is 0"
            yield Finding((*spread.jitter_keys, name), problem, "a delay above 0", delay_keys)


def _too_lossy(spread: _Spread) -> Iterator[Finding]:
    """A mean loss that bursts of the mean length cannot reach: at least one message is kept between two of them."""
    loss, burst = spread.effect.loss, spread.effect.loss_burst
    most_loss = 1.0 if burst is None else burst / (burst + 1.0)
    if most_loss < loss < 1.0:
        keys = spread.loss_keys or (*spread.burst_keys[:-1], "loss")
        problem = f"{loss * 100:g} % is more than bursts of {burst:g} can lose ({{other}})"
        yield Finding(keys, problem, f"up to {100 * most_loss:.4g} %", spread.burst_keys)
