"""Faults ordered by hand while a run goes on: the launcher's part.

One order is dealt with at a time. Where it changes links, all processes first stop relying on what links promise
(`lookahead.py`); then those that make it do so, and say that they did; then the answer goes out. What was ordered goes
into the records as lines of the timeline, at the instants at which they were at work.

What kills or stops processes becomes an order for each of them, so that each can be started anew or woken alone. What the
timeline has killed or stopped is no order's to end: every process knows the timeline, and would not learn of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from testbed.record.outcome import SurgeWords
from testbed.roles.build import World
from testbed.runtime.hand import HandServer
from testbed.runtime.lives import Life
from testbed.runtime.ordered import Ordered
from testbed.runtime.processes import Processes
from testbed.runtime.timeline import Outage
from testbed.runtime.wire import Change, Changed
from testbed.scenario.fault_plan import Fault, fault_plan, until_text
from testbed.scenario.fault_words import LOAD_KEYS, PROCESS_KEYS, FaultLine
from testbed.scenario.schema import scaled_words
from testbed.traffic.surge import BY_HAND, surge

ACKNOWLEDGED_WITHIN_S = (
    0.4  # longest wait for the processes, twice at most: an answer takes less than a second
)
RESTART_S = 0.2  # how long a process is dead that is to be restarted, and lives
NOT_BY_HAND = (LOAD_KEYS - BY_HAND) | {"shift", "duplicate", "replay"}


@dataclass
class Order:
    """One order, and what has become of it."""

    ordered: Ordered
    fault: Fault
    words: dict[str, Any]  # of its line, in scenario time
    is_healed: bool = False


@dataclass
class _Pending:
    """The order that is being dealt with."""

    asker: bytes
    said: list[str]
    waiting: set[tuple[str, str, int]]  # who is to say that it has done what
    until_s: float
    then: Callable[[], set[tuple[str, str, int]]] | None = None


class ByHand:
    """All orders of a run."""

    def __init__(
        self,
        world: World,
        homes: Mapping[str, Sequence[str]],
        lives: dict[str, Life],
        hand: HandServer,
        processes: Processes,
        send: Callable[[str, Any], bool],
        now_s: Callable[[], float],
    ) -> None:
        """Args:
        world: of the run.
        homes: the nodes of every process.
        lives: of every process; those that are killed or stopped by hand are noted there.
        hand: where orders come from.
        processes: to be woken and forked.
        send: tells a process; False: it is not there.
        now_s: run time.
        """
        self._world = world
        self._homes = homes
        self._process_of = {node: process for process, nodes in homes.items() for node in nodes}
        self._lives = lives
        self._hand = hand
        self._processes = processes
        self._send = send
        self._now_s = now_s
        self._plan = fault_plan(world.scenario, world.topology)
        self._pending: _Pending | None = None
        self.orders: list[Order] = []
        self._next_id = world.plan.requests  # of the next request that an order adds

    # --- what the launcher does with it ---------------------------------------------------------------------

    def attend(self) -> None:
        """Go on with the order that is being dealt with, heal what is due, and take the next order."""
        now_s = self._now_s()
        for order in self.orders:
            if not order.is_healed and not order.fault.words.kill and order.ordered.until_s <= now_s:
                self._heal(order, order.ordered.until_s)
        while self._pending is None:
            question = self._hand.receive()
            if question is None:
                return
            self._take(*question)
        pending = self._pending
        if not pending.waiting or now_s >= pending.until_s:
            late = sorted({process for process, _, _ in pending.waiting})
            if late:
                pending.said.append(f"not acknowledged yet by {', '.join(late)}")
            self._go_on(pending)

    def hear(self, done: Changed) -> None:
        """A process has done what an order asks."""
        if self._pending is not None:
            self._pending.waiting.discard((done.node, done.kind, done.number))

    def born(self, process: str, at_s: float) -> None:
        """A process that was killed lives again: those who send to it may do so."""
        nodes = set(self._homes[process])
        for order in self.orders:
            ends = order.fault.words.kill and not order.is_healed and order.ordered.until_s <= at_s
            if ends and nodes & set(order.fault.nodes):
                self._heal(order, order.ordered.until_s)

    def told(self) -> list[Ordered]:
        """What a process that is started anew has to know: what is at work, and who was killed how often."""
        return [each.ordered for each in self.orders if not each.is_healed or each.fault.words.kill]

    def lines(self) -> tuple[dict[str, Any], ...]:
        """What was ordered, as lines of the timeline in scenario time."""
        scale = self._world.scenario.stretch
        found = []
        for order in self.orders:
            at_s, until_s = order.ordered.at_s / scale, order.ordered.until_s / scale
            words = {key: value for key, value in order.words.items() if key not in ("at", "for")}
            lasts = {} if math.isinf(until_s) else {"for": f"{max(until_s - at_s, 1e-6)!r} s"}
            found.append({"at": f"{at_s!r} s", **lasts, **words})
        return tuple(found)

    def surges(self) -> tuple[SurgeWords, ...]:
        """The orders that added requests, for the record."""
        return tuple(order.ordered.as_words() for order in self.orders if order.ordered.is_surge)

    # --- orders ---------------------------------------------------------------------------------------------

    def _take(self, asker: bytes, question: dict[str, Any]) -> None:
        actions = {
            "set": self._on_set,
            "heal": self._on_heal,
            "restart": self._on_restart,
            "status": self._on_status,
        }
        action = actions.get(question["action"])
        if action is None:
            self._hand.answer(asker, False, [f"unknown action {question['action']!r}"])
            return
        try:
            self._pending = action(asker, question)
        except (ValidationError, ValueError) as error:
            self._pending = None
            self._hand.answer(asker, False, [str(error)])

    def _go_on(self, pending: _Pending) -> None:
        if pending.then is None:
            self._pending = None
            self._hand.answer(pending.asker, True, pending.said)
            return
        then, pending.then = pending.then, None
        pending.waiting = then()
        pending.until_s = self._now_s() + ACKNOWLEDGED_WITHIN_S

    def _waited_for(
        self, asker: bytes, said: list[str], first: set[tuple[str, str, int]], then: Any = None
    ) -> _Pending:
        return _Pending(asker, said, first, self._now_s() + ACKNOWLEDGED_WITHIN_S, then)

    def _on_set(self, asker: bytes, question: dict[str, Any]) -> _Pending:
        orders = self._split(question["line"], self._now_s())
        if not orders[0].fault.links or orders[0].fault.words.kill:
            return self._waited_for(asker, self._told_of(orders), self._apply(orders))
        everyone = {name for name in self._homes if self._is_awake(name)}
        braced = self._tell(orders[0], "brace", everyone)
        return self._waited_for(asker, self._told_of(orders), braced, lambda: self._apply(orders))

    def _told_of(self, orders: Sequence[Order]) -> list[str]:
        """What the run says of new orders."""
        found = []
        for order in orders:
            fault, until_s = order.fault, order.ordered.until_s / self._world.scenario.stretch
            found.append(f"{fault.number}: {fault.target}: {fault.text}, until {_until(until_s)}")
        return found

    def _split(self, words: dict[str, Any], at_s: float) -> list[Order]:
        """The orders that a line makes: one for each process that it kills or stops, else one. Raises as `_ordered`."""
        whole = self._ordered(words, at_s)
        given, nodes = whole.fault.words.given, whole.fault.nodes
        ends = sorted(PROCESS_KEYS & set(given))
        if not ends:
            return [whole]
        if len(given) > 1:
            raise ValueError(f"{ends[0]} is ordered alone; order {', '.join(set(given) - set(ends))} apart")
        if len(nodes) == 1:
            return [whole]
        rest = {key: value for key, value in words.items() if key in ("set", "for")}
        kinds = self._world.topology.nodes
        return [
            self._ordered({**rest, kinds[node].kind: node}, at_s, before=i) for i, node in enumerate(nodes)
        ]

    def _ordered(self, words: dict[str, Any], at_s: float, *, before: int = 0) -> Order:
        """The order of one line, with so many new ones before it. Raises ValueError where it would change nothing."""
        world, stretch = self._world, self._world.scenario.stretch
        line = FaultLine.model_validate({**words, "at": "0 s"})
        if line.random is not None or line.every is not None or line.target == "class":
            raise ValueError("random, every and class are not for orders")
        refused = sorted(NOT_BY_HAND & set(line.setting.given))
        if refused:
            raise ValueError(f"{', '.join(refused)} is planned before a run begins; set it in faults")
        scaled = scaled_words(line, stretch)
        until_s = at_s + scaled.for_ if scaled.for_ is not None else math.inf
        dumped = scaled.model_dump(mode="json", by_alias=True, exclude_none=True)
        ordered = Ordered(len(self.orders) + before, at_s, until_s, dumped, self._next_id)
        fault = ordered.fault(world.scenario, world.topology)
        if ordered.is_surge:
            self._next_id += self._added(fault)
        if not fault.links and not fault.nodes and not fault.withdrawn:
            raise ValueError(f"{fault.target} touches nobody")
        shared = [name for name in fault.nodes if len(self._homes[self._process_of[name]]) > 1]
        if shared and (fault.words.kill or fault.words.pause):
            raise ValueError(f"{shared[0]} shares its process with others, which would fall with it")
        if fault.words.kill or fault.words.pause:
            self._refuse_dead(fault.nodes, at_s)
        self._refuse_useless(fault, at_s)
        return Order(ordered, fault, line.model_dump(mode="json", by_alias=True, exclude_none=True))

    def _added(self, fault: Fault) -> int:
        """How many requests a fault adds; raises ValueError where it can add none."""
        world, demand = self._world, fault.words.demand
        if world.plan.sharing is not None:
            raise ValueError("requests with sessions or prefixes are planned before a run begins")
        if demand is not None and demand <= 1.0:
            raise ValueError(f"demand x{demand:g}: what is planned stays; accepted: more than x1")
        count = surge(world.scenario, fault).requests
        if not count:
            raise ValueError("that adds no request: the arrivals are over, or replayed from a trace")
        return count

    def _refuse_dead(self, nodes: Sequence[str], at_s: float) -> None:
        """Raise ValueError where one of them is dead."""
        for node in nodes:
            life = self._lives[self._process_of[node]]
            if life.is_dead or life.next_to_hear(at_s) > life.number:
                if self._holding("kill", {node}):
                    raise ValueError(f"{node} is dead already")
                raise ValueError(self._by_timeline(node, "dead", life.born_at_s(at_s)))

    def _by_timeline(self, node: str, state: str, until_s: float) -> str:
        until = until_text(until_s / self._world.scenario.stretch)
        return f"{node} is {state} by the timeline until {until}, which no order ends"

    def _holding(self, key: str, nodes: set[str]) -> list[Order]:
        """The orders that set a key on some of these nodes now."""
        return [
            order
            for order in self.orders
            if not order.is_healed and getattr(order.fault.words, key) and nodes & set(order.fault.nodes)
        ]

    def _refuse_useless(self, fault: Fault, at_s: float) -> None:
        """Raise ValueError where what else is at work on a link keeps a new order from any effect there."""
        if fault.words.reorder is None and fault.words.order is None:
            return
        topology, plan = self._world.topology, self._plan
        for number in fault.links:
            effect = topology.links[number].effect
            others = [each for each in plan if number in each.links and each.at_s <= at_s < each.until_s]
            others += [
                each.fault for each in self.orders if not each.is_healed and number in each.fault.links
            ]
            for each in (*others, fault):
                effect = effect.changed(each.words)
            if effect.keeps_what_it_reorders:
                link = topology.links[number]
                raise ValueError(f"reorder does not go with order: kept ({link.source} -> {link.target})")

    def _apply(self, orders: Sequence[Order]) -> set[tuple[str, str, int]]:
        """Have new orders made; who dies or stops of one makes the others first."""
        self.orders += orders
        waited_for: set[tuple[str, str, int]] = set()
        ended: list[tuple[Order, set[str]]] = []
        for order in orders:
            fault, ordered = order.fault, order.ordered
            own: set[str] = set()
            if fault.words.kill or fault.words.pause:
                own = {self._process_of[node] for node in fault.nodes}
                for process in own:
                    outage = Outage(bool(fault.words.kill), ordered.at_s, ordered.until_s)
                    self._lives[process].outages.insert(0, outage)
            waited_for |= self._tell(order, "apply", self._appliers(order) - own)
            ended.append((order, own))
        for order, own in ended:
            waited_for |= self._tell(order, "apply", own)
        return waited_for

    def _on_heal(self, asker: bytes, question: dict[str, Any]) -> _Pending:
        """Heal what was ordered: the faults with these numbers, those that set a key on a node, or all."""
        numbers, key, nodes = question.get("numbers"), question.get("key"), set(question.get("nodes") or ())
        known = {order.fault.number for order in self.orders}
        if numbers and (strange := sorted(set(numbers) - known)):
            raise ValueError(
                f"{strange[0]} was not ordered; known: {', '.join(map(str, sorted(known))) or 'none'}"
            )
        if fixed := [
            each for each in self.orders if each.ordered.is_surge and each.fault.number in (numbers or ())
        ]:
            raise ValueError(
                f"{fixed[0].fault.number}: its requests were planned when it was ordered, and come"
            )
        chosen = [
            order
            for order in self.orders
            if not order.is_healed
            and not order.ordered.is_surge
            and (not numbers or order.fault.number in numbers)
            and (not key or getattr(order.fault.words, key))
            and (not nodes or nodes & set(order.fault.nodes))
        ]
        stopped = self._stopped_by_timeline(nodes) if key == "pause" else []
        if stopped and not chosen:
            raise ValueError("; ".join(stopped))
        said, waiting = [], set()
        for order in chosen:
            said.append(f"{order.fault.number}: {order.fault.target}: {order.fault.text}, healed")
            waiting |= self._end(order)
        said += stopped
        return self._waited_for(asker, said or ["nothing to heal"], waiting)

    def _stopped_by_timeline(self, nodes: set[str]) -> list[str]:
        """A word on each of these nodes that the timeline has stopped."""
        now_s, found = self._now_s(), []
        ordered = {order.ordered.at_s for order in self._holding("pause", nodes)}
        for node in sorted(nodes):
            for each in self._lives[self._process_of[node]].outages:
                if not each.is_dead and each.at_s <= now_s < each.until_s and each.at_s not in ordered:
                    found.append(self._by_timeline(node, "stopped", each.until_s))
        return found

    def _on_restart(self, asker: bytes, question: dict[str, Any]) -> _Pending:
        """Start anew those of the nodes that were killed by hand; who lives is killed first."""
        nodes, now_s = set(question["nodes"]), self._now_s()
        dead = self._holding("kill", nodes)
        living = nodes.difference(*(order.fault.nodes for order in dead))
        orders: list[Order] = []
        if living:
            words = {"set": {"kill": True}, "for": f"{RESTART_S / self._world.scenario.stretch!r} s"}
            kinds = self._world.topology.nodes
            orders = [
                self._ordered({**words, kinds[node].kind: node}, now_s, before=i)
                for i, node in enumerate(sorted(living))
            ]
        said = [f"{order.fault.number}: {order.fault.target}: restarted" for order in dead]
        waiting = set().union(*(self._end(order) for order in dead)) | self._apply(orders)
        return self._waited_for(asker, said + self._told_of(orders), waiting)

    def _end(self, order: Order) -> set[tuple[str, str, int]]:
        """An order heals now; who was killed by it is started anew, and heals it when it lives."""
        now_s = self._now_s()
        if not order.fault.words.kill:
            return self._heal(order, now_s)
        self._date_heal(order, now_s)
        for node in order.fault.nodes:
            process = self._process_of[node]
            life = self._lives[process]
            life.outages = [
                Outage(True, each.at_s, now_s) if each.is_dead and each.at_s == order.ordered.at_s else each
                for each in life.outages
            ]
            if life.is_dead and not life.is_awaited:
                self.start_anew(process)
        return set()

    def start_anew(self, process: str) -> None:
        """Fork a process that was killed."""
        life = self._lives[process]
        life.begin_next()
        self._processes.spawn([process], life.number)

    def _heal(self, order: Order, at_s: float) -> set[tuple[str, str, int]]:
        self._date_heal(order, at_s)
        order.is_healed = True
        if order.fault.words.pause:
            for node in order.fault.nodes:
                life = self._lives[self._process_of[node]]
                life.outages = [
                    each for each in life.outages if each.is_dead or each.at_s != order.ordered.at_s
                ]
                self._processes.wake(self._process_of[node])
        return self._tell(order, "heal", self._appliers(order))

    def _date_heal(self, order: Order, at_s: float) -> None:
        order.ordered = order.ordered._replace(until_s=at_s)

    def _appliers(self, order: Order) -> set[str]:
        return {self._process_of[node] for node in order.fault.appliers(self._world.topology)}

    def _tell(self, order: Order, kind: str, processes: set[str]) -> set[tuple[str, str, int]]:
        """Tell those that live; who is stopped does it when it goes on, and is not waited for."""
        number = order.ordered.number
        told = {name for name in sorted(processes) if self._tell_one(name, Change(kind, *order.ordered))}
        return {(name, kind, number) for name in told if self._is_awake(name)}

    def _tell_one(self, name: str, change: Change) -> bool:
        return not self._lives[name].is_dead and self._send(name, change)

    def _is_awake(self, name: str) -> bool:
        now_s = self._now_s()
        life = self._lives[name]
        return not life.is_dead and not any(each.at_s < now_s < each.until_s for each in life.outages)

    def _on_status(self, asker: bytes, question: dict[str, Any]) -> _Pending:
        now_s, stretch = self._now_s(), self._world.scenario.stretch
        dead = sorted(name for name, life in self._lives.items() if life.is_dead)
        stopped = sorted(name for name in self._homes if name not in dead and not self._is_awake(name))
        said = [
            f"at {now_s / stretch:.3f} s, {len(self._homes) - len(dead)} of {len(self._homes)} processes alive"
        ]
        said += [f"dead: {', '.join(dead)}"] if dead else []
        said += [f"stopped: {', '.join(stopped)}"] if stopped else []
        for order in self.orders:
            if not order.is_healed:
                fault = order.fault
                said.append(
                    f"{fault.number}: {fault.target}: {fault.text}, since {order.ordered.at_s / stretch:.3f} s, "
                    f"until {_until(order.ordered.until_s / stretch)}"
                )
        return self._waited_for(asker, said, set())


def _until(until_s: float) -> str:
    return "healed by hand or at the end" if math.isinf(until_s) else f"{until_text(until_s)} of run time"
