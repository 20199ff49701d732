"""The launcher's hold on the processes of a run: starts the nursery, has nodes forked, hears of ends, ends them all."""

from __future__ import annotations

import json
import math
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any, NamedTuple

import msgpack

from testbed.errors import RunError
from testbed.record.run_folder import ArmFolder
from testbed.record.whole_file import write_whole
from testbed.runtime.node import Orders
from testbed.runtime.nursery import MAX_PACKET_BYTES
from testbed.runtime.parenthood import ask_for_death, start_ticks

PROCESSES_FILE = "processes.json"
TAIL_LINES = 12  # of a dead process's standard error: a traceback's end
NURSERY = "nursery"  # its name where nodes have theirs
TERM_WAIT_S = 1.0  # from asking to end until killing
BATCH = 16  # processes that are forked before the nursery says so
SAVE_S = 0.05  # between two times of writing down who is who, while more and more are
# numpy's linear algebra starts a thread per core when it is imported, and none of them would survive a fork
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class Exit(NamedTuple):
    """A process has ended: its exit code, or the number of the signal that killed it, below 0."""

    node: str
    pid: int
    code: int

    @property
    def how(self) -> str:
        """In words: 'exit status 1' or 'signal 9'."""
        return f"exit status {self.code}" if self.code >= 0 else f"signal {-self.code}"


class Processes:
    """The processes of one run.

    Attributes:
        alive: node -> pid.
        socket: readable when there is news; see `take_news`.
    """

    def __init__(self, folder: ArmFolder, beside: Mapping[str, int]) -> None:
        """Start the nursery, in a session of its own, so that a terminal's Ctrl-C is for the launcher alone.

        Args:
            folder: of the arm.
            beside: pids of processes that others have started for this run, to be noted with ours.

        Raises:
            RunError: it cannot be started.
        """
        self._folder = folder
        self._known: dict[str, dict[str, Any]] = {}
        self._beside = {name: {"pid": pid, "start_ticks": start_ticks(pid)} for name, pid in beside.items()}
        self._is_saved = False
        self._saved_at_s = -math.inf
        self.alive: dict[str, int] = {}
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        path = os.pathsep.join(each or os.getcwd() for each in sys.path)
        try:
            with theirs, folder.stderr(NURSERY).open("ab") as stderr:
                self._nursery = subprocess.Popen(
                    [sys.executable, "-m", "testbed.runtime.nursery", str(os.getpid())],
                    stdin=theirs.fileno(), stdout=stderr, stderr=stderr, start_new_session=True,
                    preexec_fn=ask_for_death,  # before its imports, which may take seconds
                    env={**os.environ, **ONE_THREAD, "PYTHONPATH": path},
                )  # fmt: skip
        except OSError as error:
            self.socket.close()
            raise RunError(f"could not start the nursery: {error}") from error
        self._note(NURSERY, self._nursery.pid)
        self._save()

    def begin(self, orders: Orders, factory: str) -> None:
        """Tell the nursery what all nodes need to know; it says `ready` once it can fork.

        Args:
            orders: for the nodes.
            factory: import path of the factory of roles.
        """
        words = {
            **asdict(orders),
            "folder": str(orders.folder.path),
            "sockets": str(orders.sockets),
            "factory": factory,
        }
        self._tell("begin", words)

    def spawn(self, nodes: Sequence[str], life: int = 0) -> None:
        """Have nodes forked, so often after the first time."""
        for batch in range(0, len(nodes), BATCH):
            self._tell("spawn", [(node, life) for node in nodes[batch : batch + BATCH]])

    def wake(self, node: str) -> None:
        """Let a process go on that has stopped itself; harmless where it has not."""
        pid = self.alive.get(node)
        if pid is not None and start_ticks(pid) == self._known[node]["start_ticks"]:
            with suppress(ProcessLookupError):  # it has ended since
                os.kill(pid, signal.SIGCONT)

    def take_news(self) -> tuple[bool, list[Exit]]:
        """What the nursery says, without waiting: whether it became ready, and which processes have ended.

        The nursery's own end is news too, and the end of all that it has forked.
        """
        ready, exits = False, []
        while words := self._hear():
            if words[0] == "ready":
                ready = True
            elif words[0] == "spawned":
                for node, pid in words[1]:
                    self.alive[node] = pid
                    self._note(node, pid)
            elif words[0] == "exited":
                self.alive.pop(words[1], None)
                exits.append(Exit(*words[1:]))
        # looked at without being waited for: until then no other process can get its pid, or its group's
        end = os.waitid(os.P_PID, self._nursery.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if end is not None:
            code = end.si_status if end.si_code == os.CLD_EXITED else -end.si_status
            exits.append(Exit(NURSERY, self._nursery.pid, code))
        if time.monotonic() >= self._saved_at_s + SAVE_S:  # the launcher comes by again soon
            self._save()
        return ready, exits

    def close(self) -> None:
        """Leave none alive: wake the stopped, ask all to end, and kill who has not. Only our own group is touched."""
        if self._nursery.returncode is not None:
            return
        for number in (signal.SIGCONT, signal.SIGTERM):
            os.killpg(self._nursery.pid, number)
        self._wait_for_ends(time.monotonic() + TERM_WAIT_S)
        os.killpg(self._nursery.pid, signal.SIGKILL)
        self._wait_for_ends(time.monotonic() + TERM_WAIT_S)
        self._nursery.wait()
        self.socket.close()

    def tail(self, node: str) -> str:
        """The last lines that a process wrote to its standard error."""
        try:
            lines = self._folder.stderr(node).read_text(errors="replace").splitlines()
        except FileNotFoundError:
            return ""
        return "\n".join(lines[-TAIL_LINES:])

    def _wait_for_ends(self, until_s: float) -> None:
        """Until no process of ours lives."""
        while time.monotonic() < until_s and any(
            start_ticks(each["pid"]) == each["start_ticks"]
            for each in self._known.values()
            if each["start_ticks"]
        ):
            time.sleep(0.005)

    def _note(self, node: str, pid: int) -> None:
        self._known[node] = {"pid": pid, "start_ticks": start_ticks(pid)}
        self._is_saved = False

    def _save(self) -> None:
        """Who is who, on file: whoever cleans up after us knows our processes from others."""
        if self._is_saved:
            return
        launcher = {"pid": os.getpid(), "start_ticks": start_ticks(os.getpid())}
        words = {"launcher": launcher, **self._beside, **self._known}
        write_whole(self._folder.path / PROCESSES_FILE, json.dumps(words, indent=1) + "\n")
        self._is_saved = True
        self._saved_at_s = time.monotonic()

    def _tell(self, *words: Any) -> None:
        try:
            self.socket.send(msgpack.packb(words))
        except OSError as error:
            raise RunError(f"the nursery does not listen: {error}\n{self.tail(NURSERY)}") from error

    def _hear(self) -> list[Any] | None:
        try:
            data = self.socket.recv(MAX_PACKET_BYTES, socket.MSG_DONTWAIT)
        except (BlockingIOError, ConnectionError):
            return None
        words: list[Any] | None = msgpack.unpackb(data) if data else None
        return words
