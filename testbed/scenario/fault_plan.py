"""The timeline of a scenario: every fault that will happen, when it sets in and heals, and what it touches.

Lines of the file become faults: one that comes again becomes one fault for each time, random ones are drawn. All
hangs on the seed and the lines alone, so arms that share them share their faults, and both engines, the records, the
figures and the printed plan see the same list. The number of a fault is its position in it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from testbed.draw import stream
from testbed.scenario.fault_words import (
    COUNT_KEYS,
    GAUGE_KEYS,
    PROCESS_KEYS,
    SERVICE_KEYS,
    FaultAction,
    FaultKind,
    FaultLine,
    RandomFaults,
    Setting,
)
from testbed.scenario.quantity import format_s
from testbed.scenario.schema import Scenario
from testbed.scenario.setting_text import setting_text
from testbed.scenario.topology import Effect, Node, Topology, matching_nodes, root_name

MOST_FAULTS = 10_000  # each is a row, a shade in figures and a change at its nodes


class Span(NamedTuple):
    """When one fault is to set in and to heal, seconds; `until_s` is infinite where it is for good."""

    line: int  # position of its line in the scenario
    action: FaultAction
    at_s: float
    until_s: float
    rng: Random  # its own stream, for what is drawn of it


@dataclass(frozen=True)
class Fault:
    """One fault of the timeline.

    Attributes:
        number: position in the timeline.
        line: position of its line in the scenario.
        at_s: planned instant.
        until_s: planned heal; infinite: never.
        target: whom it touches, in the words of the scenario: 'cell eu', 'link cell.us -> root.* observation'.
        words: what it sets.
        links: numbers of the links whose effect it changes.
        nodes: names of the nodes that it changes themselves.
        withdrawn: names of the servers, leaves and cells that take no new requests.
        class_name: the class whose requests it changes; None: of every class.
    """

    number: int
    line: int
    at_s: float
    until_s: float
    target: str
    words: Setting
    links: tuple[int, ...]
    nodes: tuple[str, ...]
    class_name: str | None = None
    withdrawn: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """What it sets, in words."""
        return setting_text(self.words)

    def appliers(self, topology: Topology) -> set[str]:
        """The nodes that make its changes: those that it touches, the senders of its links, and who would choose them."""
        balancers = {name for name in topology.nodes if withdrawn_from(topology, name, self.withdrawn)}
        return {topology.links[number].source for number in self.links} | set(self.nodes) | balancers


def withdrawn_from(topology: Topology, balancer: str, withdrawn: Sequence[str]) -> tuple[str, ...]:
    """Those of the withdrawn that this balancer chooses among: cells and their leaves at a root, servers at a leaf."""
    node = topology.nodes[balancer]
    if not withdrawn or node.kind == "server":
        return ()
    if node.kind == "leaf":
        mine = set(topology.servers[node.cell])
    else:
        mine = {*topology.leaves, *(leaf for leaves in topology.leaves.values() for leaf in leaves)}
    return tuple(name for name in withdrawn if name in mine)


def spans(scenario: Scenario) -> list[Span]:
    """When the faults of a scenario set in and heal, line by line; not what they touch."""
    found: list[Span] = []
    for number, line in enumerate(scenario.faults):
        occurrences = (
            _random(scenario, number, line.random) if line.random else _regular(scenario, number, line)
        )
        found += occurrences
    return found


def fault_plan(scenario: Scenario, topology: Topology) -> tuple[Fault, ...]:
    """Every fault of a scenario.

    Args:
        scenario: scaled or not; the instants are in its time.
        topology: of the same scenario.
    """
    return tuple(_fault(scenario, topology, number, span) for number, span in enumerate(spans(scenario)))


def ordered_fault(
    scenario: Scenario, topology: Topology, number: int, line: FaultLine, at_s: float, until_s: float
) -> Fault:
    """A fault that was ordered by hand while a run went on, as if its line stood behind the others of the scenario.

    Args:
        scenario: scaled or not; the instants are in its time.
        topology: of the same scenario.
        number: how many were ordered before.
        line: what was ordered, and on whom; its own instants do not count.
        at_s: when it sets in.
        until_s: when it heals.
    """
    planned, place = len(spans(scenario)), len(scenario.faults) + number
    rng = stream(scenario.seed, "fault", str(place), "0")
    return _fault(scenario, topology, planned + number, Span(place, line, at_s, until_s, rng))


def link_effects(topology: Topology, plan: Sequence[Fault]) -> dict[int, list[Effect]]:
    """All that each link does in the course of a run, by its number: undisturbed, and under the faults at work."""
    found = {link.number: [link.effect] for link in topology.links}
    for number, faults in _by_link(plan).items():
        for at_s in sorted({fault.at_s for fault in faults} | {fault.until_s for fault in faults}):
            effect = topology.links[number].effect
            for fault in faults:
                if fault.at_s <= at_s < fault.until_s:
                    effect = effect.changed(fault.words)
            found[number].append(effect)
    return found


def duplicates(scenario: Scenario) -> bool:
    """Whether some link may deliver a message twice, now or under a fault."""
    kinds = [kind for line in scenario.faults for kind in (line.random.kinds if line.random else (line,))]
    return any(words.duplicate for words in (*scenario.links, *(kind.setting for kind in kinds)))


def misinforms(scenario: Scenario) -> bool:
    """Whether faults have servers tell something else than they know: old or wrong values, wrong stamps, or nothing."""
    kinds = [kind for line in scenario.faults for kind in (line.random.kinds if line.random else (line,))]
    return any(kind.server is not None and not GAUGE_KEYS.isdisjoint(kind.setting.given) for kind in kinds)


def onsets(line: FaultLine, duration_s: float) -> list[float]:
    """The instants at which a line that is not random sets in, seconds."""
    if line.every is None:
        return [line.onset_s]
    room = max(0.0, duration_s - line.onset_s)
    count = min(math.ceil(room / line.every), line.times or MOST_FAULTS, MOST_FAULTS)
    return [line.onset_s + i * line.every for i in range(max(1, count))]


def picked(names: Sequence[str], pick: str | None, rng: Random) -> list[str]:
    """Those of the names that `pick` takes, in their order: all, one, half (rounded down) or a minority; at least one."""
    size = {"one": 1, "half": len(names) // 2, "minority": (len(names) - 1) // 2}.get(
        pick or "all", len(names)
    )
    if size >= len(names):
        return list(names)
    chosen = set(rng.sample(range(len(names)), max(1, size)))
    return [name for i, name in enumerate(names) if i in chosen]


def named_cells(scenario: Scenario, nodes: dict[str, Node], pattern: str) -> list[str]:
    """The cells that a name, a glob or a group means."""
    found = {nodes[name].cell for name in matching_nodes(scenario, nodes, pattern)}
    found |= {nodes[name].cell for name in matching_nodes(scenario, nodes, f"cell.{pattern}")}
    return [cell for cell in scenario.cells if cell in found]


def named_nodes(scenario: Scenario, nodes: dict[str, Node], pattern: str, kind: str) -> list[str]:
    """The nodes of a kind that a name, a glob or a group means; a root also by its bare name."""
    found = matching_nodes(scenario, nodes, pattern)
    if kind == "root" and pattern not in scenario.groups:
        found += matching_nodes(scenario, nodes, root_name(pattern))
    wanted = set(found)
    return [name for name, node in nodes.items() if name in wanted and node.kind == kind]


def _regular(scenario: Scenario, number: int, line: FaultLine) -> Iterator[Span]:
    length_s = math.inf if line.length_s is None else line.length_s
    for i, at_s in enumerate(onsets(line, scenario.duration)):
        yield Span(number, line, at_s, at_s + length_s, stream(scenario.seed, "fault", str(number), str(i)))


def _random(scenario: Scenario, number: int, words: RandomFaults) -> Iterator[Span]:
    """A Poisson process; the kind of each fault by weight."""
    rng = stream(scenario.seed, "faults", str(number))
    end_s = min(scenario.duration, words.to if words.to is not None else math.inf)
    at_s = words.from_
    for i in range(MOST_FAULTS):
        at_s += rng.expovariate(1.0) / words.rate
        if at_s >= end_s:
            return
        kind: FaultKind = rng.choices(words.kinds, [each.weight for each in words.kinds])[0]
        length_s = math.inf if kind.for_ is None else kind.for_
        yield Span(number, kind, at_s, at_s + length_s, stream(scenario.seed, "fault", str(number), str(i)))


def _fault(scenario: Scenario, topology: Topology, number: int, span: Span) -> Fault:
    action = span.action
    whom = _Reach(action)
    if action.link is not None:
        sources = picked(matching_nodes(scenario, topology.nodes, action.link.from_), action.pick, span.rng)
        targets = set(matching_nodes(scenario, topology.nodes, action.link.to))
        path = action.link.path
        among = set(sources)
        whom.links = tuple(
            link.number
            for link in topology.links
            if link.source in among and link.target in targets and path in (None, link.path)
        )
        whom.said = sources
    elif action.partition is not None:
        whom.links = _cut_links(scenario, topology, action.partition)
    elif action.cell is not None:
        whom.said = picked(named_cells(scenario, topology.nodes, action.cell), action.pick, span.rng)
        whom.nodes = tuple(
            name for cell in whom.said for name in _of_cell(topology, cell, set(action.setting.given))
        )
    elif action.target in ("server", "leaf", "root"):
        pattern = getattr(action, action.target)
        whom.said = picked(
            named_nodes(scenario, topology.nodes, pattern, action.target), action.pick, span.rng
        )
        whom.nodes = tuple(whom.said)
    else:
        whom.nodes = tuple(
            root_name(root)
            for root, words in scenario.roots.items()
            if any(line.class_ == action.class_ for line in words.traffic)
        )
    if action.setting.drain or action.setting.absent:
        whom.withdrawn = tuple(whom.said)
    if action.setting.kill:
        dead = set(whom.nodes)
        whom.links = tuple(link.number for link in topology.links if link.target in dead)
    return Fault(
        number,
        span.line,
        span.at_s,
        span.until_s,
        whom.text(),
        _dated(action.setting, span.at_s),
        whom.links,
        whom.nodes,
        action.class_,
        whom.withdrawn,
    )


def _of_cell(topology: Topology, cell: str, keys: set[str]) -> tuple[str, ...]:
    """The nodes of a cell that a fault on it touches: its servers do the work, its leaves speak for it."""
    touches_all = bool(keys & PROCESS_KEYS)
    leaves = topology.leaves[cell] if touches_all or keys & (GAUGE_KEYS | COUNT_KEYS) else ()
    return (*leaves, *(topology.servers[cell] if touches_all or keys & SERVICE_KEYS else ()))


class _Reach:
    """What one fault touches, and how it is told."""

    def __init__(self, action: FaultAction) -> None:
        self.action = action
        self.links: tuple[int, ...] = ()
        self.nodes: tuple[str, ...] = ()
        self.withdrawn: tuple[str, ...] = ()
        self.said: list[str] = []  # those that were picked

    def text(self) -> str:
        return target_text(self.action, self.said if self.action.pick not in (None, "all") else [])


def target_text(action: FaultAction, those_picked: Sequence[str] = ()) -> str:
    """Whom a fault touches, in the words of the scenario; those that were picked from it, if any were."""
    if action.link is not None:
        path = "" if action.link.path is None else f" {action.link.path}"
        source = ", ".join(those_picked) or action.link.from_
        return f"link {source} -> {action.link.to}{path}"
    if action.partition is not None:
        return f"partition {' | '.join(action.partition)}"
    pattern = getattr(action, "class_" if action.target == "class" else action.target)
    return f"{action.target} {', '.join(those_picked) or pattern}"


def until_text(until_s: float) -> str:
    """When a fault heals, for people."""
    return "the end" if math.isinf(until_s) else format_s(until_s)


def _dated(words: Setting, at_s: float) -> Setting:
    """What runs from an instant on (flapping, a replayed file) runs from the onset of its fault, unless it says."""
    changes = {
        key: value.model_copy(update={"since": at_s})
        for key in ("flap", "replay")
        if (value := getattr(words, key)) is not None and value.since is None
    }
    return words.model_copy(update=changes) if changes else words


def _cut_links(scenario: Scenario, topology: Topology, groups: Sequence[str]) -> tuple[int, ...]:
    """The links between nodes of different groups, both ways; a single group is cut off from all the others."""
    side = {
        name: i for i, group in enumerate(groups) for name in matching_nodes(scenario, topology.nodes, group)
    }
    if len(groups) == 1:
        side = {name: 0 if name in side else 1 for name in topology.nodes}
    return tuple(
        link.number
        for link in topology.links
        if link.source in side and link.target in side and side[link.source] != side[link.target]
    )


def _by_link(plan: Sequence[Fault]) -> dict[int, list[Fault]]:
    found: dict[int, list[Fault]] = {}
    for fault in plan:
        for number in fault.links:
            found.setdefault(number, []).append(fault)
    return found
