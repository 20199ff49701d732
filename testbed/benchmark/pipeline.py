"""A bare pipeline of pyzmq and msgpack, to compare with: the processes and hops of the throughput scenario, nothing else.

One root, two leaves, four servers; a frame a message, packed and unpacked at every hop, each frame as the live engine would
send the message alone; the root keeps 256 under way. No delay, no policy, no records, no clock.
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
from testbed.roles.messages import Outcome, Reply, Request
from testbed.runtime.wire import pack_frame

WINDOW = 256
LEAVES = ("leaf-1", "leaf-2")
SERVERS = {"leaf-1": ("server-1", "server-2"), "leaf-2": ("server-3", "server-4")}
LINK, RELEASE_S = 12, 3.141592  # any: a frame has the number of the link and the instant of release
WAIT_S = 30.0
LOOK_S = 0.05  # between two looks at the processes


def _plain(message: Request | Reply) -> Any:
    """What a frame with this message is to msgpack."""
    return msgpack.unpackb(pack_frame([(LINK, type(message), [RELEASE_S], [message])]), use_list=False)


REQUEST = _plain(Request(123_456, 0, 0, 64, 8))
REPLY = _plain(Reply(123_456, 0, int(Outcome.COMPLETED), 0.012345, 12, 34, 768, 272))


def requests_per_s(seconds: float) -> float:
    """Requests a second that come back to the root.

    Raises:
        RunError: a process of the pipeline failed, or it did not end.
    """
    with TemporaryDirectory(prefix="testbed-") as place:
        folder = Path(place)
        names = ("root", *LEAVES, *(name for each in SERVERS.values() for name in each))
        words = [sys.executable, "-m", "testbed.benchmark.pipeline", place, str(seconds)]
        started: dict[str, subprocess.Popen[bytes]] = {}
        try:
            for name in names:
                with (folder / f"{name}.out").open("wb") as out, (folder / f"{name}.err").open("wb") as err:
                    started[name] = subprocess.Popen([*words, name], stdout=out, stderr=err)
            _await_end(started, folder, time.monotonic() + seconds + WAIT_S)
            return float((folder / "root.out").read_text())
        finally:
            for each in started.values():
                each.kill()
                each.wait()


def _await_end(started: dict[str, subprocess.Popen[bytes]], folder: Path, until_s: float) -> None:
    """Until the root has ended well; none of the others does by itself."""
    while (ended := started["root"].poll()) != 0:
        for name, each in started.items():
            if each.poll() is not None and (name != "root" or ended is not None):
                said = (folder / f"{name}.err").read_text().strip().splitlines()
                last = f"; its last line: {said[-1]}" if said else ""
                raise RunError(f"the bare pipeline failed: {name} ended with status {each.returncode}{last}")
        if time.monotonic() > until_s:
            raise RunError("the bare pipeline failed: it did not end")
        time.sleep(LOOK_S)


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
        if message[0][1] == REPLY[0][1]:  # the tag of the kind
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
