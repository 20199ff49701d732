"""A bare pipeline of pyzmq and msgpack, to compare with: the processes and hops of the throughput scenario, nothing else.

One root, two leaves, four servers; a frame a message, packed and unpacked at every hop, messages of the size of our
requests and replies; the root keeps 256 under way. No delay, no policy, no records, no clock.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgpack
import zmq

from testbed.errors import RunError

WINDOW = 256
LEAVES = ("leaf-1", "leaf-2")
SERVERS = {"leaf-1": ("server-1", "server-2"), "leaf-2": ("server-3", "server-4")}
REQUEST = (
    123_456,
    0,
    0,
    64,
    8,
    None,
)  # as large as ours: id, attempt, class, prompt and output tokens, prefix
REPLY = (123_456, 0, 0, 0.012345, 12, 34)
WAIT_S = 30.0


def requests_per_s(seconds: float) -> float:
    """Requests a second that come back to the root.

    Raises:
        RunError: a process of the pipeline failed.
    """
    with TemporaryDirectory(prefix="testbed-") as folder:
        names = ("root", *LEAVES, *(name for each in SERVERS.values() for name in each))
        words = [sys.executable, "-m", "testbed.benchmark.pipeline", folder, str(seconds)]
        started = {name: subprocess.Popen([*words, name], stdout=subprocess.PIPE) for name in names}
        try:
            said, _ = started["root"].communicate(timeout=seconds + WAIT_S)
            if started["root"].returncode != 0:
                raise RunError("the bare pipeline failed")
            return float(said)
        finally:
            for each in started.values():
                each.kill()
                each.wait()
                assert each.stdout is not None, "it was asked for"
                each.stdout.close()


class _Node:
    """One process: a PULL of its own, PUSHes to the others."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._context = zmq.Context()
        self._pull = self._context.socket(zmq.PULL)
        self._pull.bind(f"ipc://{folder / name}")

    def to(self, name: str) -> zmq.Socket[bytes]:
        socket = self._context.socket(zmq.PUSH)
        socket.connect(f"ipc://{self._folder / name}")
        return socket

    def receive(self) -> Any:
        return msgpack.unpackb(self._pull.recv(), use_list=False)


def _root(node: _Node, seconds: float) -> None:
    leaves = [node.to(name) for name in LEAVES]
    for number in range(WINDOW):
        leaves[number % 2].send(msgpack.packb(REQUEST))
    for _ in range(20 * WINDOW):  # warm
        node.receive()
        leaves[0 if _ % 2 else 1].send(msgpack.packb(REQUEST))
    count, began_s = 0, time.monotonic()
    while time.monotonic() - began_s < seconds:
        node.receive()
        count += 1
        leaves[count % 2].send(msgpack.packb(REQUEST))
    print(count / (time.monotonic() - began_s), flush=True)


def _leaf(node: _Node, servers: tuple[str, ...]) -> None:
    root, below = node.to("root"), [node.to(name) for name in servers]
    turn = 0
    while True:
        message = node.receive()
        if len(message) == len(REPLY) and isinstance(message[3], float):
            root.send(msgpack.packb(REPLY))
        else:
            turn = (turn + 1) % len(below)
            below[turn].send(msgpack.packb(message))


def _server(node: _Node, leaf: str) -> None:
    above = node.to(leaf)
    while True:
        node.receive()
        above.send(msgpack.packb(REPLY))


def main() -> None:
    """Be one process of the pipeline. Arguments: folder of the sockets, seconds, name."""
    folder, seconds, name = Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
    node = _Node(folder, name)
    if name == "root":
        _root(node, seconds)
    elif name in SERVERS:
        _leaf(node, SERVERS[name])
    else:
        _server(node, next(leaf for leaf, servers in SERVERS.items() if name in servers))


if __name__ == "__main__":
    main()
