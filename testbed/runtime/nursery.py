"""The process from which all nodes of a run are forked, so that each starts in milliseconds.

It has imported and built what nodes need, and opens neither a thread nor a ZeroMQ context, which a fork would not
survive. The launcher talks to it over a socket of whole packets on its standard input, each a msgpack array:

    launcher -> nursery   ["begin", orders]   ["spawn", [[node, how often it was spawned before], ...]]
    nursery -> launcher   ["ready"]   ["spawned", [[node, pid], ...]]   ["exited", node, pid, exit code or -signal]

A node may be spawned again once its process has ended. When the launcher closes the socket, or dies, the nursery
kills its own children and ends; and they die with it, however it dies.
"""

from __future__ import annotations

import gc
import os
import resource
import select
import signal
import socket
import sys
import traceback
from importlib import import_module
from pathlib import Path
from typing import Any

import msgpack

from testbed.errors import PolicyError, RunError
from testbed.record.run_folder import ArmFolder
from testbed.record.split_file import load_split
from testbed.roles.build import World
from testbed.runtime.live import RoleFactory
from testbed.runtime.node import NodeProcess, Orders
from testbed.runtime.parenthood import ask_for_short_turns, die_with_parent, end_timer_slack, set_process_name
from testbed.scenario.load import load_scenario
from testbed.scenario.process_map import process_map
from testbed.scenario.topology import build_topology
from testbed.traffic.plan import build_plan

MAX_PACKET_BYTES = 1 << 16
POLICY_FAILED = 65  # exit status of a node whose user's policy made a mistake; EX_DATAERR of sysexits.h


class Nursery:
    """Forks nodes on command, and reports their ends."""

    def __init__(self, launcher: socket.socket) -> None:
        """Args:
        launcher: packets from and to the launcher.
        """
        self._launcher = launcher
        self._children: dict[int, str] = {}
        # the signal only has to wake the loop, which then looks at all children
        self._wake_read, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(self._wake_write)

    def tell(self, *words: Any) -> None:
        """Send a packet to the launcher."""
        self._launcher.send(msgpack.packb(words))

    def hear(self) -> list[Any] | None:
        """The next packet of the launcher; None when it has closed the socket."""
        data = self._launcher.recv(MAX_PACKET_BYTES)
        words: list[Any] | None = msgpack.unpackb(data) if data else None
        return words

    def serve(self) -> tuple[str, int] | None:
        """Fork and report until the launcher is gone: then None. Returns the name of its node, and its life, in each child."""
        poll = select.poll()
        poll.register(self._launcher, select.POLLIN)
        poll.register(self._wake_read, select.POLLIN)
        while True:
            ready = {descriptor for descriptor, _ in poll.poll()}
            if self._wake_read in ready:
                os.read(self._wake_read, 4096)
                self._report_ends()
            if self._launcher.fileno() not in ready:
                continue
            words = self.hear()
            if words is None:
                self._kill_all()
                return None
            spawned = []
            for node, life in words[1]:
                pid = self._spawn(node)
                if pid == 0:
                    return node, life
                spawned.append((node, pid))
            self.tell("spawned", spawned)

    def _spawn(self, node: str) -> int:
        """Fork; returns the pid of the child, and 0 in it."""
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)  # its handler of SIGCHLD does nothing by itself
            os.close(self._wake_read)
            os.close(self._wake_write)
            self._launcher.close()
            die_with_parent(parent)
        else:
            self._children[pid] = node
        return pid

    def _report_ends(self) -> None:
        for pid, node in list(self._children.items()):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                del self._children[pid]
                self.tell("exited", node, pid, os.waitstatus_to_exitcode(status))

    def _kill_all(self) -> None:
        for pid in self._children:
            os.kill(pid, signal.SIGKILL)  # ours, and not yet waited for: the pid is still its own
        for pid in self._children:
            os.waitpid(pid, 0)


def main() -> None:
    """Be the nursery, and in each child its node. Arguments: pid of the launcher."""
    die_with_parent(int(sys.argv[1]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the launcher, which ends the run in order
    set_process_name("nursery")
    _allow_descriptors()
    nursery = Nursery(socket.socket(fileno=os.dup(sys.stdin.fileno())))
    words = nursery.hear()
    if words is None:
        return
    begin = words[1]
    orders = Orders(
        ArmFolder(Path(begin["folder"])), Path(begin["sockets"]), begin["control"], begin["header"]
    )
    world = _world(orders.folder)
    processes = process_map(world.scenario, world.topology)
    make_role = _role_factory(begin["factory"])
    end_timer_slack()
    ask_for_short_turns()
    _share_memory()
    nursery.tell("ready")
    born = nursery.serve()
    if born is not None:
        _be(*born, orders, world, processes, make_role)


def _share_memory() -> None:
    """What all nodes share is not to be touched by collections of theirs, so that its pages stay shared."""
    gc.collect()
    gc.freeze()
    gc.disable()  # in the nodes as well, which collect once before they begin


def _be(
    name: str,
    life: int,
    orders: Orders,
    world: World,
    processes: dict[str, tuple[str, ...]],
    make_role: RoleFactory,
) -> None:
    """Live as this process. An exception leaves its traceback in the node's stderr file, and exit status 1.

    A mistake of the user's policy leaves its message alone, and an exit status that the launcher knows it by.
    """
    _redirect(orders.folder.stderr(name))
    set_process_name(name)
    code = 1
    try:
        NodeProcess(name, orders, world, processes, life).live(make_role)
        code = 0
    except PolicyError as error:
        print(error, file=sys.stderr)
        sys.stderr.flush()
        os._exit(POLICY_FAILED)
    finally:
        # the way out by the interpreter would take apart all that it was forked with, and wait for open sockets
        if code:
            traceback.print_exc()
        sys.stderr.flush()
        os._exit(code)


def _redirect(path: Path) -> None:
    """Standard output and error to a file: a pipe that nobody drains would stop the node."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    null = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((null, 0), (file, 1), (file, 2)):
        os.dup2(source, target)
    os.close(file)
    os.close(null)


def _world(folder: ArmFolder) -> World:
    (scenario,) = load_scenario(folder.scenario).arms.values()
    scaled = scenario.scaled()
    topology = build_topology(scaled)
    topology.outgoing("")  # sorts the links by their ends, once for all nodes
    return World(scaled, topology, build_plan(scaled), load_split(folder))


def _role_factory(import_path: str) -> RoleFactory:
    module, _, name = import_path.partition(":")
    factory: RoleFactory = getattr(import_module(module), name)
    return factory


def _allow_descriptors() -> None:
    """As many open files as the host permits: a node has up to three for each peer."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


if __name__ == "__main__":
    try:
        main()
    except RunError as error:
        sys.exit(f"{error}")
