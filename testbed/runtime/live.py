"""The loop of one process of the live engine: one role, or several that share its sockets.

Each pass drains the sockets, handles everything that is due (releases of links and timers, merged in the order of
their instants), sends one frame to each peer, does a chore that waits for it (`chores.py`), and waits for the next due
instant or frame. So batches grow with the load by themselves. Two things save the switches of context that cost the
most. Between passes that a scenario spaces (`live.pass_spacing`) the process sleeps. And where links have delay to
spare (`lookahead.py`), frames are gathered over several passes, and a process that has something to do soon anyway
sleeps through the arrival of others.

What `now_s` tells the roles is the scenario's `dating`: `actual`, the clock as each message or timer is handled; or
`due`, the instant at which it was due, so that lateness does not add up. Lateness is measured the same in both: the
instant of handling less that of release.

A process that a fault stops does so itself, once it has sent what it has; the launcher wakes it. One that a fault kills
settles its accounts and then kills itself. What was due meanwhile is late by no fault of the host: lateness is counted
from when the process went on, or was started anew.

Several roles in one process share its sockets. What one sends to another skips them but keeps its link: it waits
in the delay line of the process from the end of the pass on.
"""

from __future__ import annotations

import math
import os
import signal
import time
from collections.abc import Callable, Iterable, Mapping
from heapq import heappop

from testbed.links.link import DelayLine
from testbed.record.log import LogWriter
from testbed.roles.build import World
from testbed.roles.environment import Environment, Role
from testbed.roles.messages import Message
from testbed.runtime.accounts import Accounts
from testbed.runtime.chores import Chores
from testbed.runtime.live_environment import Agenda, LiveEnvironment
from testbed.runtime.lookahead import Lookahead
from testbed.runtime.ordered import Ordered
from testbed.runtime.receiving_end import FOLD, ReceivingEnd
from testbed.runtime.sending_end import Outbox, SendingEnd
from testbed.runtime.sockets import Peer, Sockets
from testbed.runtime.timeline import Change, heal_of, node_changes, onset, outages
from testbed.runtime.wire import GREETING, Beat, Ledger, Section, Start, pack_frame, unpack_frame
from testbed.scenario.fault_plan import fault_plan
from testbed.scenario.topology import Link, root_name
from testbed.traffic.surge import surge, surge_of_root

WAITED_S = 20e-6  # a look at the sockets that took longer than this has waited
SEND_S = 0.2  # longest time that a process spends on frames that would have blocked, before it stops or dies
ROWS_PER_CHUNK = (
    64  # of a table: more at once would be a stall, since rows that lie about for long are out of all caches
)
MOST_CHUNKS = 32  # that a table of a log may gather; what is full is written between passes
MOST_EMPTY_PASSES = 1000  # in a row, without waiting: then the loop turns for nothing, which is a bug


def _cannot_die() -> None:
    raise RuntimeError("nobody has said how this process is to die")


RoleFactory = Callable[[str, World, Environment], Role]


class Host:
    """One process of a live run: its roles, their links, and the loop that serves them."""

    def __init__(
        self,
        name: str,
        world: World,
        sockets: Sockets,
        on_control: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
        *,
        life: int = 0,
        die: Callable[[], None] = _cannot_die,
        stop_self: Callable[[], None] = lambda: os.kill(os.getpid(), signal.SIGSTOP),
    ) -> None:
        """Args:
        name: of the process, for its log rows and errors.
        world: of the run.
        sockets: of the process; peers are connected later, by `connect`.
        on_control: reads the control socket, when it is readable.
        clock: the host's monotonic clock; for tests, another.
        life: how often the process was started before.
        die: ends the process once its roles have recorded what they lose; does not return.
        stop_self: stops the process until it is woken.
        """
        scenario = world.scenario
        self.name = name
        self.line = DelayLine()
        self._world = world
        self._sockets = sockets
        self._on_control = on_control
        self._clock = clock
        self._life = life
        self._die = die
        self._stop_self = stop_self
        self._resumed_at_s = -math.inf  # run time: lateness is not counted from before
        self._stopped_s = 0.0  # in this pass
        self._is_actual = scenario.dating == "actual"
        self._spacing_s = scenario.live.pass_spacing
        self._unread_s = 0.0
        self._looked_at_s = -math.inf
        self._agenda = Agenda()
        self._environments: dict[str, LiveEnvironment] = {}
        self._accounts = Accounts(name, self._environments)
        self._receiving = self._accounts.receiving
        self._filled: list[Outbox] = []
        self._outboxes: list[Outbox] = []
        self._origin_s = math.inf
        self._handled_until_s = -math.inf  # run time
        self._ended = False
        self._chores = Chores(
            self._accounts,
            self._agenda,
            self._environments,
            duration_s=scenario.duration,
            time_scale=scenario.time_scale,
            would_blocks=lambda: sockets.would_blocks,
            held=self.line.held,
        )
        self._empty_passes = 0
        self._plan = list(fault_plan(scenario, world.topology))
        self._touched = {number for fault in self._plan for number in fault.links}

    # --- before the run -------------------------------------------------------------------------------------

    def add(self, node: str, log: LogWriter) -> LiveEnvironment:
        """Host a node; its role and its outgoing links are added later."""
        world = self._world
        kind = world.topology.nodes[node].kind
        environment = LiveEnvironment(node, kind, world.scenario.seed, log, self._agenda, self._life)
        self._environments[node] = environment
        self._chores.add_log(log)
        for link in world.topology.incoming(node):
            self._receiving[link.number] = ReceivingEnd(link, environment)
        return environment

    def peers(self) -> tuple[set[str], set[str]]:
        """The nodes of other processes that these send to, and those that send to these."""
        hosted, topology = self._environments, self._world.topology
        targets = {link.target for node in hosted for link in topology.outgoing(node)}
        sources = {link.source for node in hosted for link in topology.incoming(node)}
        return targets - hosted.keys(), sources - hosted.keys()

    def build(self, make_role: RoleFactory) -> None:
        """Make the links, build the roles and plan the faults."""
        world = self._world
        self._build_links(Lookahead(world.scenario, world.topology))
        for node, environment in self._environments.items():
            environment.role = make_role(node, world, environment)
        for receiving in self._receiving.values():
            receiving.on_message = receiving.environment.role.on_message

    def _build_links(self, lookahead: Lookahead) -> None:
        world = self._world
        outboxes: dict[Peer | None, Outbox] = {}  # one for all nodes in a process; None: this one
        links: dict[Peer | None, list[Link]] = {}
        for node, environment in self._environments.items():
            for link in world.topology.outgoing(node):
                peer = self._sockets.peers.get(link.target)
                if peer not in outboxes:
                    outboxes[peer] = Outbox(self._way_to(peer), self._filled)
                links.setdefault(peer, []).append(link)
                end = SendingEnd(
                    link, world.scenario.seed, outboxes[peer], watched=link.number in self._touched
                )
                self._accounts.sending.append(end)
                environment.add_end(end)
        self._outboxes = list(outboxes.values())
        for peer, outbox in outboxes.items():
            outbox.held_s = 0.0 if peer is None else lookahead.held_s(links[peer])
        hosted = self._environments
        self._unread_s = lookahead.unread_s(
            end.link for end in self._receiving.values() if end.link.source not in hosted
        )

    def forget_lookahead(self) -> None:
        """From now on send and read at once: a link has changed in a way that the scenario did not foretell."""
        self._unread_s = 0.0
        for outbox in self._outboxes:
            outbox.held_s = 0.0

    def _way_to(self, peer: Peer | None) -> Callable[[list[Section]], None]:
        if peer is None:
            return self._deliver_here
        sockets = self._sockets
        return lambda sections: sockets.send(peer, pack_frame(sections))

    def _deliver_here(self, sections: list[Section]) -> None:
        self._hold((number, releases, messages) for number, _, releases, messages in sections)

    # --- the run --------------------------------------------------------------------------------------------

    def run(self, start: Start, send_beat: Callable[[Beat], None], processes: Mapping[str, str]) -> None:
        """Start the roles and serve them until `end` is called.

        Args:
            start: when, and what a later life has to know.
            send_beat: tells the launcher how the process fares.
            processes: of each node.

        Raises:
            RunError: a socket failed.
            RuntimeError: the loop turns for nothing.
        """
        self._origin_s = start.at_monotonic_s
        if start.ordered:
            world = self._world
            self._plan += [Ordered(*each).fault(world.scenario, world.topology) for each in start.ordered]
            self.forget_lookahead()
        self._sockets.sleep_until(self._origin_s + start.born_at_s)
        # what was done to get ready does not count: greetings that waited, the last collection
        self._accounts.usage.would_blocks = self._sockets.would_blocks
        self._accounts.usage.collector_s = 0.0
        self._begin(start, processes)
        # a later life has news that came while it waited to begin, and beats take them in
        self._chores.begin(start.born_at_s, self._number(), send_beat, beat_at_once=self._life > 0)
        for order in (Ordered(*each) for each in start.ordered):
            if order.is_surge:
                self._add_requests(order, start.born_at_s)
        waited_s = 0.0
        while not self._ended:
            began_s = self._clock()
            did_something = self._pass(began_s)
            ended_s = self._clock()
            usage = self._accounts.usage
            usage.passes += 1
            if ended_s - began_s > usage.stall_s:
                usage.note_pass(began_s - self._origin_s, ended_s - began_s - self._stopped_s)
            self._stopped_s = 0.0
            if did_something or waited_s > WAITED_S:
                self._empty_passes = 0
            else:
                self._count_empty_pass()
            waited_s = self._wait(began_s, ended_s)

    def make_ordered(self, order: Ordered, *, healed: bool) -> None:
        """Make now what a fault that was ordered by hand changes here, or heal it; who dies of it does not return."""
        fault = order.fault(self._world.scenario, self._world.topology)
        now_s = self.now_s()
        for node, environment in self._environments.items():
            begin = onset(fault, self._world.topology, node)
            if begin is not None:
                environment.at_s = max(environment.at_s, now_s)
                self._make(environment, heal_of(begin, order.until_s) if healed else begin, now_s)
        if order.is_surge and not healed:
            self._add_requests(order, -math.inf)

    def _add_requests(self, order: Ordered, from_s: float) -> None:
        """Tell the roots here of the requests that an order adds from this instant on."""
        world = self._world
        found = surge(world.scenario, order.fault(world.scenario, world.topology))
        for index, root in enumerate(world.scenario.roots):
            environment = self._environments.get(root_name(root))
            if environment is not None:
                environment.role.on_message("", surge_of_root(found, index, order.first_id, from_s))

    def end(self) -> None:
        """Leave the loop after this pass."""
        self._ended = True

    def now_s(self) -> float:
        """Run time by the clock."""
        return self._clock() - self._origin_s

    def _begin(self, start: Start, processes: Mapping[str, str]) -> None:
        """Time 0, or a new life: what faults have changed by then holds for the first message."""
        for node, environment in self._environments.items():
            environment.at_s = start.born_at_s
            changes = node_changes(self._plan, self._world.topology, node)
            if self._life:
                changes = self._of_this_life(environment, changes, start, processes)
            for change in changes:
                if change.at_s <= start.born_at_s:
                    self._make(environment, change, self.now_s())
                else:
                    self._agenda.add_change(environment, change)
        if self._life:
            self._resumed_at_s = self.now_s()
        for environment in self._environments.values():
            environment.role.start()
        self._flush()

    def _of_this_life(
        self, environment: LiveEnvironment, changes: list[Change], start: Start, processes: Mapping[str, str]
    ) -> list[Change]:
        """Make what was at work when the launcher told of the lives; returns what is yet to be made.

        That it lives heals the faults that had killed it, and those that were at work when it died and would have
        healed since.
        """
        onsets_s = {change.fault: change.at_s for change in changes if not change.healed}
        stops = [
            each
            for each in outages(changes, self._world.topology.nodes[environment.name].kind)
            if not each.is_dead
        ]
        died_with = {
            fault
            for fault, at_s in onsets_s.items()
            if at_s <= start.died_at_s and not any(each.at_s < at_s < each.until_s for each in stops)
        }
        gone = {change.fault for change in changes if change.healed and change.at_s <= start.born_at_s}
        for change in changes:
            ends = change.healed and start.died_at_s < change.at_s <= start.born_at_s
            if ends and (change.kills or change.fault in died_with):
                row = (change.fault, environment.name, True, change.at_s, self.now_s())
                environment.record("applied", row)
        left = [change for change in changes if change.fault not in gone]
        for change in left:
            if change.at_s <= start.told_at_s:
                self._make(environment, change, self.now_s())
        for end in environment.ends():
            end.begin_at(start.lives[processes[end.link.target]])
        return [change for change in left if change.at_s > start.told_at_s]

    def _make(self, environment: LiveEnvironment, change: Change, now_s: float) -> None:
        """Make a change of a node; of those that end or stop its process, the rest is up to it."""
        if change.kills and not change.healed:
            self._end_life(environment, change, now_s)
        for target in environment.apply(change, now_s):
            self._flush()  # what was sent before goes its way, and is lost where it ends
            if target in self._sockets.peers:
                self._sockets.disconnect(target)
        if change.pauses and not change.healed:
            self._pause(environment, now_s)

    def _end_life(self, environment: LiveEnvironment, change: Change, now_s: float) -> None:
        """Take in what has come, record what is lost, send what was sent, and end."""
        if self._sockets.frames_readable:
            for frame in self._sockets.receive():
                self.take(frame)
        environment.at_s = max(now_s, environment.at_s)
        environment.record("applied", (change.fault, environment.name, False, change.at_s, now_s))
        environment.role.stop(killed=True)
        self._flush()
        self._die()

    def _pause(self, environment: LiveEnvironment, now_s: float) -> None:
        """Stop this process until the launcher wakes it; a kill that fell due meanwhile comes before all else."""
        if environment.at_work.paused_until_s() <= now_s:
            return  # it was held up for so long that it is over
        self._flush()
        while self._sockets.waiting and self._clock() < self._origin_s + now_s + SEND_S:
            self._sockets.retry()
        began_s = self._clock()
        self._stop_self()
        ended_s = self._clock()
        self._stopped_s += ended_s - began_s
        self._resumed_at_s = ended_s - self._origin_s
        self._chores.beat_at(self._resumed_at_s)
        for each in self._environments.values():
            each.at_s = max(each.at_s, self._resumed_at_s)
        kills = [each for each in environment.changes.values() if each.kills and not each.healed]
        for change in kills:
            if change.at_s <= self._resumed_at_s:
                self._end_life(environment, change, self._resumed_at_s)

    def _number(self) -> int:
        """The place of the first node here among all."""
        nodes = list(self._world.topology.nodes)
        return nodes.index(next(iter(self._environments), nodes[0]))

    def _pass(self, began_s: float) -> bool:
        """Read, handle what is due, send, do the chores; returns whether there was anything to do."""
        sockets = self._sockets
        did_something = False
        if sockets.frames_readable:
            for frame in sockets.receive():
                did_something = True
                self.take(frame)
            began_s = self._clock()  # so that what came over links without delay is due in this pass
        if self._handle_due(began_s - self._origin_s):
            did_something = True
        if self._filled:
            self._flush_before(self._next_due_s(), began_s)
        if sockets.waiting:
            sockets.retry()
        if sockets.control_readable:
            did_something = True
            sockets.control_readable = False
            self._on_control()
        if self._chores.do_some(self._clock() - self._origin_s, self._next_due_s):
            did_something = True
        return did_something

    def take(self, frame: bytes) -> None:
        """Hold what a peer has sent, each message until its release. One that was started anew greets first."""
        if not frame.startswith(GREETING):
            self._hold(unpack_frame(frame))

    def _hold(self, sections: Iterable[tuple[int, list[float], list[Message]]]) -> None:
        put = self.line.put_section
        read_at_s = self._clock() - self._origin_s
        for number, releases, messages in sections:
            end = self._receiving[number]
            end.received += len(releases)
            if min(releases) < read_at_s:
                end.inversions += sum(release_at_s < read_at_s for release_at_s in releases)
            put(number, releases, messages)

    def _handle_due(self, until_s: float) -> bool:
        """Handle releases and timers up to this instant of run time, in the order in which they were due.

        At equal instants messages come first, as an arrival at a step boundary joins the step that begins there. What
        is due after a change stays in the line until that is made: it may be the death of this process.
        """
        agenda = self._agenda
        heap = agenda.heap
        handled = False
        change_at_s = agenda.next_change_s(self._handled_until_s)
        while True:
            stop_s = change_at_s if change_at_s < until_s else until_s
            due = self.line.take_due(stop_s)
            if due:
                self._hand_over(due)
                handled = True
            while heap and heap[0][0] <= stop_s:
                self._fire_next()
                handled = True
            self._handled_until_s = stop_s
            if change_at_s >= until_s:
                return handled
            change_at_s = agenda.next_change_s(stop_s)

    def _hand_over(self, due: list[tuple[float, int, Message]]) -> None:
        heap = self._agenda.heap
        clock, origin_s, is_actual, receiving = self._clock, self._origin_s, self._is_actual, self._receiving
        resumed_at_s = self._resumed_at_s
        for release_at_s, number, message in due:
            while heap and heap[0][0] < release_at_s:  # set while the messages before this one were handled
                self._fire_next()
            end = receiving[number]
            environment = end.environment
            now_s = clock() - origin_s
            if is_actual:
                environment.at_s = now_s
            elif release_at_s > environment.at_s:
                environment.at_s = release_at_s
            lateness_s = end.lateness_s
            lateness_s.append(now_s - (release_at_s if release_at_s > resumed_at_s else resumed_at_s))
            end.on_message(end.source, message)
            if len(lateness_s) >= FOLD:
                end.fold(self._accounts.bins)

    def _fire_next(self) -> None:
        at_s, number, environment, name = heappop(self._agenda.heap)
        if environment.timers.get(name) != number:
            return
        del environment.timers[name]
        now_s = self._clock() - self._origin_s
        usage = self._accounts.usage
        lag_s = now_s - (at_s if at_s > self._resumed_at_s else self._resumed_at_s)
        if lag_s > usage.lag_s:
            usage.lag_s = lag_s
        if self._is_actual:
            environment.at_s = now_s
        elif at_s > environment.at_s:
            environment.at_s = at_s
        if environment.changes and name in environment.changes:
            self._make(environment, environment.changes.pop(name), now_s)
        else:
            environment.role.on_timer(name)

    def _flush_before(self, due_s: float, began_s: float) -> None:
        """One frame to each peer whose messages cannot wait for the next pass."""
        next_pass_s = max(due_s, began_s - self._origin_s + self._spacing_s)
        kept: list[Outbox] = []
        for outbox in self._filled:
            if outbox.filled_at_s + outbox.held_s > next_pass_s:
                kept.append(outbox)
            else:
                outbox.flush()
        self._filled[:] = kept

    def _next_due_s(self) -> float:
        """The earliest release or timer, run time."""
        return min(self._agenda.next_at_s(), self.line.next_release_s())

    def _flush(self) -> None:
        """One frame to each peer for which there is something."""
        for outbox in self._filled:
            outbox.flush()
        self._filled.clear()

    def _wait(self, began_s: float, ended_s: float) -> float:
        """Wait until something is due or can be read; returns how long it took, seconds.

        With a spacing, no pass begins sooner after the last one. A due instant within it waits for the end of the
        spacing; otherwise the sockets wake the process, which then sleeps what is left of the spacing. So a process
        with little to do hears of everything at once, and a busy one handles more in each pass. Nothing is read
        while nothing that comes now can be due before the next look.
        """
        if self._ended:
            return 0.0
        sockets = self._sockets
        next_due_s = self._next_due_s()
        chores_s = self._chores.wake_s(ended_s - self._origin_s, next_due_s)
        due_s = self._origin_s + min(next_due_s, chores_s)
        spaced_s = began_s + self._spacing_s
        wake_s = due_s if due_s > spaced_s else spaced_s
        if wake_s <= self._looked_at_s + self._unread_s:
            sockets.sleep_until(wake_s)
            return self._clock() - ended_s
        if not self._spacing_s:
            sockets.wait(due_s)
        elif due_s > spaced_s:
            sockets.wait(due_s)
            sockets.sleep_until(spaced_s)
        else:
            sockets.sleep_until(spaced_s)
            sockets.wait(0.0)
        self._looked_at_s = self._clock()
        return self._looked_at_s - ended_s

    def _count_empty_pass(self) -> None:
        self._empty_passes += 1
        if self._empty_passes > MOST_EMPTY_PASSES:
            raise RuntimeError(
                f"{self.name}: {self._empty_passes} passes in a row delivered nothing, fired nothing and did not wait; "
                f"next timer {self._agenda.next_at_s()} s, next release {self.line.next_release_s()} s, "
                f"now {self.now_s()} s"
            )

    # --- after the run --------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Heal every fault, and let the roles record what is open and send what they still say."""
        for environment in self._environments.values():
            environment.at_s = now_s = max(self.now_s(), environment.at_s)
            for change in environment.take_due_changes(now_s):  # of one that was stopped until now
                environment.apply(change, now_s)
            environment.heal_all(now_s)
            environment.role.stop()
        self._flush()

    def settle(self, expected: dict[int, int], until_s: float) -> None:
        """Hold, unread by any role, what is still on its way, until as many came on each link as were sent.

        Args:
            expected: messages by number of the incoming link.
            until_s: instant of `time.monotonic` after which the rest counts as lost on the way.
        """
        sockets = self._sockets
        while self._clock() < until_s and (sockets.waiting or not self._accounts.is_settled(expected)):
            sockets.wait(until_s)
            if sockets.frames_readable:
                for frame in sockets.receive():
                    self.take(frame)
            if sockets.control_readable:
                self._on_control()  # or its news would end every wait at once
            sockets.retry()

    def sent_ledger(self) -> Ledger:
        """What the roles sent, by link."""
        return self._accounts.sent_ledger()

    def received_ledger(self) -> Ledger:
        """What the roles were handed and what is still held, by link."""
        return self._accounts.received_ledger(self.line.held())

    def close(self) -> None:
        """Write the last rows and close the logs with their end marks."""
        self._accounts.write_last_rows(self.now_s(), self._sockets.would_blocks)
        self._accounts.close()
        for environment in self._environments.values():
            environment.log.close()
