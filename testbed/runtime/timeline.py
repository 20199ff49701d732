"""What the faults of a scenario change at one node, and when: the same for both engines.

The sender of a link applies the changes of that link; a server applies those of its speed. A node's changes are
known before the run, so that no message has to travel for a fault to take hold.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from testbed.scenario.schema import FaultLine, Impairment, Scenario
from testbed.scenario.topology import Topology, matching_links, matching_servers


@dataclass(frozen=True)
class Change:
    """One thing that the engine does to one node at a planned instant of run time.

    Attributes:
        at_s: planned instant.
        fault: position of the fault in the scenario.
        healed: false: the fault sets in; true: it ends.
        links: numbers of this node's outgoing links whose effect changes.
        words: what the fault sets on those links.
        speed: of this server from now on; None where the fault is none of its speed.
    """

    at_s: float
    fault: int
    healed: bool
    links: tuple[int, ...] = ()
    words: Impairment = field(default_factory=Impairment)
    speed: float | None = None


def node_changes(scenario: Scenario, topology: Topology, node: str) -> list[Change]:
    """The changes of a node in the order in which they are made; healing goes before what sets in then.

    Args:
        scenario: scaled to run time.
        topology: of the same scenario.
        node: its name.
    """
    changes: list[Change] = []
    for fault, line in enumerate(scenario.faults):
        links = tuple(link.number for link in matching_links(scenario, topology, line) if link.source == node)
        if links or node in matching_servers(scenario, topology, line):
            changes += _pair(line, fault, links)
    changes.sort(key=lambda change: (change.at_s, not change.healed, change.fault))
    return _with_speeds(changes, scenario)


def _pair(line: FaultLine, fault: int, links: tuple[int, ...]) -> list[Change]:
    begin = Change(line.at, fault, False, links, line.set_)
    if line.for_ is None:
        return [begin]
    return [begin, Change(line.at + line.for_, fault, True, links, line.set_)]


def _with_speeds(changes: list[Change], scenario: Scenario) -> list[Change]:
    """Speeds filled in: that of the active fault that set in last; 1.0 when none is left."""
    active: list[int] = []
    filled: list[Change] = []
    for change in changes:
        if change.links:
            filled.append(change)
            continue
        if change.healed:
            active.remove(change.fault)
        else:
            active.append(change.fault)
        speed = scenario.faults[active[-1]].set_.speed if active else 1.0
        filled.append(Change(change.at_s, change.fault, change.healed, speed=speed))
    return filled
