"""What the faults of a scenario change at one node, and when: the same for both engines.

The sender of a link applies the changes of that link; a node those of its own keys; balancers stop choosing what is
withdrawn; a process that is to die or to stop does so itself; a root takes note of those of its load, which are in the
plan already. A node's changes are known before the run, so that no message has to travel for a fault to take hold, and
no fault can cut off the command that heals it.

A process that is dead or stopped cannot make its changes. Once it is back it makes those that still hold.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from testbed.roles.messages import Rotation
from testbed.roles.messages import Setting as Told
from testbed.scenario.fault_plan import Fault, withdrawn_from
from testbed.scenario.fault_words import MOMENTARY, ROLE_DEFAULTS, TELEMETRY, Setting
from testbed.scenario.topology import Topology


@dataclass(frozen=True)
class Change:
    """One thing that the engine does to one node at a planned instant of run time.

    Attributes:
        at_s: planned instant.
        fault: number of the fault in the timeline.
        healed: false: the fault sets in; true: it ends.
        until_s: planned instant of the heal; infinite: never.
        links: numbers of this node's outgoing links whose effect changes.
        words: what the fault sets.
        is_own: the fault touches this node itself.
        withdrawn: of this balancer's targets, those that take no new requests.
    """

    at_s: float
    fault: int
    healed: bool
    until_s: float = math.inf
    links: tuple[int, ...] = ()
    words: Setting = field(default_factory=Setting)
    is_own: bool = False
    withdrawn: tuple[str, ...] = ()

    @property
    def kills(self) -> bool:
        """The process of this node is dead while the fault is at work."""
        return self.is_own and bool(self.words.kill)

    @property
    def pauses(self) -> bool:
        """The process of this node is stopped while the fault is at work."""
        return self.is_own and bool(self.words.pause)


def node_changes(plan: Sequence[Fault], topology: Topology, node: str) -> list[Change]:
    """The changes of a node in the order in which they are made; healing goes before what sets in then.

    Args:
        plan: the timeline in run time.
        topology: of its scenario.
        node: its name.
    """
    changes: list[Change] = []
    for fault in plan:
        begin = onset(fault, topology, node)
        if begin is not None:
            changes.append(begin)
            if fault.until_s != math.inf:
                changes.append(heal_of(begin, fault.until_s))
    changes.sort(key=lambda change: (change.at_s, not change.healed, change.fault))
    return changes


@dataclass(frozen=True)
class Outage:
    """A span of run time in which a process is dead or stopped, by one fault or by several that overlap."""

    is_dead: bool
    at_s: float
    until_s: float = math.inf


def outages(changes: Sequence[Change], kind: str) -> list[Outage]:
    """When the process of a node of this kind is dead, and when it is stopped; who is dead is not stopped as well.

    Args:
        changes: of the node, in their order.
        kind: of the node.
    """
    at_work = AtWork(kind)
    found: list[Outage] = []
    state: bool | None = None  # dead, stopped, or neither
    for change in changes:
        at_work.note(change)
        now = True if at_work.is_dead else False if at_work.is_paused else None
        if now is state:
            continue
        if state is not None:
            found[-1] = replace(found[-1], until_s=change.at_s)
        if now is not None:
            found.append(Outage(now, change.at_s))
        state = now
    return [outage for outage in found if outage.at_s < outage.until_s]


def onset(fault: Fault, topology: Topology, node: str) -> Change | None:
    """What a fault changes at a node when it sets in; None: nothing."""
    links = tuple(number for number in fault.links if topology.links[number].source == node)
    withdrawn = withdrawn_from(topology, node, fault.withdrawn)
    is_own = node in fault.nodes
    if not (links or withdrawn or is_own):
        return None
    return Change(fault.at_s, fault.number, False, fault.until_s, links, fault.words, is_own, withdrawn)


def heal_of(change: Change, at_s: float) -> Change:
    """The change that heals this one."""
    return replace(change, at_s=at_s, healed=True)


class AtWork:
    """The faults at work at a node: what holds of them all, and how all can be healed, however the run ends."""

    def __init__(self, kind: str) -> None:
        """Begin without any; `kind` is that of the node."""
        self._defaults = ROLE_DEFAULTS[kind]
        self._changes: dict[int, Change] = {}

    @property
    def is_dead(self) -> bool:
        """A fault has killed the process."""
        return any(change.kills for change in self._changes.values())

    @property
    def is_paused(self) -> bool:
        """A fault has stopped the process."""
        return any(change.pauses for change in self._changes.values())

    def note(self, change: Change) -> list[Told | Rotation]:
        """A change is made; what the role is to be told of it. A heal of what is not at work changes nothing.

        Of several faults that set one key, the one that set in last gives it.
        """
        before = self._out()
        if change.healed:
            self._changes.pop(change.fault, None)
        else:
            self._changes[change.fault] = change
        told: list[Told | Rotation] = []
        if change.is_own:
            told += [
                Told(key, self._value(key))
                for key in self._defaults
                if _given(change, key) is not None and not (change.healed and key in MOMENTARY)
            ]
        after = self._out()
        told += [
            Rotation(name, name not in after)
            for name in change.withdrawn
            if (name in before) != (name in after)
        ]
        return told

    def paused_until_s(self) -> float:
        """When the last of the faults that stop the process is to heal."""
        return max((change.until_s for change in self._changes.values() if change.pauses), default=-math.inf)

    def active(self) -> list[Change]:
        """Those at work, in the order in which they set in."""
        return list(self._changes.values())

    def heals(self, at_s: float) -> list[Change]:
        """The changes that heal what is left, the last to set in first; what was killed for good stays dead."""
        if self.is_dead:
            return []
        left = reversed(self._changes.values())
        return [heal_of(change, at_s) for change in left if not change.words.kill]

    def _value(self, key: str) -> float:
        given = [value for change in self._changes.values() if (value := _given(change, key)) is not None]
        return given[-1] if given else self._defaults[key]

    def _out(self) -> set[str]:
        return {name for change in self._changes.values() for name in change.withdrawn}


def _given(change: Change, key: str) -> float | None:
    """What a change sets a key of the role to, as a number; None: nothing, or not of this node."""
    value = getattr(change.words, key) if change.is_own else None
    if value is None:
        return None
    return float(1 + TELEMETRY.index(value)) if key == "telemetry" else float(value)
