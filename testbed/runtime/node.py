"""The life of one process of a live run, from its fork to its end.

It says that it is ready and where it receives; learns where the others do; greets every peer that it sends to, and
has heard from all that send to it; begins at the common instant; beats while it runs; and when it is told to stop,
says what it sent, takes what is still on its way, says what it received, and closes its log with an end mark.

A fault may end it earlier: then it tells the same and kills itself. A process that is started anew under its name
greets those that live, and begins in the middle of the run.
"""

from __future__ import annotations

import math
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from testbed.errors import RunError
from testbed.record.log import LogWriter
from testbed.record.run_folder import ArmFolder, file_name, life_suffix
from testbed.roles.build import World
from testbed.runtime.collector import stop_collector
from testbed.runtime.control import ControlClient
from testbed.runtime.live import MOST_CHUNKS, ROWS_PER_CHUNK, SEND_S, Host, RoleFactory
from testbed.runtime.ordered import Ordered
from testbed.runtime.sockets import DEAD_LINGER_MS, Peer, Sockets, bind_address, open_context
from testbed.runtime.timer_calibration import time_waits, timer_row
from testbed.runtime.wire import (
    GREETING,
    Beat,
    Change,
    Changed,
    Closed,
    Control,
    Directory,
    Dying,
    Greeted,
    Hello,
    Ready,
    Settle,
    Start,
    Stop,
    pack_control,
    unpack_control,
)
from testbed.scenario.fault_words import PROCESS_KEYS
from testbed.scenario.process_map import homes

SETTLE_S = 2.0  # longest wait for messages that were sent before all had stopped
GREET_S = 1.0  # longest wait of one that was started anew for the greetings of those that live
LOOK_S = 1.0  # between two looks whether the parent still lives, while waiting for the launcher

Word = TypeVar("Word", bound=Control)


@dataclass(frozen=True)
class Orders:
    """What all processes of a run are told before they are forked.

    Attributes:
        folder: of the arm.
        sockets: folder of the sockets, where the transport is ipc.
        control: endpoint of the launcher.
        header: what every log says of the run.
    """

    folder: ArmFolder
    sockets: Path
    control: str
    header: dict[str, Any]


class NodeProcess:
    """One process, with one node or several."""

    def __init__(
        self,
        name: str,
        orders: Orders,
        world: World,
        processes: dict[str, tuple[str, ...]],
        life: int = 0,
    ) -> None:
        """Open the logs and the sockets; the fork is behind us.

        Args:
            name: of this process.
            orders: for all.
            world: of the run.
            processes: the nodes of every process.
            life: how often this one was started before.

        Raises:
            RunError: a file or a socket cannot be opened.
        """
        self._name = name
        self._life = life
        self._parent = os.getppid()
        self._words: list[Control] = []
        self._homes = homes(processes)
        self._context = open_context(len(processes))
        self._control = ControlClient(self._context, name, orders.control)
        address = bind_address(
            world.scenario.live.transport, orders.sockets, file_name(name) + life_suffix(life)
        )
        self._sockets = Sockets(self._context, name, address, self._control.socket)
        self._to_greet: dict[str, Peer] = {}  # by their processes
        self._to_hear: set[str] = set()  # the processes that are to greet us
        self._heard: set[str] = set()  # those that have
        self._is_greeted = False
        self._host = Host(name, world, self._sockets, self._on_control, life=life, die=self._die)
        self._logs: list[LogWriter] = []
        for node in processes[name]:
            header = {**orders.header, "engine": "live", "node": node}
            self._logs.append(
                LogWriter(orders.folder.log(node, life), header, ROWS_PER_CHUNK, most_chunks=MOST_CHUNKS)
            )
            self._host.add(node, self._logs[-1])

    def live(self, make_role: RoleFactory) -> None:
        """Live until the run ends.

        Raises:
            RunError: the launcher is gone, or a file or a socket failed.
            Exception: whatever a role raised.
        """
        self._control.send(Ready(self._name, self._sockets.endpoint, os.getpid()))
        self._connect(self._await(Directory))
        self._host.build(make_role)  # meanwhile the paths come up
        self._greet()
        self._control.send(Greeted(self._name))
        start = self._await(Start)
        stop_collector()
        if not self._life:  # one that is started anew has no time for it
            late_s = time_waits(self._sockets.sleep_until, start.at_monotonic_s)
            self._logs[0].append("timers", timer_row(self._name, late_s))
        self._host.run(start, self._beat, self._homes)
        self._end()

    def _connect(self, directory: Directory) -> None:
        """Open the paths to all peers that live."""
        targets, senders = self._host.peers()
        for target in sorted(targets):
            home = self._homes[target]
            if home in directory.endpoints:
                self._to_greet[home] = self._sockets.connect(target, directory.endpoints[home])
            else:
                self._sockets.expect(target)
        self._to_hear = {self._homes[sender] for sender in senders} & directory.endpoints.keys()

    def _greet(self) -> None:
        """Greet every peer, and hear from all that greet us: then each path is known to carry messages."""
        for peer in self._to_greet.values():
            self._sockets.send(peer, pack_control(Hello(self._name)))
        until_s = time.monotonic() + GREET_S if self._life else math.inf  # in a run some may be stopped
        while (not self._to_hear <= self._heard or self._sockets.waiting) and time.monotonic() < until_s:
            self._wait()
            self._sockets.retry()
        self._is_greeted = True

    def _die(self) -> None:
        """A fault kills this process: settle the accounts, so that nothing that it knew is lost with it."""
        host, control = self._host, self._control
        control.send(Dying(self._name, host.now_s()))
        control.send(host.sent_ledger())
        control.send(host.received_ledger())
        until_s = time.monotonic() + SEND_S
        while self._sockets.waiting and time.monotonic() < until_s:
            self._sockets.retry()
        host.close()
        self._sockets.close(DEAD_LINGER_MS)
        control.close()
        self._context.term()  # waits until all is sent
        os.kill(os.getpid(), signal.SIGKILL)

    def _end(self) -> None:
        host, control = self._host, self._control
        host.stop()
        control.send(host.sent_ledger())
        host.settle(self._await(Settle).expected, time.monotonic() + SETTLE_S)
        control.send(host.received_ledger())
        host.close()
        control.send(Closed(self._name))
        self._sockets.close()
        control.close()
        self._context.term()

    def _beat(self, beat: Beat) -> None:
        self._check_parent()
        self._control.offer(beat)
        self._on_control()  # sending may have taken in the news that the next wait would have waited for

    def _on_control(self) -> None:
        """While the loop runs: the end is news, a peer that was started anew, and what is ordered by hand."""
        words = self._words + self._control.receive()
        self._words = []
        for word in words:  # in their order: a peer that lives again has died before
            match word:
                case Stop():
                    self._host.end()
                case Directory():
                    self._greet_anew(word)
                case Change():
                    self._on_order(word)
                case _:
                    self._words.append(word)

    def _on_order(self, order: Change) -> None:
        """What is done is said, or first said where nothing can be said afterwards."""
        kind = order.kind
        ordered = Ordered(order.number, order.at_s, order.until_s, order.words, order.first_id)
        done = Changed(self._name, order.kind, order.number)
        if kind == "brace":
            self._host.forget_lookahead()
        elif kind == "apply" and any(order.words["set"].get(key) for key in PROCESS_KEYS):
            self._control.send(done)
            self._host.make_ordered(ordered, healed=False)
            return
        else:
            self._host.make_ordered(ordered, healed=kind == "heal")
        self._control.send(done)

    def _greet_anew(self, directory: Directory) -> None:
        targets, _ = self._host.peers()
        for target in sorted(targets):
            endpoint = directory.endpoints.get(self._homes[target])
            if endpoint is not None:
                peer = self._sockets.reconnect(target, endpoint)
                self._sockets.send(peer, pack_control(Hello(self._name)))

    def _await(self, kind: type[Word]) -> Word:
        """The next word of this kind from the launcher; others wait for their turn."""
        while True:
            self._words += self._control.receive()
            for word in self._words:
                if isinstance(word, kind):
                    self._words.remove(word)
                    return word
            self._wait()

    def _wait(self) -> None:
        """For the launcher or a peer; what they say is taken in, or it would end every wait at once."""
        self._check_parent()
        self._sockets.wait(time.monotonic() + LOOK_S)
        if self._sockets.control_readable:
            self._words += self._control.receive()
        if self._sockets.frames_readable:
            for frame in self._sockets.receive():
                self._take(frame)

    def _take(self, frame: bytes) -> None:
        """Until all have greeted, peers send nothing but their greetings."""
        if self._is_greeted or (self._life and not frame.startswith(GREETING)):
            self._host.take(frame)
            return
        greeting = unpack_control(frame)
        if not isinstance(greeting, Hello):
            raise RunError(f"{self._name}: {greeting} came before its sender's greeting")
        self._heard.add(greeting.node)

    def _check_parent(self) -> None:
        """End with the parent. The kernel kills us when it dies; this is for the case that it could not."""
        if os.getppid() != self._parent:
            raise RunError(f"{self._name}: its parent process is gone")
