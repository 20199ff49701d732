"""The launcher of a live run: starts its processes, has them begin together, ends the run, and sums it up.

The run goes through phases, each of which waits for all nodes: ready, greeted, running, stopping (what was sent; what
was received; closed). A process whose pid lives is late at worst, never dead: nobody is declared dead for want of
beats. A process that ends before it is told to ends the run, and the others keep their data.

Ctrl-C is taken by a handler that only counts, so that it cannot interrupt anything half done: the first ends a run
in order, keeping the data; the second, or one before the run has begun, kills all processes.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import FrameType
from typing import Any

import zmq

from testbed import __version__
from testbed.errors import InterruptError, PolicyError, RunError
from testbed.record.log import log_header
from testbed.record.manifest import scenario_hash
from testbed.record.outcome import Death, LedgerLine, RunOutcome, carried, ledger_line
from testbed.record.run_folder import ArmFolder
from testbed.roles.build import World
from testbed.runtime.control import ControlServer
from testbed.runtime.node import Orders
from testbed.runtime.nursery import POLICY_FAILED
from testbed.runtime.processes import NURSERY, Exit, Processes
from testbed.runtime.progress import NodeProgress, Progress
from testbed.runtime.run_lock import CONTROL, lock, sockets_folder
from testbed.runtime.sockets import bind_address, open_context
from testbed.runtime.wire import (
    Beat,
    Closed,
    Control,
    Directory,
    Greeted,
    Ledger,
    Ready,
    Settle,
    Start,
    Stop,
)
from testbed.scenario.fault_plan import fault_plan
from testbed.scenario.process_map import process_map
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import Topology
from testbed.traffic.plan import Plan

BUILD_ROLE = "testbed.roles.build:build_role"
START_WAIT_S = 30.0  # until all are ready and greeted; a hundred processes take a second
STOP_WAIT_S = 30.0  # until all have closed their logs; they settle for at most 2 s
LEAD_S = 0.2  # from the announcement of the start until it: every process is to hear of it before
LEAD_PER_NODE_S = 0.005  # more of it for each process that has to wake up to hear
PROGRESS_S = 0.25  # between two calls of the progress display
LOOK_MS = 50  # longest wait of the launcher: so soon it notices Ctrl-C and a nursery that has died


@dataclass
class _State:
    """What the launcher has heard from its nodes."""

    nursery_ready: bool = False
    endpoints: dict[str, str] = field(default_factory=dict)
    greeted: set[str] = field(default_factory=set)
    beats: dict[str, Beat] = field(default_factory=dict)
    idle_from_s: dict[str, float] = field(default_factory=dict)  # run time since when all beats said idle
    sent: dict[str, Ledger] = field(default_factory=dict)
    received: dict[str, Ledger] = field(default_factory=dict)
    closed: set[str] = field(default_factory=set)
    ended: set[str] = field(default_factory=set)
    dead: set[str] = field(default_factory=set)  # of these, the unplanned
    deaths: list[Death] = field(default_factory=list)


class _Interrupts:
    """How often Ctrl-C was pressed."""

    def __init__(self) -> None:
        self.count = 0

    def take(self, number: int, frame: FrameType | None) -> None:
        """The signal's handler."""
        self.count += 1


@contextmanager
def _counted_interrupts() -> Iterator[_Interrupts]:
    interrupts = _Interrupts()
    previous = signal.signal(signal.SIGINT, interrupts.take)
    try:
        yield interrupts
    finally:
        signal.signal(signal.SIGINT, previous)


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
    if any(fault.words.kill or fault.words.pause for fault in fault_plan(scenario, topology)):
        raise RunError("kill and pause are faults of the virtual engine alone")
    folder.make()
    names = list(process_map(scenario, topology))
    with (
        _counted_interrupts() as interrupts,
        lock(folder),
        sockets_folder(folder, names) as place,
        _control_server(len(names), bind_address(scenario.live.transport, place, CONTROL)) as control,
        closing(Processes(folder)) as processes,
    ):
        orders = Orders(folder, place, control.endpoint, _header(folder, scenario))
        launcher = _Launcher(folder, World(scenario, topology, plan), interrupts, control, processes)
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
        interrupts: _Interrupts,
        control: ControlServer,
        processes: Processes,
    ) -> None:
        self._folder = folder
        self._world = world
        self._homes = process_map(world.scenario, world.topology)
        self._names = set(self._homes)  # of the processes
        self._interrupts = interrupts
        self._control = control
        self._processes = processes
        self._state = _State()
        self._origin_s = 0.0
        self._is_stopping = False
        self._poller = zmq.Poller()
        self._poller.register(control.socket, zmq.POLLIN)
        self._poller.register(processes.socket, zmq.POLLIN)

    def run(self, orders: Orders, factory: str, on_progress: Callable[[Progress], None] | None) -> RunOutcome:
        """All phases."""
        start_s = self._start(orders, factory)
        lead_s = LEAD_S + LEAD_PER_NODE_S * len(self._names)
        self._origin_s = time.monotonic() + lead_s
        self._tell_all(Start(self._origin_s))
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
            pass_spacing_s=scenario.live.pass_spacing,
            notes=self._notes(),
        )

    # --- start ----------------------------------------------------------------------------------------------

    def _start(self, orders: Orders, factory: str) -> float:
        """Until all paths are greeted; returns how long that took from the first fork, seconds."""
        state = self._state
        until_s = time.monotonic() + START_WAIT_S
        self._processes.begin(orders, factory)
        self._await_start(until_s, "be ready to fork", lambda: set() if state.nursery_ready else {NURSERY})
        began_s = time.monotonic()
        for name in self._homes:
            self._processes.spawn(name)
        self._await_start(until_s, "say that they are ready", lambda: self._names - state.endpoints.keys())
        self._tell_all(Directory(state.endpoints))
        self._await_start(until_s, "greet all their peers", lambda: self._names - state.greeted)
        return time.monotonic() - began_s

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

    def _is_idle(self) -> bool:
        """All are idle, and have said so again after the last root did: nothing it had sent was on its way then."""
        idle = self._state.idle_from_s
        if idle.keys() != self._names:
            return False
        with_roots = {name for name in self._names if self._has_root(name)}
        last_s = max(idle[name] for name in with_roots)
        return all(self._state.beats[name].at_s > last_s for name in self._names - with_roots)

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
        self._is_stopping = True
        self._tell_all(Stop(at_s))
        for said in (state.sent, state.received, state.closed, state.ended):
            while missing := self._names - set(said) - state.dead:
                self._pump()
                if self._interrupts.count > max(1, interrupts):
                    raise InterruptError("stopped again before all logs were closed")
                if time.monotonic() > until_s:
                    self._give_up(missing)
            if said is state.sent:
                self._settle()

    def _settle(self) -> None:
        """Tell each node how many messages it is to have received on each link."""
        expected_of = {
            number: carried(counts)
            for each in self._state.sent.values()
            for number, counts in each.sent.items()
        }
        topology = self._world.topology
        for name in self._names - self._state.dead:
            expected = {
                link.number: expected_of[link.number]
                for node in self._homes[name]
                for link in topology.incoming(node)
                if link.number in expected_of
            }
            self._control.send(name, Settle(expected))

    def _give_up(self, missing: set[str]) -> None:
        for node in sorted(missing):
            self._bury(node, f"alive, but did not stop within {STOP_WAIT_S:.0f} s")

    def _ledger(self) -> tuple[LedgerLine, ...]:
        """A line for each link of which both ends have told."""
        sent = {number: each for ledger in self._state.sent.values() for number, each in ledger.sent.items()}
        received = {
            number: each
            for ledger in self._state.received.values()
            for number, each in ledger.received.items()
        }
        return tuple(
            ledger_line(link, sent[link.number], *received[link.number])
            for link in self._world.topology.links
            if link.number in sent and link.number in received
        )

    def _notes(self) -> tuple[str, ...]:
        silent = len(self._world.topology.links) - len(self._ledger())
        return (f"{silent} links have no ledger, since one of their ends died",) if silent else ()

    # --- news -----------------------------------------------------------------------------------------------

    def _pump(self) -> None:
        """Wait a little for news, and take it in."""
        self._poller.poll(LOOK_MS)
        for message in self._control.receive():
            self._hear(message)
        ready, exits = self._processes.take_news()
        self._state.nursery_ready |= ready
        for end in exits:
            self._on_exit(end)

    def _hear(self, message: Control) -> None:
        state = self._state
        match message:
            case Ready():
                state.endpoints[message.node] = message.endpoint
            case Greeted():
                state.greeted.add(message.node)
            case Beat():
                state.beats[message.node] = message
                if not message.idle:
                    state.idle_from_s.pop(message.node, None)
                else:
                    state.idle_from_s.setdefault(message.node, message.at_s)
            case Ledger():
                (state.received if message.node in state.sent else state.sent)[message.node] = message
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
        elif end.code == 0 and self._is_stopping:
            self._state.ended.add(end.node)  # what it said last may still be on its way to us
        else:
            self._bury(end.node, end.how)

    def _bury(self, node: str, how: str) -> None:
        self._state.ended.add(node)
        self._state.dead.add(node)
        self._control.forget(node)
        self._state.deaths.append(Death(node, how, max(0.0, self._now_s()), self._processes.tail(node)))

    def _tell_all(self, message: Control) -> None:
        for node in self._names - self._state.ended:
            self._control.send(node, message)
