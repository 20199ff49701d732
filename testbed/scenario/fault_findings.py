"""Whether faults find whom they are to touch, and whether the load that they change can be changed so."""

from __future__ import annotations

from collections.abc import Iterator

from testbed.scenario.fault_plan import MOST_FAULTS, named_cells, named_nodes, onsets
from testbed.scenario.fault_words import PROCESS_KEYS, FaultAction
from testbed.scenario.finding import Finding, Keys
from testbed.scenario.process_map import process_map
from testbed.scenario.schema import Processes, Scenario, Traffic
from testbed.scenario.spelling import listed, nearest
from testbed.scenario.topology import Node, Topology, matching_nodes


def fault_actions(scenario: Scenario) -> list[tuple[Keys, FaultAction]]:
    """Every target with what it is set to, in the lines of faults and in the kinds of random ones."""
    found: list[tuple[Keys, FaultAction]] = []
    for i, line in enumerate(scenario.faults):
        if line.random is None:
            found.append((("faults", i), line))
        else:
            found += [(("faults", i, "random", "kinds", k), kind) for k, kind in enumerate(line.random.kinds)]
    return found


def fault_findings(scenario: Scenario, nodes: dict[str, Node]) -> Iterator[Finding]:
    """Faults that touch nobody, that are too many, or that ask of a load what it cannot give."""
    for keys, action in fault_actions(scenario):
        yield from _untouched(scenario, nodes, keys, action)
        yield from _prefill(scenario, nodes, keys, action)
        yield from _process(scenario, nodes, keys, action)
        yield from _load(scenario, nodes, keys, action)
    for i, line in enumerate(scenario.faults):
        if line.every is not None and len(onsets(line, scenario.duration)) >= MOST_FAULTS:
            problem = f"comes more than {MOST_FAULTS} times"
            yield Finding(("faults", i, "every"), problem, "a longer time, or times to limit it")
        if line.random is not None and line.random.rate * scenario.duration > MOST_FAULTS / 2:
            problem = f"would be {line.random.rate * scenario.duration:.6g} faults"
            yield Finding(
                ("faults", i, "random", "rate"), problem, f"a rate that gives up to {MOST_FAULTS // 2}"
            )


def _prefill(
    scenario: Scenario, nodes: dict[str, Node], keys: Keys, action: FaultAction
) -> Iterator[Finding]:
    """Cold servers without a GPU profile, which have no prefill to be slow at."""
    if action.target not in ("cell", "server") or action.setting.prefill is None:
        return
    for cell in dict.fromkeys(nodes[name].cell for name in _reach(scenario, nodes, action)):
        if scenario.cells[cell].profile is None:
            problem = "does not go with the servers of {other}, which count no tokens"
            accepted = "cells with a profile, or speed"
            yield Finding((*keys, "set", "prefill"), problem, accepted, ("cells", cell, "service"))


def _process(
    scenario: Scenario, nodes: dict[str, Node], keys: Keys, action: FaultAction
) -> Iterator[Finding]:
    """Kills and pauses of nodes that share a process with others, which would fall with them."""
    ends = [
        key
        for key in PROCESS_KEYS
        if action.target not in ("link", "partition") and getattr(action.setting, key)
    ]
    if not ends or scenario.processes == Processes():
        return
    touched = _reach(scenario, nodes, action)
    for process, members in process_map(scenario, Topology(nodes, ())).items():
        if len(members) > 1 and (mine := [name for name in members if name in touched]):
            problem = f"touches {mine[0]}, which shares the process {process!r} with {len(members) - 1} others by {{other}}"
            yield Finding(
                (*keys, "set", ends[0]), problem, "nodes with a process of their own", ("processes",)
            )


def _reach(scenario: Scenario, nodes: dict[str, Node], action: FaultAction) -> set[str]:
    """The nodes that the words of a fault on nodes mean, before any is picked; of a cell, all of it."""
    if action.cell is not None:
        cells = named_cells(scenario, nodes, action.cell)
        return {node.name for node in nodes.values() if node.kind != "root" and node.cell in cells}
    if action.class_ is not None:
        return set()
    return set(named_nodes(scenario, nodes, getattr(action, action.target), action.target))


def _untouched(
    scenario: Scenario, nodes: dict[str, Node], keys: Keys, action: FaultAction
) -> Iterator[Finding]:
    if action.cell is not None and not named_cells(scenario, nodes, action.cell):
        known = list(scenario.cells)
        problem = f"{action.cell!r} is not in cells{nearest(action.cell, known)}"
        yield Finding((*keys, "cell"), problem, listed(known))
    for kind, pattern in (("server", action.server), ("leaf", action.leaf), ("root", action.root)):
        if pattern is not None and not named_nodes(scenario, nodes, pattern, kind):
            known = [name for name, node in nodes.items() if node.kind == kind]
            problem = f"{pattern!r} matches no {kind}{nearest(pattern, known)}"
            yield Finding((*keys, kind), problem, listed(known))
    yield from _sides(scenario, nodes, keys, action)


def _sides(scenario: Scenario, nodes: dict[str, Node], keys: Keys, action: FaultAction) -> Iterator[Finding]:
    """Groups of a partition that are empty, or that share a node."""
    seen: dict[str, int] = {}
    for k, group in enumerate(action.partition or ()):
        found = matching_nodes(scenario, nodes, group)
        if not found:
            known = [*scenario.groups, *(f"cell.{cell}" for cell in scenario.cells), *nodes]
            problem = f"{group!r} matches no node{nearest(group, known)}"
            yield Finding(
                (*keys, "partition", k), problem, "a node, a glob or a group, such as root.*, cell.us"
            )
        twice = [name for name in found if name in seen]
        if twice:
            problem = f"{twice[0]!r} is on this side and in {{other}}"
            yield Finding(
                (*keys, "partition", k),
                problem,
                "each node on one side",
                (*keys, "partition", seen[twice[0]]),
            )
        seen.update(dict.fromkeys(found, k))


def _load(scenario: Scenario, nodes: dict[str, Node], keys: Keys, action: FaultAction) -> Iterator[Finding]:
    """Load faults on what is replayed from a trace, and shifts to where nobody takes the class."""
    if action.target not in ("root", "class"):
        return
    lines = list(_lines(scenario, nodes, action))
    for key in ("demand", "burst"):
        traced = [place for place, line in lines if line.trace is not None]
        if getattr(action.setting, key) is not None and traced:
            problem = "does not go with {other}, whose arrivals are those of the trace"
            yield Finding(
                (*keys, "set", key), problem, "a line of traffic with rate, load or stages", traced[0]
            )
    fewer = action.setting.prompt_tokens
    for place, line in lines:
        words = scenario.classes.get(line.class_)
        if (
            fewer is not None
            and fewer < 1
            and (line.trace or words is None or words.sessions or words.prefixes)
        ):
            problem = "would cut what prompts of {other} share"
            yield Finding((*keys, "set", "prompt_tokens"), problem, "a factor from x1", place)
    shift = action.setting.shift
    if shift is None:
        return
    if shift.to not in scenario.roots:
        problem = f"{shift.to!r} is not in roots{nearest(shift.to, list(scenario.roots))}"
        yield Finding((*keys, "set", "shift", "to"), problem, listed(list(scenario.roots)))
        return
    taken = {line.class_ for line in scenario.roots[shift.to].traffic}
    for place, line in lines:
        if line.class_ not in taken:
            problem = (
                f"{shift.to!r} has no traffic of class {line.class_!r}, which {{other}} would send there"
            )
            yield Finding((*keys, "set", "shift", "to"), problem, "a root with traffic of that class", place)


def _lines(scenario: Scenario, nodes: dict[str, Node], action: FaultAction) -> Iterator[tuple[Keys, Traffic]]:
    """The lines of traffic that a load fault touches, with the keys that lead to them."""
    touched = set(scenario.roots)
    if action.root is not None:
        roots = list(scenario.roots)
        touched = {roots[nodes[name].index] for name in named_nodes(scenario, nodes, action.root, "root")}
    for root, words in scenario.roots.items():
        for i, line in enumerate(words.traffic):
            if root in touched and action.class_ in (None, line.class_):
                yield ("roots", root, "traffic", i), line
