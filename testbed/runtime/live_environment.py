"""What a role sees of the live engine: its clock, its timers, its links, its log."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Any, TypeAlias

from testbed.draw import stream
from testbed.record.log import LogWriter
from testbed.roles.environment import Role
from testbed.roles.messages import PATH_OF, Message
from testbed.runtime.sending_end import SendingEnd
from testbed.runtime.timeline import AtWork, Change

Planned: TypeAlias = "tuple[float, int, LiveEnvironment, str]"


class Agenda:
    """What is planned in a process: the timers of its roles, and the changes that faults make.

    Attributes:
        heap: (instant of run time, number, environment, name). Numbers rise, so equal instants keep the order of
            planning; those of changes are below 0, so changes go first.
        numbers: the last one given.
    """

    __slots__ = ("_change_instants_s", "_changes", "heap", "numbers")

    def __init__(self) -> None:
        """Begin empty."""
        self.heap: list[Planned] = []
        self.numbers = 0
        self._changes = -(1 << 62)
        self._change_instants_s: list[float] = []  # a heap

    def add_change(self, environment: LiveEnvironment, change: Change) -> None:
        """Plan a change, behind those that were planned before it."""
        self._changes = number = self._changes + 1
        name = f"\0change {number}"  # no role names a timer so
        environment.timers[name] = number
        environment.changes[name] = change
        heappush(self.heap, (change.at_s, number, environment, name))
        heappush(self._change_instants_s, change.at_s)

    def next_change_s(self, after_s: float) -> float:
        """The earliest instant above this one for which a change was planned; infinite when none is left."""
        instants_s = self._change_instants_s
        while instants_s and instants_s[0] <= after_s:
            heappop(instants_s)
        return instants_s[0] if instants_s else math.inf

    def next_at_s(self) -> float:
        """The earliest instant at which something is to happen; infinite when nothing is."""
        heap = self.heap
        while heap:
            at_s, number, environment, name = heap[0]
            if environment.timers.get(name) == number:
                return at_s
            heappop(heap)  # cancelled, or replaced by a timer of the same name
        return math.inf

    def forget_stale(self) -> None:
        """Drop all that no longer holds, wherever it stands: replaced timers far ahead would pile up."""
        self.heap[:] = [each for each in self.heap if each[2].timers.get(each[3]) == each[1]]
        heapify(self.heap)


class LiveEnvironment:
    """The world around one role.

    Attributes:
        at_s: what `now_s` tells: set before each call of the role.
        timers: the number in the agenda of each timer and change that still holds.
        changes: those that faults make to this node, by their names in the agenda.
        role: the role; set once it is built.
    """

    __slots__ = (
        "_agenda",
        "_ends",
        "_paths",
        "_rngs",
        "_seed",
        "at_s",
        "at_work",
        "changes",
        "life",
        "log",
        "name",
        "record",
        "role",
        "timers",
    )

    def __init__(
        self, name: str, kind: str, seed: int, log: LogWriter, agenda: Agenda, life: int = 0
    ) -> None:
        """Args:
        name: the node.
        kind: of the node.
        seed: of the run.
        log: of the node.
        agenda: of the process.
        life: how often the node was started before.
        """
        self.name = name
        self.life = life
        self.log = log
        self.record: Callable[[str, tuple[Any, ...]], None] = log.append
        self.at_s = 0.0
        self.timers: dict[str, int] = {}
        self.changes: dict[str, Change] = {}
        self.role: Role
        self._agenda = agenda
        self.at_work = AtWork(kind)
        self._seed = seed
        self._rngs: dict[str, random.Random] = {}
        self._paths: dict[str, dict[str, SendingEnd]] = {path: {} for path in PATH_OF.values()}
        self._ends = {kind: self._paths[path] for kind, path in PATH_OF.items()}

    def now_s(self) -> float:
        """Seconds since the run began: of the clock or of what is due, as the scenario's `dating` says."""
        return self.at_s

    def rng(self, purpose: str) -> random.Random:
        """This node's stream of that name."""
        if purpose not in self._rngs:
            of_life = (
                (f"life {self.life}",) if self.life else ()
            )  # later lives draw from streams of their own
            self._rngs[purpose] = stream(self._seed, self.name, purpose, *of_life)
        return self._rngs[purpose]

    def send(self, target: str, message: Message) -> None:
        """Draw the message's release, or drop it; it leaves at the end of this pass of the loop, or as soon after as its link's delay
        leaves time for.

        Raises:
            RuntimeError: no link carries this kind of message to that node.
        """
        kind = message.__class__
        try:
            end = self._ends[kind][target]
        except KeyError:
            raise RuntimeError(f"{self.name}: no link carries {message} to {target}") from None
        sent_at_s = self.at_s
        release_at_s = end.draw(message[0], message[1], sent_at_s)
        end.sent += 1
        if release_at_s is None:  # dropped, copied, or drawn in another way
            for each_at_s in end.model.releases(message, sent_at_s):
                end.put(kind, message, each_at_s, sent_at_s)
            return
        end.drawn_s += release_at_s - sent_at_s
        if end.kind is not kind:
            end.open_section(kind, sent_at_s)
        end.releases.append(release_at_s)
        end.messages.append(message)

    def set_timer(self, name: str, at_s: float) -> None:
        """Fire at this instant, or as soon as can be if it has passed; replaces a timer of that name."""
        agenda = self._agenda
        agenda.numbers = number = agenda.numbers + 1
        self.timers[name] = number
        heappush(agenda.heap, (at_s, number, self, name))

    def cancel_timer(self, name: str) -> None:
        """Forget the timer of that name."""
        self.timers.pop(name, None)

    def add_end(self, end: SendingEnd) -> None:
        """A link on which this node sends."""
        self._paths[end.link.path][end.link.target] = end

    def ends(self) -> list[SendingEnd]:
        """The links on which this node sends."""
        return [end for ends in self._paths.values() for end in ends.values()]

    def apply(self, change: Change, done_at_s: float) -> list[str]:
        """Make a change that a fault makes to this node, and record it; returns the targets that are dead from now on."""
        dead: list[str] = []
        for end in self.ends():
            if end.link.number in change.links:
                was_dead = end.model.effect.kill
                if change.healed:
                    end.model.heal(change.fault)
                else:
                    end.model.apply(change.fault, change.words)
                end.draw = end.model.draw
                if end.model.effect.kill and not was_dead:
                    end.next_life()
                    dead.append(end.link.target)
        for told in self.at_work.note(change):
            self.role.on_message("", told)
        self.record("applied", (change.fault, self.name, change.healed, change.at_s, done_at_s))
        return list(dict.fromkeys(dead))

    def take_due_changes(self, now_s: float) -> list[Change]:
        """The changes that were due by now and have not been made, in their order; they are planned no more.

        Deaths are not among them: who has come so far lives.
        """
        due = {
            name: change
            for name, change in self.changes.items()
            if change.at_s <= now_s and not change.words.kill
        }
        for name in due:
            del self.changes[name], self.timers[name]
        return list(due.values())

    def heal_all(self, now_s: float) -> None:
        """The run is over: heal the faults that are still at work, and record it."""
        for change in self.at_work.heals(now_s):
            self.apply(change, now_s)
