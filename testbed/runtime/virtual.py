"""The virtual engine: all nodes in one process under virtual time, deterministic to the byte.

One heap holds everything that is to happen: (instant, order of scheduling, node, ...). Equal instants keep the order
of scheduling. The roles, the link models and the records are those of the live engine.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from heapq import heapify, heappop, heappush
from operator import add
from typing import Any

from testbed.draw import stream
from testbed.errors import InterruptError
from testbed.links.counts import COUNTS
from testbed.links.link import LinkModel
from testbed.record.log import LogWriter
from testbed.record.outcome import RunOutcome, ledger_line
from testbed.record.run_folder import ArmFolder
from testbed.roles.build import World, build_role
from testbed.roles.environment import Environment, Role
from testbed.roles.messages import PATH_OF, Message, Setting
from testbed.runtime.collector import collector_at_rest
from testbed.runtime.ground_truth import GroundTruth
from testbed.runtime.interrupts import Interrupts, counted_interrupts
from testbed.runtime.progress import NodeProgress, Progress
from testbed.runtime.stand_in import Dead, Paused
from testbed.runtime.timeline import AtWork, Change, node_changes
from testbed.scenario.fault_plan import fault_plan
from testbed.scenario.topology import Link

SECOND_S = 1.0  # scenario time between two rows of the links' counts
IDLE_CHECK_S = 0.05  # scenario time between two looks whether all is done
PROGRESS_EVENTS = 20_000  # events between two calls of the progress display
ROWS_PER_CHUNK = 1024  # of a log: nobody waits while a chunk is written

RoleFactory = Callable[[str, World, Environment], Role]


class Channel:
    """A link in the virtual engine: its model, and what passed over it."""

    __slots__ = (
        "constant_s",
        "counts",
        "delivered",
        "draw",
        "drawn_s",
        "handed",
        "link",
        "model",
        "posted",
        "sent",
        "source",
        "source_name",
        "target",
    )

    def __init__(self, link: Link, seed: int, *, watched: bool) -> None:
        """An unused channel; the engine sets its ends."""
        self.link = link
        self.model = LinkModel(seed, link, watched=watched)
        self.draw, self.constant_s = self.model.draw, self.model.constant_s
        self.source_name = link.source
        self.source: VirtualEnvironment
        self.target: VirtualEnvironment
        self.sent = self.delivered = 0
        self.counts = (0,) * len(COUNTS)  # as `LinkCounts.take`, up to the last row
        self.posted = self.handed = 0  # sent and delivered since the last row
        self.drawn_s = 0.0  # since then

    def under_way(self) -> int:
        """Messages sent or copied that were neither dropped nor delivered yet."""
        lost, cut, queue, dead, copied, _ = map(add, self.counts, self.model.counts.read())
        came_in, went_out = self.sent + self.posted + copied, self.delivered + self.handed
        return int(came_in - lost - cut - queue - dead - went_out)

    def redraw(self) -> None:
        """The model draws in another way from now on."""
        self.draw, self.constant_s = self.model.draw, self.model.constant_s


class VirtualEnvironment:
    """What a role sees of the virtual engine."""

    def __init__(self, engine: VirtualEngine, name: str, kind: str, log: LogWriter, seed: int) -> None:
        """Args:
        engine: where time passes.
        name: the node.
        kind: of the node.
        log: its log.
        seed: of the run.
        """
        self._engine = engine
        self._heap = engine.heap
        self.name = name
        self.log = log
        self.record: Callable[[str, tuple[Any, ...]], None] = log.append
        self._seed = seed
        self._rngs: dict[str, random.Random] = {}
        self.channels: dict[str, dict[str, Channel]] = {path: {} for path in PATH_OF.values()}
        self._channel_of = {kind: self.channels[path] for kind, path in PATH_OF.items()}
        self.timers: dict[str, int] = {}
        self.at_work = AtWork(kind)
        self.died_with: set[int] = set()  # the faults at work when the process died
        self.healed_since: list[Change] = []  # of these, and of its deaths
        self.life = 0
        self.role: Role

    def now_s(self) -> float:
        """Virtual seconds since the run began."""
        return self._engine.now_s

    def rng(self, purpose: str) -> random.Random:
        """This node's stream of that name."""
        if purpose not in self._rngs:
            self._rngs[purpose] = stream(self._seed, self.name, purpose, *self._life())
        return self._rngs[purpose]

    def _life(self) -> tuple[str, ...]:
        """Later lives draw from streams of their own."""
        return (f"life {self.life}",) if self.life else ()

    def forget(self) -> None:
        """The process has died, and all that it knew."""
        self.life += 1
        self.timers.clear()
        self._rngs.clear()

    def send(self, target: str, message: Message) -> None:
        """Draw the message's release, or drop it."""
        channel = self._channel_of[message.__class__][target]
        engine = self._engine
        now_s = engine.now_s
        channel.posted += 1
        delay_s = channel.constant_s
        if delay_s is not None:
            release_at_s = now_s + delay_s
        else:
            drawn_at_s = channel.draw(message[0], message[1], now_s)
            if drawn_at_s is None:  # dropped, copied, or drawn in another way
                for each_at_s in channel.model.releases(message, now_s):
                    self._carry(channel, message, each_at_s, now_s)
                return
            release_at_s = drawn_at_s
        channel.drawn_s += release_at_s - now_s
        engine.order = order = engine.order + 1
        heappush(self._heap, (release_at_s, order, channel, message))

    def _carry(self, channel: Channel, message: Message, release_at_s: float, now_s: float) -> None:
        engine = self._engine
        channel.drawn_s += release_at_s - now_s
        engine.order += 1
        heappush(self._heap, (release_at_s, engine.order, channel, message))

    def set_timer(self, name: str, at_s: float) -> None:
        """Fire at this instant, or now if it has passed; replaces a timer of that name."""
        engine = self._engine
        engine.order = order = engine.order + 1
        self.timers[name] = order
        heappush(self._heap, (at_s if at_s > engine.now_s else engine.now_s, order, self, name))

    def cancel_timer(self, name: str) -> None:
        """Forget the timer of that name."""
        self.timers.pop(name, None)


class VirtualEngine:
    """One run of one arm under virtual time."""

    def __init__(
        self, folder: ArmFolder, world: World, header: dict[str, Any], make_role: RoleFactory = build_role
    ) -> None:
        """Args:
        folder: where the logs go.
        world: the scenario in run time, its topology and plan.
        header: what every log says of the run.
        make_role: the factory of roles.
        """
        self.now_s = 0.0
        self.order = 0
        self.heap: list[tuple[Any, ...]] = []
        self._world = world
        scenario = world.scenario
        self._scale = scenario.time_scale
        self._environments = {
            name: VirtualEnvironment(
                self,
                name,
                node.kind,
                LogWriter(folder.log(name), {**header, "node": name}, ROWS_PER_CHUNK),
                scenario.seed,
            )
            for name, node in world.topology.nodes.items()
        }
        self._plan = fault_plan(scenario, world.topology)
        touched = {number for fault in self._plan for number in fault.links}
        self._channels = [
            Channel(link, scenario.seed, watched=link.number in touched) for link in world.topology.links
        ]
        for channel in self._channels:
            channel.source = self._environments[channel.link.source]
            channel.target = self._environments[channel.link.target]
            channel.source.channels[channel.link.path][channel.link.target] = channel
        self._changes = [
            (change, name)
            for name in self._environments
            for change in node_changes(self._plan, world.topology, name)
        ]
        roles: dict[str, Role] = {}
        requests = [each for each in self._channels if each.link.path == "request"]
        self._truth = GroundTruth(world.topology, roles, requests)
        self._world = world = replace(world, truth_of=self._truth)
        self._make_role, self._roles = make_role, roles
        self._interrupts = Interrupts()
        for environment in self._environments.values():
            environment.role = roles[environment.name] = make_role(environment.name, world, environment)

    def run(self, on_progress: Callable[[Progress], None] | None = None) -> RunOutcome:
        """Run until all is done after the scenario's duration, or its drain has passed.

        Ctrl-C ends the run early, between two events, so that every role stops in a state that it has reached; what
        was recorded is kept.

        Raises:
            InterruptError: it was pressed before the run began.
            KeyboardInterrupt: it was pressed again before the logs were closed.
        """
        with collector_at_rest(), counted_interrupts(most=1) as self._interrupts:
            if self._interrupts.count:
                raise InterruptError("stopped before the run had begun")
            self._begin()
            self._pass_all(on_progress)
            return self._end(interrupted=self._interrupts.count > 0)

    def _pass_all(self, on_progress: Callable[[Progress], None] | None) -> None:
        scenario = self._world.scenario
        self._pass_until(scenario.duration, on_progress)
        end_s = scenario.duration + scenario.drain
        while not (self._interrupts.count or self._is_idle()) and self.now_s < end_s:
            self._pass_until(min(self.now_s + IDLE_CHECK_S * self._scale, end_s), on_progress)

    def _begin(self) -> None:
        for change, name in self._changes:
            if change.at_s <= 0:
                self._apply(change, self._environments[name])
            else:
                self.order += 1
                heappush(self.heap, (change.at_s, self.order, change, name))
        self._await_second()
        for environment in self._environments.values():
            environment.role.start()

    def _pass_until(self, until_s: float, on_progress: Callable[[Progress], None] | None) -> None:
        """Let everything up to and including this instant happen, or what comes before Ctrl-C."""
        heap, interrupts = self.heap, self._interrupts
        events = 0
        while heap and heap[0][0] <= until_s:
            if interrupts.count:
                return
            at_s, order, what, detail = heappop(heap)
            assert at_s >= self.now_s, f"time ran backwards: {at_s} s after {self.now_s} s"
            self.now_s = at_s
            if what.__class__ is Channel:
                what.handed += 1
                what.target.role.on_message(what.source_name, detail)
            elif what.__class__ is VirtualEnvironment:
                if what.timers.get(detail) == order:
                    del what.timers[detail]
                    what.role.on_timer(detail)
            elif what.__class__ is Change:
                self._apply(what, self._environments[detail])
            else:
                self._write_counts()
                self._await_second()
            events += 1
            if events % PROGRESS_EVENTS == 0 and on_progress is not None:
                on_progress(self._progress())
        self.now_s = max(self.now_s, until_s)

    def _is_idle(self) -> bool:
        return all(environment.role.is_idle() for environment in self._environments.values())

    def _await_second(self) -> None:
        self.order += 1
        heappush(self.heap, (self.now_s + SECOND_S * self._scale, self.order, None, None))

    def _apply(self, change: Change, environment: VirtualEnvironment) -> None:
        """Make a change; whoever is stopped or dead makes it later, if it still holds then."""
        at_work, role = environment.at_work, environment.role
        if change.kills:
            for channel in self._channels:
                if channel.target is environment:
                    self._change_link(channel, change)
        if isinstance(role, Dead):
            at_work.note(change)
            if change.healed and (change.kills or change.fault in environment.died_with):
                environment.healed_since.append(change)
            if not at_work.is_dead:
                self._revive(environment)
        elif change.kills and not change.healed:
            self._kill(environment, change)
        elif isinstance(role, Paused) and not change.pauses:
            role.wait(change)
        else:
            self._make(change, environment)
            self._stop_or_go_on(environment)

    def _make(self, change: Change, environment: VirtualEnvironment) -> None:
        self._change_links(change)
        for told in environment.at_work.note(change):
            environment.role.on_message("", told)
            if isinstance(told, Setting) and told.key == "speed":
                self._truth.speeds[environment.name] = told.value
        self._record_change(change, environment)

    def _record_change(self, change: Change, environment: VirtualEnvironment) -> None:
        row = (change.fault, environment.name, change.healed, change.at_s, self.now_s)
        environment.record("applied", row)

    def _change_links(self, change: Change) -> None:
        """Links to a dead process are closed at its end, whatever their senders do."""
        if change.words.kill:
            return
        for number in change.links:
            self._change_link(self._channels[number], change)

    def _change_link(self, channel: Channel, change: Change) -> None:
        if change.healed:
            channel.model.heal(change.fault)
        else:
            channel.model.apply(change.fault, change.words)
        channel.redraw()

    def _stop_or_go_on(self, environment: VirtualEnvironment) -> None:
        """Stop the process, or let it go on with all that has waited for it."""
        role, is_paused = environment.role, environment.at_work.is_paused
        if is_paused and not isinstance(role, Paused):
            self._play(environment, Paused(role, self._timer_holder(environment)))
        elif isinstance(role, Paused) and not is_paused:
            self._play(environment, role.role)
            for each in role.backlog:
                self._catch_up(environment, *each)

    def _timer_holder(self, environment: VirtualEnvironment) -> Callable[[str], int]:
        def hold(name: str) -> int:
            self.order = environment.timers[name] = self.order + 1
            return self.order

        return hold

    def _catch_up(self, environment: VirtualEnvironment, kind: str, what: Any, detail: Any = None) -> None:
        if kind == "message":
            environment.role.on_message(what, detail)
        elif kind == "change":
            self._make(what, environment)
        elif environment.timers.get(what) == detail:
            del environment.timers[what]
            environment.role.on_timer(what)

    def _kill(self, environment: VirtualEnvironment, change: Change) -> None:
        """End a process: what is open there is lost, and what is under way to it."""
        environment.died_with = {each.fault for each in environment.at_work.active()}
        environment.at_work.note(change)
        self._record_change(change, environment)
        role = environment.role
        role.stop(killed=True)
        if isinstance(role, Paused):
            for kind, what, *_ in role.backlog:
                if kind == "change":
                    environment.at_work.note(what)
        self._play(environment, Dead())
        environment.forget()
        self._drop_under_way(environment)

    def _play(self, environment: VirtualEnvironment, role: Role) -> None:
        environment.role = self._roles[environment.name] = role

    def _drop_under_way(self, environment: VirtualEnvironment) -> None:
        kept = []
        for event in self.heap:
            if event[2].__class__ is Channel and event[2].target is environment:
                event[2].model.counts.dead += 1
            else:
                kept.append(event)
        self.heap[:] = kept
        heapify(self.heap)

    def _revive(self, environment: VirtualEnvironment) -> None:
        """Start a process anew under its name: it knows nothing but the faults that are at work, and those that healed."""
        for healed in environment.healed_since:
            self._record_change(healed, environment)
        environment.healed_since.clear()
        self._play(environment, self._make_role(environment.name, self._world, environment))
        environment.role.start()
        for active in environment.at_work.active():
            self._make(active, environment)
        self._stop_or_go_on(environment)

    def _write_counts(self) -> None:
        """A row for each end of each link that carried something since the last row."""
        now_s = self.now_s
        for channel in self._channels:
            sent, delivered = channel.posted, channel.handed
            if not (sent or delivered or channel.model.counts.dead):
                continue  # as most of many thousands
            if sent or channel.model.counts.dead:
                counts = channel.model.counts.take()
                channel.source.record("sent", (channel.link.number, now_s, sent, *counts, channel.drawn_s))
                channel.counts = tuple(map(add, channel.counts, counts))
            if delivered:
                channel.target.record("delivered", (channel.link.number, now_s, delivered, 0, 0.0, 0.0, ()))
            channel.sent += sent
            channel.delivered += delivered
            channel.posted = channel.handed = 0
            channel.drawn_s = 0.0

    def _progress(self) -> Progress:
        nodes = {
            name: NodeProgress(*environment.role.gauges(), lateness_p99_s=0.0)
            for name, environment in self._environments.items()
        }
        return Progress(self.now_s, nodes)

    def _end(self, *, interrupted: bool) -> RunOutcome:
        drained = self._is_idle()
        for environment in self._environments.values():
            while heals := environment.at_work.heals(self.now_s):  # who goes on now may make others
                for change in heals:
                    self._apply(change, environment)
            environment.role.stop()
        self._write_counts()
        under_way: dict[int, int] = {}
        for event in self.heap:
            if event[2].__class__ is Channel:
                number = event[2].link.number
                under_way[number] = under_way.get(number, 0) + 1
        for environment in self._environments.values():
            environment.log.close()
        scenario = self._world.scenario
        ledger = tuple(
            ledger_line(
                each.link, (each.sent, *each.counts), each.delivered, under_way.get(each.link.number, 0)
            )
            for each in self._channels
        )
        return RunOutcome("virtual", scenario.dating, self.now_s, drained, interrupted, ledger=ledger)
