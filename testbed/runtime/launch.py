"""The launcher of a live run: starts its processes, has them begin together, ends the run, and sums it up.

The run goes through phases, each of which waits for all nodes: ready, greeted, running, stopping (what was sent; what
was received; closed). A process whose pid lives is late at worst, never dead: nobody is declared dead for want of
beats. A process that ends before it is told to ends the run, and the others keep their data; unless a fault kills it
(see `lives.py`). Processes that faults stop are woken here.

Ctrl-C is taken by a handler that only counts, so that it cannot interrupt anything half done: the first ends a run
in order, keeping the data; the second, or one before the run has begun, kills all processes.
"""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import zmq

from testbed import __version__
from testbed.errors import InterruptError, PolicyError, RunError
from testbed.record.log import log_header
from testbed.record.manifest import scenario_hash
from testbed.record.outcome import Death, LedgerLine, RunOutcome, ledger_line
from testbed.record.run_folder import ArmFolder
from testbed.roles.build import World
from testbed.runtime.by_hand import ByHand
from testbed.runtime.control import ControlServer
from testbed.runtime.hand import HandServer
from testbed.runtime.host_watch import NAME as WATCHER
from testbed.runtime.host_watch import HostWatch
from testbed.runtime.interrupts import Interrupts, counted_interrupts
from testbed.runtime.lives import Life, planned_lives
from testbed.runtime.node import Orders
from testbed.runtime.nursery import POLICY_FAILED
from testbed.runtime.processes import NURSERY, Exit, Processes
from testbed.runtime.progress import NodeProgress, Progress
from testbed.runtime.run_lock import CONTROL, lock, sockets_folder
from testbed.runtime.sockets import bind_address, open_context
from testbed.runtime.wire import (
    Beat,
    Changed,
    Closed,
    Control,
    Directory,
    Dying,
    Greeted,
    Ledger,
    Ready,
    Settle,
    Start,
    Stop,
)
from testbed.scenario.fault_plan import fault_plan
from testbed.scenario.process_map import homes, process_map
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import Link, Topology
from testbed.traffic.plan import Plan

BUILD_ROLE = "testbed.roles.build:build_role"
START_WAIT_S = 30.0  # until all are ready and greeted; a hundred processes take a second
STOP_WAIT_S = 30.0  # until all have closed their logs; they settle for at most 2 s
LEAD_S = 0.2  # from the announcement of the start until it: every process is to hear of it before
LEAD_PER_NODE_S = 0.005  # more of it for each process that has to wake up to hear
PROGRESS_S = 0.25  # between two calls of the progress display
BIRTH_LEAD_S = 0.05  # from telling a process that was started anew to begin until it is to
BIRTH_WAIT_S = 2.0  # for those that are just being started as the run ends
LAST_WORDS_S = 1.0  # longest wait for what a process said before a fault killed it
GATHER_S = 0.005  # between two looks while all start: to wake up for each word of each takes them their time
BEATS_MS = 10  # the same while the run goes on: of a hundred processes one beats every 10 ms
LOOK_MS = 50  # longest wait of the launcher: so soon it notices Ctrl-C and a nursery that has died


@dataclass
class _State:
    """What the launcher has heard from its nodes."""

    nursery_ready: bool = False
    endpoints: dict[str, str] = field(default_factory=dict)
    greeted: set[str] = field(default_factory=set)
    beats: dict[str, Beat] = field(default_factory=dict)
    idle_from_s: dict[str, float] = field(default_factory=dict)  # run time since when all beats said idle
    sent: set[str] = field(default_factory=set)  # who has told, at the end, what it sent
    received: set[str] = field(default_factory=set)
    closed: set[str] = field(default_factory=set)
    ended: set[str] = field(default_factory=set)
    dead: set[str] = field(default_factory=set)  # of these, the unplanned
    deaths: list[Death] = field(default_factory=list)


def run_live(
    folder: ArmFolder,
    scenario: Scenario,
    topology: Topology,
    plan: Plan,
    *,
    on_progress: Callable[[Progress], None] | None = None,
    factory: str = BUILD_ROLE,
) -> RunOutcome:
    """Run an arm with a process per node, or as `processes` says. To be called in the main thread, which alone may take signals.

    Args:
        folder: of the arm; its `scenario.yaml`, the resolved scenario before scaling, is what the processes read.
        scenario: the same in run time.
        topology: of the scenario.
        plan: of the scenario; the processes make the same one again.
        on_progress: called about four times a second.
        factory: import path of the factory of roles.

    Raises:
        RunError: the run could not start, or the launcher failed; or, as PolicyError, a user's policy did.
        InterruptError: Ctrl-C before the start, or twice; nothing is left running.
    """
    folder.make()
    names = list(process_map(scenario, topology))
    with (
        counted_interrupts() as interrupts,
        lock(folder),
        sockets_folder(folder, names) as place,
        _control_server(len(names), bind_address(scenario.live.transport, place, CONTROL)) as control,
        closing(HandServer(control.context, folder, place)) as hand,
        closing(HostWatch(folder)) as watch,
        closing(Processes(folder, {WATCHER: watch.pid})) as processes,
    ):
        orders = Orders(folder, place, control.endpoint, _header(folder, scenario))
        launcher = _Launcher(
            folder, World(scenario, topology, plan), interrupts, control, hand, processes, watch
        )
        return launcher.run(orders, factory, on_progress)


def _header(folder: ArmFolder, scenario: Scenario) -> dict[str, Any]:
    """What every log says of the run; each node fills in its name."""
    return log_header(
        scenario=scenario.name,
        scenario_hash=scenario_hash(folder.scenario.read_text()),
        seed=scenario.seed,
        version=__version__,
        engine="live",
        node="",
        started=datetime.now(UTC).isoformat(timespec="seconds"),
    )


@contextmanager
def _control_server(nodes: int, address: str) -> Iterator[ControlServer]:
    context = open_context(nodes)
    try:
        with closing(ControlServer(context, address)) as control:
            yield control
    finally:
        context.destroy(linger=0)  # whatever is still unsent is for processes that have gone


class _Launcher:
    """One run."""

    def __init__(
        self,
        folder: ArmFolder,
        world: World,
        interrupts: Interrupts,
        control: ControlServer,
        hand: HandServer,
        processes: Processes,
        watch: HostWatch,
    ) -> None:
        self._folder = folder
        self._world = world
        self._homes = process_map(world.scenario, world.topology)
        self._names = set(self._homes)  # of the processes
        self._lives = planned_lives(fault_plan(world.scenario, world.topology), world.topology, self._homes)
        self._interrupts = interrupts
        self._control = control
        self._processes = processes
        self._watch_of_host = watch
        self._state = _State()
        self._origin_s = 0.0
        self._died_at_s: dict[str, float] = {}
        self._is_stopping = False
        self._poller = zmq.Poller()
        self._poller.register(control.socket, zmq.POLLIN)
        self._poller.register(processes.socket, zmq.POLLIN)
        self._poller.register(hand.socket, zmq.POLLIN)
        self._by_hand = ByHand(world, self._homes, self._lives, hand, processes, control.send, self._now_s)

    def run(self, orders: Orders, factory: str, on_progress: Callable[[Progress], None] | None) -> RunOutcome:
        """All phases."""
        start_s = self._start(orders, factory)
        lead_s = LEAD_S + LEAD_PER_NODE_S * len(self._names)
        self._origin_s = time.monotonic() + lead_s
        self._tell_all(Start(self._origin_s))
        self._watch_of_host.begin(self._origin_s, orders.header)
        drained = self._watch(on_progress)
        ended_at_s = max(0.0, self._now_s())
        interrupted = self._interrupts.count > 0
        self._stop(ended_at_s)
        scenario = self._world.scenario
        return RunOutcome(
            engine="live",
            dating=scenario.dating,
            ended_at_s=ended_at_s,
            drained=drained,
            interrupted=interrupted,
            deaths=tuple(self._state.deaths),
            ledger=self._ledger(),
            wall_s=ended_at_s,
            start_s=start_s,
            notes=self._notes(),
            by_hand=self._by_hand.lines(),
            surges=self._by_hand.surges(),
        )

    # --- start ----------------------------------------------------------------------------------------------

    def _start(self, orders: Orders, factory: str) -> float:
        """Until all paths are greeted; returns how long that took from the first fork, seconds."""
        state = self._state
        until_s = time.monotonic() + START_WAIT_S
        self._processes.begin(orders, factory)
        self._await_start(until_s, "be ready to fork", lambda: set() if state.nursery_ready else {NURSERY})
        began_s = time.monotonic()
        self._processes.spawn(list(self._homes))
        self._await_start(until_s, "say that they are ready", lambda: self._names - state.endpoints.keys())
        self._tell_peers()
        self._await_start(until_s, "greet all their peers", lambda: self._names - state.greeted)
        return time.monotonic() - began_s

    def _tell_peers(self) -> None:
        """Tell each process where its peers are; a hundred times a hundred addresses would take their time."""
        endpoints, topology = self._state.endpoints, self._world.topology
        home_of = homes(self._homes)
        for name, nodes in self._homes.items():
            peers = {home_of[link.target] for node in nodes for link in topology.outgoing(node)}
            peers |= {home_of[link.source] for node in nodes for link in topology.incoming(node)}
            self._control.send(name, Directory({each: endpoints[each] for each in sorted(peers)}))

    # --- faults of processes --------------------------------------------------------------------------------

    def _present(self) -> set[str]:
        """The processes that take part now."""
        return {name for name in self._names if not self._lives[name].is_dead}

    def _do_due(self) -> None:
        """Wake whom a fault had stopped until now, and let those begin who were started anew in time."""
        now_s = self._now_s()
        for name, life in self._lives.items():
            if life.is_dead:
                self._begin_again(name, life, now_s)
            else:
                self._wake(name, life, now_s)

    def _wake(self, name: str, life: Life, now_s: float) -> None:
        """Wake it until it has shown that it goes on: it may have been too late to stop in time."""
        coming = life.outages
        beat = self._state.beats.get(name)
        while coming and not coming[0].is_dead and coming[0].until_s <= now_s:
            is_awake = beat is not None and beat.at_s > coming[0].until_s
            if not is_awake and (len(coming) == 1 or coming[1].at_s > now_s):
                self._processes.wake(name)
                return
            coming.pop(0)

    def _bear(self, name: str) -> None:
        """A fault has killed this process: fork it anew, if it is to come back."""
        life = self._lives[name]
        life.is_dead, life.died_at_s = True, self._died_at_s.get(name, self._now_s())
        state = self._state
        self._control.forget(name)
        for gone in (state.endpoints, state.beats, state.idle_from_s):
            gone.pop(name, None)
        state.greeted.discard(name)
        while life.outages and not life.outages[0].is_dead:
            life.outages.pop(0)
        if math.isinf(life.born_at_s(self._now_s())) or self._is_stopping:
            state.ended.add(name)
            return
        self._by_hand.start_anew(name)

    def _introduce(self, name: str) -> None:
        """One that was started anew is ready: tell it where all are, and all where it is."""
        state = self._state
        present = self._present()
        self._control.send(name, Directory({each: state.endpoints[each] for each in present}))
        for each in present - state.ended:
            self._control.send(each, Directory({name: state.endpoints[name]}))
        for each, life in self._lives.items():  # who is being started as well
            if life.is_dead and each in state.endpoints and each != name:
                self._control.send(each, Directory({name: state.endpoints[name]}))
                self._control.send(name, Directory({each: state.endpoints[each]}))

    def _begin_again(self, name: str, life: Life, now_s: float) -> None:
        born_at_s = life.born_at_s(now_s)
        if name not in self._state.greeted or now_s < born_at_s - BIRTH_LEAD_S:
            return
        self._control.send(name, self._start_anew(life, max(born_at_s, now_s)))
        life.outages = [each for each in life.outages if each.until_s > born_at_s]
        life.is_dead = life.is_awaited = False
        state = self._state
        state.ended.discard(name)
        self._by_hand.born(name, max(born_at_s, now_s))

    def _start_anew(self, life: Life, born_at_s: float) -> Start:
        now_s = self._now_s()
        lives = {name: each.next_to_hear(now_s) for name, each in self._lives.items()}
        ordered = tuple(self._by_hand.told())
        return Start(self._origin_s, born_at_s, life.died_at_s, ordered, now_s, lives)

    def _finish_births(self) -> None:
        """Whoever is being started anew as the run ends may as well be closed in order."""
        until_s = time.monotonic() + BIRTH_WAIT_S
        while time.monotonic() < until_s:
            unborn = [
                name for name, life in self._lives.items() if life.is_dead and name not in self._state.ended
            ]
            if not unborn:
                return
            for name in set(unborn) & self._state.greeted:
                life = self._lives[name]
                self._control.send(name, self._start_anew(life, self._now_s()))
                life.is_dead = life.is_awaited = False
            self._pump()

    def _hear_ledger(self, message: Ledger) -> None:
        account = self._lives[message.node].account
        if account.sent is None:
            account.sent = message
            told = self._state.sent
        else:
            account.received = message
            told = self._state.received
        if not self._lives[message.node].is_dying:
            told.add(message.node)

    def _await_start(self, until_s: float, what: str, missing: Callable[[], set[str]]) -> None:
        while absent := missing():
            self._pump()
            if self._state.deaths:
                raise RunError(self._told("ended before the start", self._state.deaths))
            if self._interrupts.count:
                raise InterruptError("stopped before the run had begun")
            if time.monotonic() > until_s:
                waiting = [Death(node, "alive", 0.0, self._processes.tail(node)) for node in sorted(absent)]
                raise RunError(self._told(f"did not {what} within {START_WAIT_S:.0f} s", waiting))
            time.sleep(GATHER_S)

    def _told(self, what: str, about: list[Death]) -> str:
        """A line for each process, and what it last said."""
        lines = []
        for each in about:
            lines.append(f"{each.node} {what}: {each.how}; see {self._folder.stderr(each.node)}")
            lines += [f"    {line}" for line in each.stderr_tail.splitlines()]
        return "\n".join(lines)

    # --- run ------------------------------------------------------------------------------------------------

    def _watch(self, on_progress: Callable[[Progress], None] | None) -> bool:
        """Until the run is over; returns whether nothing was open any more."""
        scenario = self._world.scenario
        next_progress_s = self._origin_s
        while True:
            self._pump()
            self._do_due()
            self._by_hand.attend()
            now_s = self._now_s()
            if self._state.deaths or self._interrupts.count:
                return False
            if now_s >= scenario.duration and self._is_idle():
                return True
            if now_s >= scenario.duration + scenario.drain:
                return False
            if on_progress is not None and time.monotonic() >= next_progress_s:
                next_progress_s = time.monotonic() + PROGRESS_S
                on_progress(self._progress(now_s))
            time.sleep(min(BEATS_MS, self._wait_ms()) / 1000)

    def _is_idle(self) -> bool:
        """All are idle, and have said so again after the last root did: nothing it had sent was on its way then."""
        idle, present = self._state.idle_from_s, self._present()
        if not present <= idle.keys():
            return False
        with_roots = {name for name in present if self._has_root(name)}
        last_s = max((idle[name] for name in with_roots), default=0.0)
        return all(self._state.beats[name].at_s > last_s for name in present - with_roots)

    def _has_root(self, name: str) -> bool:
        nodes = self._world.topology.nodes
        return any(nodes[node].kind == "root" for node in self._homes[name])

    def _progress(self, now_s: float) -> Progress:
        nodes = {
            node: NodeProgress(*gauges, beat.lateness_p99_s)
            for beat in self._state.beats.values()
            for node, gauges in beat.gauges.items()
        }
        return Progress(max(0.0, now_s), nodes)

    def _now_s(self) -> float:
        return time.monotonic() - self._origin_s

    # --- stop -----------------------------------------------------------------------------------------------

    def _stop(self, at_s: float) -> None:
        """Have the nodes that live close their logs, with what they sent and received on the ledger."""
        state = self._state
        until_s = time.monotonic() + STOP_WAIT_S
        interrupts = self._interrupts.count
        for name in self._names:
            self._processes.wake(name)
        self._finish_births()
        self._is_stopping = True
        self._tell_all(Stop(at_s))
        for said in (state.sent, state.received, state.closed, state.ended):
            while missing := self._present() - said - state.dead:
                for name in missing:
                    self._processes.wake(name)  # once more where a later pause was due as it went on
                self._pump()
                if self._interrupts.count > max(1, interrupts):
                    raise InterruptError("stopped again before all logs were closed")
                if time.monotonic() > until_s:
                    self._give_up(missing)
            if said is state.sent:
                self._settle()

    def _settle(self) -> None:
        """Tell each node how many messages it is to have received on each link, in its present life."""
        sent = self._sent()
        topology = self._world.topology
        for name in self._present() - self._state.dead:
            expected = {
                link.number: sum(
                    each.carried[link.number].get(self._lives[name].number, 0) for each in ledgers
                )
                for node in self._homes[name]
                for link in topology.incoming(node)
                if (ledgers := sent.get(link.number))
            }
            self._control.send(name, Settle(expected))

    def _sent(self) -> dict[int, list[Ledger]]:
        """What the senders of each link told, life by life; links of which one did not are left out."""
        topology = self._world.topology
        found: dict[int, list[Ledger]] = {}
        for process, nodes in self._homes.items():
            ledgers = [account.sent for account in self._lives[process].accounts]
            told = [ledger for ledger in ledgers if ledger is not None]
            if len(told) == len(ledgers):
                found.update({link.number: told for node in nodes for link in topology.outgoing(node)})
        return found

    def _received(self) -> dict[int, list[tuple[int, int]]]:
        """The same of what their receivers told."""
        topology = self._world.topology
        found: dict[int, list[tuple[int, int]]] = {}
        for process, nodes in self._homes.items():
            ledgers = [account.received for account in self._lives[process].accounts]
            told = [ledger for ledger in ledgers if ledger is not None]
            if len(told) == len(ledgers):
                for node in nodes:
                    for link in topology.incoming(node):
                        found[link.number] = [ledger.received[link.number] for ledger in told]
        return found

    def _give_up(self, missing: set[str]) -> None:
        for node in sorted(missing):
            self._bury(node, f"alive, but did not stop within {STOP_WAIT_S:.0f} s")

    def _ledger(self) -> tuple[LedgerLine, ...]:
        """A line for each link of which both ends have told."""
        sent, received = self._sent(), self._received()
        return tuple(
            self._line(link, sent[link.number], received[link.number])
            for link in self._world.topology.links
            if link.number in sent and link.number in received
        )

    def _line(self, link: Link, sent: list[Ledger], received: list[tuple[int, int]]) -> LedgerLine:
        """What did not reach the role in a life that a fault ended was lost with it."""
        totals = [sum(counts) for counts in zip(*(each.sent[link.number] for each in sent), strict=True)]
        died_with = 0
        last = len(received) - 1 if self._is_present[link.target] else len(received)
        for life, (delivered, _) in enumerate(received[:last]):
            died_with += sum(each.carried[link.number].get(life, 0) for each in sent) - delivered
        under_way = received[-1][1] if last < len(received) else 0
        return ledger_line(link, totals, sum(delivered for delivered, _ in received), under_way, died_with)

    @cached_property
    def _is_present(self) -> dict[str, bool]:
        """Of each node, at the end: whether its process lives."""
        return {node: not self._lives[name].is_dead for name, nodes in self._homes.items() for node in nodes}

    def _notes(self) -> tuple[str, ...]:
        silent = len(self._world.topology.links) - len(self._ledger())
        return (f"{silent} links have no ledger, since one of their ends died",) if silent else ()

    # --- news -----------------------------------------------------------------------------------------------

    def _pump(self) -> None:
        """Wait a little for news, and take it in."""
        self._poller.poll(self._wait_ms())
        for message in self._control.receive():
            self._hear(message)
        ready, exits = self._processes.take_news()
        self._state.nursery_ready |= ready
        for end in exits:
            self._on_exit(end)

    def _wait_ms(self) -> int:
        """Until something is to be done at its instant, or for a look."""
        now_s = self._now_s()
        due = [
            at_s
            for life in self._lives.values()
            if life.outages
            for at_s in [life.born_at_s(now_s) - BIRTH_LEAD_S if life.is_dead else life.outages[0].until_s]
            if now_s < at_s < math.inf
        ]
        return min([LOOK_MS, *(math.ceil((at_s - now_s) * 1000) for at_s in due)])

    def _hear(self, message: Control) -> None:
        state = self._state
        match message:
            case Ready():
                state.endpoints[message.node] = message.endpoint
                if self._lives[message.node].number:
                    self._introduce(message.node)
            case Changed():
                self._by_hand.hear(message)
            case Dying():
                self._lives[message.node].is_dying = True
                self._died_at_s[message.node] = message.at_s
            case Greeted():
                state.greeted.add(message.node)
            case Beat():
                state.beats[message.node] = message
                if not message.idle:
                    state.idle_from_s.pop(message.node, None)
                else:
                    state.idle_from_s.setdefault(message.node, message.at_s)
            case Ledger():
                self._hear_ledger(message)
            case Closed():
                state.closed.add(message.node)
            case _:
                raise RunError(f"a node said {message}, which only the launcher says")

    def _on_exit(self, end: Exit) -> None:
        """A node that was told to stop may end; any other end is a death. With the nursery all end.

        Raises:
            PolicyError: it ended for a mistake of a user's policy, which is not the run's to survive.
        """
        if end.node == NURSERY:
            if NURSERY not in self._state.ended:
                self._bury(NURSERY, end.how)
            for node in sorted(self._processes.alive.keys() - self._state.ended):
                self._bury(node, f"killed when the nursery ended with {end.how}")
        elif end.code == POLICY_FAILED:
            raise PolicyError(self._processes.tail(end.node).rpartition("\n")[2])
        elif end.code == -signal.SIGKILL and self._is_settled(end.node):
            self._bear(end.node)
        elif end.code == 0 and self._is_stopping:
            self._state.ended.add(end.node)  # what it said last may still be on its way to us
        else:
            self._bury(end.node, end.how)

    def _is_settled(self, name: str) -> bool:
        """Whether a fault killed it: then its last words are here, or on their way."""
        until_s = time.monotonic() + LAST_WORDS_S
        life = self._lives[name]
        while (
            (life.is_dying or life.outages) and life.account.received is None and time.monotonic() < until_s
        ):
            self._control.socket.poll(LOOK_MS)
            for message in self._control.receive():
                self._hear(message)
        return life.is_dying and life.account.received is not None

    def _bury(self, node: str, how: str) -> None:
        self._state.ended.add(node)
        self._state.dead.add(node)
        self._control.forget(node)
        self._state.deaths.append(Death(node, how, max(0.0, self._now_s()), self._processes.tail(node)))

    def _tell_all(self, message: Control) -> None:
        for node in self._present() - self._state.ended:
            self._control.send(node, message)
