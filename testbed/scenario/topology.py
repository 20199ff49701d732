"""Scenario to topology: the named nodes and the directed links between them.

Nodes are named `root.west`, `us/leaf-1`, `us/server-2` everywhere. A link joins two nodes on one path; its
impairment is what the lines of the scenario that match it say, later lines overriding earlier ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any

from testbed.scenario.fault_words import Setting
from testbed.scenario.link_words import Flap, Impairment, Jitter, Reorder, Replay
from testbed.scenario.policy_words import (
    DEFAULT_LEAF_POLICY,
    IdleQueuePolicy,
    OraclePolicy,
    Policy,
    ProbingPolicy,
    ReportPolicy,
    UserPolicy,
)
from testbed.scenario.relative import Relative, changed
from testbed.scenario.schema import Reports, Scenario
from testbed.scenario.view_words import CountWords, ViewWords


@dataclass(frozen=True)
class Node:
    """One process of the testbed: `kind` is root, leaf or server; `cell` is empty for a root."""

    name: str
    kind: str
    cell: str = ""
    index: int = 0  # position among its kind in its cell, or among the roots


@dataclass(frozen=True)
class Effect:
    """What a link does to messages.

    Attributes:
        delay_s: base delay.
        jitter: its spread.
        loss: probability of a drop, or share of the messages dropped where losses come in bursts.
        order: 'kept' or 'free'.
        correlation: of the delays of one message and the next, by their normal scores.
        loss_burst: mean number of losses in a row; None: independent losses.
        duplicate: probability that a message comes twice.
        reorder: which messages are released out of turn; None: none.
        rate: messages per second that the link carries; infinite: any number.
        bandwidth: bytes per second that it carries; infinite: any number.
        queue: messages that may wait for the rate or the bandwidth.
        cut: nothing passes.
        kill: the process at its end is dead: nothing passes.
        flap: when it is down; None: never.
        delay_replay: file of its delay over time, which holds in place of `delay_s` and `jitter`; None: none.
        delay_changes: relative changes of the delay that is replayed, one after another.
        loss_replay: file of its loss over time, which holds in place of `loss`; None: none.
    """

    delay_s: float = 0.0
    jitter: Jitter | None = None
    loss: float = 0.0
    order: str = "free"
    correlation: float = 0.0
    loss_burst: float | None = None
    duplicate: float = 0.0
    reorder: Reorder | None = None
    rate: float = math.inf
    bandwidth: float = math.inf
    queue: int = 0
    cut: bool = False
    kill: bool = False
    flap: Flap | None = None
    delay_replay: Replay | None = None
    delay_changes: tuple[Relative, ...] = ()
    loss_replay: Replay | None = None

    def changed(self, words: Impairment | Setting) -> Effect:
        """This effect with the keys that `words` gives; a relative delay is one of the delay so far.

        What is given later holds: a file replayed in place of the delay and loss so far, and a delay or a loss in place of
        the file's. Of what one group of words gives, the file goes before the rest.
        """
        given = {key: value for key in _EFFECT_KEYS if (value := getattr(words, key, None)) is not None}
        return replace(self, delay_s=changed(self.delay_s, words.delay), **given, **self._replays(words))

    def _replays(self, words: Impairment | Setting) -> dict[str, Any]:
        """What is replayed once `words` hold."""
        of_delay, of_loss, changes = self.delay_replay, self.loss_replay, self.delay_changes
        change = words.delay if isinstance(words.delay, Relative) else None
        if words.replay is not None:
            of_delay, of_loss, changes = words.replay, words.replay, ()
        else:
            if words.delay is not None and change is None:
                of_delay, changes = None, ()
            if words.loss is not None:
                of_loss = None
        if of_delay is not None and change is not None:
            changes = (*changes, change)
        return {"delay_replay": of_delay, "delay_changes": changes, "loss_replay": of_loss}

    @property
    def keeps_what_it_reorders(self) -> bool:
        """Whether messages are to be released out of turn, and order is kept all the same."""
        return self.order == "kept" and self.reorder is not None and self.reorder.fraction > 0.0

    @property
    def is_simple(self) -> bool:
        """Whether a message of this link gets one release by its key alone, or is lost by it."""
        return self == Effect(self.delay_s, self.jitter, self.loss, self.order)


_MADE = ("delay_s", "delay_replay", "delay_changes", "loss_replay")  # of several keys together
_EFFECT_KEYS = tuple(each.name for each in fields(Effect) if each.name not in _MADE)


@dataclass(frozen=True)
class Link:
    """A directed link on one path: `request`, `reply`, `observation` or `probe`."""

    number: int
    source: str
    target: str
    path: str
    effect: Effect


@dataclass(frozen=True)
class Topology:
    """All nodes and links of a scenario, in the order of the file."""

    nodes: dict[str, Node]
    links: tuple[Link, ...]
    leaves: dict[str, tuple[str, ...]] = field(default_factory=dict)  # cell -> names of its leaves
    servers: dict[str, tuple[str, ...]] = field(default_factory=dict)  # cell -> names of its servers

    def outgoing(self, node: str) -> list[Link]:
        """The links that this node sends on."""
        return self._ends[0].get(node, [])

    def incoming(self, node: str) -> list[Link]:
        """The links that end at this node."""
        return self._ends[1].get(node, [])

    @cached_property
    def _ends(self) -> tuple[dict[str, list[Link]], dict[str, list[Link]]]:
        """The links by source, and by target: a thousand nodes would each search thousands of links."""
        outgoing: dict[str, list[Link]] = {}
        incoming: dict[str, list[Link]] = {}
        for link in self.links:
            outgoing.setdefault(link.source, []).append(link)
            incoming.setdefault(link.target, []).append(link)
        return outgoing, incoming


def root_name(root: str) -> str:
    """The node that plays this root."""
    return f"root.{root}"


def build_topology(scenario: Scenario) -> Topology:
    """The nodes and links of a scenario."""
    leaves, servers = _leaves(scenario), _servers(scenario)
    nodes = build_nodes(scenario)
    pairs = _pairs(scenario, leaves, servers)
    effects = _effects(scenario, nodes, pairs)
    links = tuple(
        Link(number, *pair, effect) for number, (pair, effect) in enumerate(zip(pairs, effects, strict=True))
    )
    return Topology(nodes, links, leaves, servers)


def build_nodes(scenario: Scenario) -> dict[str, Node]:
    """The nodes of a scenario by name; asks nothing of its policies and links."""
    leaves, servers = _leaves(scenario), _servers(scenario)
    nodes = [Node(root_name(root), "root", index=i) for i, root in enumerate(scenario.roots)]
    for cell in scenario.cells:
        nodes += [Node(name, "leaf", cell, i) for i, name in enumerate(leaves[cell])]
        nodes += [Node(name, "server", cell, i) for i, name in enumerate(servers[cell])]
    return {node.name: node for node in nodes}


def leaf_policy(scenario: Scenario, cell: str) -> Policy:
    """The policy of the leaves of a cell: least in flight by their own counts, unless the file names one."""
    name = scenario.cells[cell].leaf.policy
    return DEFAULT_LEAF_POLICY if name is None else scenario.policies[name]


def oracles_of(scenario: Scenario) -> list[str]:
    """The policies in use that want to know the truth, which only the virtual engine can tell them."""
    used = [line.policy for root in scenario.roots.values() for line in root.traffic]
    used += [cell.leaf.policy for cell in scenario.cells.values() if cell.leaf.policy is not None]
    return [name for name in dict.fromkeys(used) if isinstance(scenario.policies[name], OraclePolicy)]


def reports_of(scenario: Scenario, cell: str) -> Reports:
    """How the leaves of a cell report to the roots."""
    own = scenario.cells[cell].reports
    return scenario.reports if own is None else own


def is_polled(scenario: Scenario, cell: str) -> bool:
    """Whether the leaves of a cell report when roots ask them."""
    return reports_of(scenario, cell).send == "when_polled"


def polls_servers(scenario: Scenario, cell: str) -> bool:
    """Whether the servers of a cell report when its leaves ask them."""
    reads = reads_reports(leaf_policy(scenario, cell))
    return reads and scenario.cells[cell].server_reports.send == "when_polled"


def counts_first_tokens(policy: Policy) -> bool:
    """Whether a policy counts its own requests from their first token."""
    return isinstance(policy, CountWords) and policy.counts_from == "first_token"


def passes_first_tokens(scenario: Scenario) -> bool:
    """Whether roots are told of first tokens."""
    used = {line.policy for root in scenario.roots.values() for line in root.traffic}
    return any(counts_first_tokens(scenario.policies[name]) for name in used)


def reads_reports(policy: Policy) -> bool:
    """Whether a policy looks at reports of its targets (a leaf's servers report only then); a user's policy may."""
    return (
        isinstance(policy, ReportPolicy)
        or (isinstance(policy, ViewWords) and policy.reads_ages)
        or getattr(policy, "view", None) == "reports"
        or isinstance(policy, UserPolicy)
    )


def sends_probes(policy: Policy) -> bool:
    """Whether the leaves of a policy probe their servers; of a user's policy it is not known, so it may."""
    return isinstance(policy, ProbingPolicy | UserPolicy)


def matching_nodes(scenario: Scenario, nodes: dict[str, Node], pattern: str) -> list[str]:
    """The nodes that a name, a glob or a group means.

    `cell.us` (or a glob such as `cell.*`) means the leaves of that cell; a group means all that its members do.
    """
    if pattern in scenario.groups:
        members = scenario.groups[pattern]
        found = {name for member in members for name in matching_nodes(scenario, nodes, member)}
        return [name for name in nodes if name in found]
    return [
        node.name
        for node in nodes.values()
        if fnmatchcase(node.name, pattern)
        or (node.kind == "leaf" and fnmatchcase(f"cell.{node.cell}", pattern))
    ]


def _leaves(scenario: Scenario) -> dict[str, tuple[str, ...]]:
    return {
        name: tuple(f"{name}/leaf-{i + 1}" for i in range(cell.leaf.count))
        for name, cell in scenario.cells.items()
    }


def _servers(scenario: Scenario) -> dict[str, tuple[str, ...]]:
    return {
        name: tuple(f"{name}/server-{i + 1}" for i in range(cell.servers))
        for name, cell in scenario.cells.items()
    }


def _pairs(
    scenario: Scenario, leaves: dict[str, tuple[str, ...]], servers: dict[str, tuple[str, ...]]
) -> list[tuple[str, str, str]]:
    """(source, target, path) of every link."""
    pairs: list[tuple[str, str, str]] = []
    for root in scenario.roots:
        for cell in scenario.cells:
            for leaf in leaves[cell]:
                pairs.append((root_name(root), leaf, "request"))
                pairs.append((leaf, root_name(root), "reply"))
                pairs.append((leaf, root_name(root), "observation"))
                is_checked = scenario.roots[root].health_checks is not None
                if is_polled(scenario, cell) or is_checked:
                    pairs.append((root_name(root), leaf, "probe"))
                if is_checked:
                    pairs.append((leaf, root_name(root), "probe"))
    for cell in scenario.cells:
        policy = leaf_policy(scenario, cell)
        for leaf in leaves[cell]:
            for server in servers[cell]:
                pairs.append((leaf, server, "request"))
                pairs.append((server, leaf, "reply"))
                if reads_reports(policy) or isinstance(policy, IdleQueuePolicy):
                    pairs.append((server, leaf, "observation"))
                is_checked = scenario.cells[cell].leaf.health_checks is not None
                if sends_probes(policy) or polls_servers(scenario, cell) or is_checked:
                    pairs.append((leaf, server, "probe"))
                if sends_probes(policy) or is_checked:
                    pairs.append((server, leaf, "probe"))
    return pairs


def _effects(scenario: Scenario, nodes: dict[str, Node], pairs: list[tuple[str, str, str]]) -> list[Effect]:
    effects = [Effect()] * len(pairs)
    for line in scenario.links:
        sources = set(matching_nodes(scenario, nodes, line.from_))
        targets = set(matching_nodes(scenario, nodes, line.to))
        for i, (source, target, path) in enumerate(pairs):
            if source in sources and target in targets and line.path in (None, path):
                effects[i] = effects[i].changed(line)
    return effects
