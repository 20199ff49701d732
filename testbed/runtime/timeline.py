"""What the faults of a scenario change at one node, and when: the same for both engines.

The sender of a link applies the changes of that link; a server applies those of its own keys; a root takes note of
those of its load, which are in the plan already. A node's changes are known before the run, so that no message has to
travel for a fault to take hold, and no fault can cut off the command that heals it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from testbed.scenario.fault_plan import Fault
from testbed.scenario.fault_words import SERVER_DEFAULTS, Setting
from testbed.scenario.topology import Topology


@dataclass(frozen=True)
class Change:
    """One thing that the engine does to one node at a planned instant of run time.

    Attributes:
        at_s: planned instant.
        fault: number of the fault in the timeline.
        healed: false: the fault sets in; true: it ends.
        links: numbers of this node's outgoing links whose effect changes.
        words: what the fault sets on those links.
        settings: what holds from now on of the keys of this server that the fault sets.
    """

    at_s: float
    fault: int
    healed: bool
    links: tuple[int, ...] = ()
    words: Setting = field(default_factory=Setting)
    settings: tuple[tuple[str, float], ...] = ()


def node_changes(plan: Sequence[Fault], topology: Topology, node: str) -> list[Change]:
    """The changes of a node in the order in which they are made; healing goes before what sets in then.

    Args:
        plan: the timeline in run time.
        topology: of its scenario.
        node: its name.
    """
    changes: list[Change] = []
    for fault in plan:
        links = tuple(number for number in fault.links if topology.links[number].source == node)
        if links or node in fault.nodes:
            begin = Change(fault.at_s, fault.number, False, links, fault.words)
            changes.append(begin)
            if fault.until_s != float("inf"):
                changes.append(replace(begin, at_s=fault.until_s, healed=True))
    changes.sort(key=lambda change: (change.at_s, not change.healed, change.fault))
    return _with_settings(changes, topology.nodes[node].kind)


class AtWork:
    """The faults at work at a node, so that all can be healed when the run ends, however it ends."""

    def __init__(self) -> None:
        """Begin without any."""
        self._changes: dict[int, Change] = {}

    def note(self, change: Change) -> None:
        """A change was made."""
        if change.healed:
            self._changes.pop(change.fault, None)
        else:
            self._changes[change.fault] = change

    def heals(self, at_s: float) -> list[Change]:
        """The changes that heal what is left, the last to set in first."""
        left = reversed(self._changes.values())
        return [
            replace(
                change,
                at_s=at_s,
                healed=True,
                settings=tuple((key, SERVER_DEFAULTS[key]) for key, _ in change.settings),
            )
            for change in left
        ]


def _with_settings(changes: list[Change], kind: str) -> list[Change]:
    """The keys of a server filled in: each as the active fault that set in last has it, or its default."""
    if kind != "server":
        return changes
    active: list[Change] = []
    filled: list[Change] = []
    for change in changes:
        if change.healed:
            active = [each for each in active if each.fault != change.fault]
        else:
            active.append(change)
        keys = [key for key in SERVER_DEFAULTS if getattr(change.words, key) is not None]
        filled.append(replace(change, settings=tuple((key, _value(key, active)) for key in keys)))
    return filled


def _value(key: str, active: list[Change]) -> float:
    given = [value for change in active if (value := getattr(change.words, key)) is not None]
    return float(given[-1]) if given else SERVER_DEFAULTS[key]
