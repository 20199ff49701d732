"""The sockets of one process: one PULL that all its peers send to, one PUSH to each of them.

ZeroMQ loses quietly where it is left to its defaults, so every option is said aloud:

- High-water marks are large, and a send that would exceed them is kept here, counted and retried: never dropped.
- `IMMEDIATE` queues nothing for a peer that is not connected; without it a PUSH swallows messages to nobody.
- Linger is finite: the default hangs the exit for ever when a peer has died. By the time the sockets close, the
  ledgers have been exchanged and nothing is left to send.
- `MAXMSGSIZE` refuses a frame that no peer of ours would send.

A busy process waits thousands of times a second, and the poller of ZeroMQ rounds to whole milliseconds besides, as
those of the kernel that Python offers do, all but `select`. So waiting goes by `select` on the sockets' own descriptors. The
process is to ask the kernel for no slack of its timers (see `parenthood.py`), else it wakes some 50 us later. A timer
descriptor beside an epoll is as precise, but an idle process then takes twice the time to go to sleep and wake up.
Such a descriptor only says that a socket has news, and stops saying so once the news is looked at, by whatever call.
Hence two rules: `receive` goes on until nothing is left; and whoever sends on the control socket, whose news that may
take in, reads it before the next wait.
"""

from __future__ import annotations

import select
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path

import zmq
from zmq import zmq_poll

from testbed.errors import RunError

QUEUED_FRAMES = 100_000  # high-water mark of each end; ten seconds of a frame a pass at the shortest spacing
DEAD_LINGER_MS = 100  # the same for a peer that is dead, or where the process itself is to die
LINGER_MS = 2_000  # longest time that closing waits for frames under way
MAX_FRAME_BYTES = 64 << 20  # a stalled peer's backlog travels as frames of one pass each, far below this
RETRY_S = 0.001  # between two attempts at frames that would have blocked
PATH_BYTES = 107  # longest path of a Unix socket on Linux, without its final zero

# As plain numbers: the library's enumerations cost more than the calls that take them.
_READ = int(zmq.POLLIN)
_AT_ONCE = int(zmq.DONTWAIT)
_NONE: tuple[int, ...] = ()


def open_context(peers: int) -> zmq.Context[zmq.Socket[bytes]]:
    """A context with room for the sockets to that many peers; never before a fork, which it would not survive."""
    context = zmq.Context(io_threads=1)
    context.set(zmq.MAX_SOCKETS, peers + 8)  # one PULL, one DEALER, and some spare
    return context


def set_options(socket: zmq.Socket[bytes]) -> None:
    """The options that all sockets of the testbed share; to be set before they bind or connect."""
    socket.set(zmq.SNDHWM, QUEUED_FRAMES)
    socket.set(zmq.RCVHWM, QUEUED_FRAMES)
    socket.set(zmq.LINGER, LINGER_MS)
    socket.set(zmq.MAXMSGSIZE, MAX_FRAME_BYTES)


def bind_address(transport: str, folder: Path, name: str) -> str:
    """Where to bind: a socket in the folder, or a port that the system picks on the local address.

    Raises:
        RunError: the path is too long for a socket.
    """
    if transport == "tcp":
        return "tcp://127.0.0.1:*"
    path = str(folder / f"{name}.ipc")
    if len(path.encode()) > PATH_BYTES:
        raise RunError(f"{path}: too long for the path of a socket, which may have {PATH_BYTES} bytes")
    return f"ipc://{path}"


class Peer:
    """The sending end to one other process.

    Attributes:
        would_blocks: frames that could not be sent at once, and were kept.
    """

    __slots__ = ("_backlog", "_send", "_socket", "_who", "name", "would_blocks")

    def __init__(self, socket: zmq.Socket[bytes] | None, owner: str, name: str) -> None:
        """Args:
        socket: a connected PUSH; None while the peer is dead.
        owner: name of this process, for errors.
        name: of the peer.
        """
        self.name = name
        self.would_blocks = 0
        self._who = f"{owner}: sending to {name}"
        self._backlog: deque[bytes] = deque()
        self._socket: zmq.Socket[bytes] | None = None
        self._send: Callable[[bytes, int], object] = _nowhere
        if socket is not None:
            self.open(socket)

    def open(self, socket: zmq.Socket[bytes]) -> None:
        """Send by this socket from now on, first what has waited for it."""
        if self._socket is not None:
            self.shut()  # nobody had noticed that the peer was dead: what was kept was for its life before
        self._socket = socket
        # the plain call below the library's conveniences, which cost more than it does
        self._send = partial(zmq.backend.Socket.send, socket)

    def shut(self) -> None:
        """The peer is dead: what was kept for it is lost with it, and what is sent from now on waits for its next life."""
        self._backlog.clear()
        self._send = _nowhere
        if self._socket is not None:
            self._socket.close(linger=DEAD_LINGER_MS)
            self._socket = None

    def send(self, frame: bytes) -> bool:
        """Send, or keep the frame until `retry`; returns whether it went. Frames keep their order.

        Raises:
            RunError: the socket failed.
        """
        if not self._backlog and self._try(frame):
            return True
        self._backlog.append(frame)
        self.would_blocks += 1
        return False

    def retry(self) -> bool:
        """Send what was kept, as far as that goes; returns whether nothing is left."""
        backlog = self._backlog
        while backlog and self._try(backlog[0]):
            backlog.popleft()
        return not backlog

    def close(self, linger_ms: int = LINGER_MS) -> None:
        """Close the socket; frames on their way get the linger."""
        if self._socket is not None:
            self._socket.close(linger=linger_ms)

    def _try(self, frame: bytes) -> bool:
        try:
            self._send(frame, _AT_ONCE)
        except zmq.Again:
            return False
        except zmq.ZMQError as error:
            raise RunError(f"{self._who}: {error}") from error
        return True


class Sockets:
    """All sockets of one process, and how it waits for them.

    Attributes:
        endpoint: where this process receives.
        peers: the sending ends, by the nodes that they lead to.
        waiting: the sending ends that have frames to retry.
        frames_readable: the last wait found news of frames from peers.
        control_readable: the last wait found news of words from the launcher.
    """

    def __init__(
        self, context: zmq.Context[zmq.Socket[bytes]], owner: str, address: str, control: zmq.Socket[bytes]
    ) -> None:
        """Bind the receiving end.

        Args:
            context: of this process.
            owner: its name, for errors.
            address: where to bind.
            control: the socket to the launcher, waited for beside the rest.

        Raises:
            RunError: it cannot bind there.
        """
        self._context = context
        self._owner = owner
        self._pull = context.socket(zmq.PULL)
        set_options(self._pull)
        try:
            self._pull.bind(address)
        except zmq.ZMQError as error:
            raise RunError(f"{owner}: binding {address}: {error}") from error
        self._control = control
        self.endpoint = self._pull.get_string(zmq.LAST_ENDPOINT).rstrip("\0")
        self._pulled: list[tuple[zmq.backend.Socket, int]] = [(self._pull, _READ)]
        self._pull_fd, self._control_fd = _descriptor(self._pull), _descriptor(control)
        self._descriptors = (self._pull_fd, self._control_fd)
        self.waiting: list[Peer] = []
        self._connected: dict[str, Peer] = {}
        self.peers: dict[str, Peer] = {}
        self.frames_readable = False
        self.control_readable = False

    def connect(self, name: str, endpoint: str) -> Peer:
        """The sending end to the process in which this node lives; nodes of one process share it.

        Raises:
            RunError: the endpoint is none.
        """
        if endpoint in self._connected:
            peer = self.peers[name] = self._connected[endpoint]
            return peer
        socket = self._push(name, endpoint)
        peer = self.peers[name] = self._connected[endpoint] = Peer(socket, self._owner, name)
        return peer

    def expect(self, name: str) -> Peer:
        """The sending end to a node that is dead: `reconnect` opens it."""
        peer = self.peers[name] = self._connected[f"dead {name}"] = Peer(None, self._owner, name)
        return peer

    def reconnect(self, name: str, endpoint: str) -> Peer:
        """The node has been started anew and receives there."""
        peer = self.peers[name]
        self._connected = {key: each for key, each in self._connected.items() if each is not peer}
        self._connected[endpoint] = peer
        peer.open(self._push(name, endpoint))
        return peer

    def disconnect(self, name: str) -> None:
        """The node is dead."""
        peer = self.peers[name]
        peer.shut()
        self.waiting = [each for each in self.waiting if each is not peer]

    def _push(self, name: str, endpoint: str) -> zmq.Socket[bytes]:
        socket = self._context.socket(zmq.PUSH)
        set_options(socket)
        socket.set(zmq.IMMEDIATE, 1)
        socket.set(zmq.RECONNECT_IVL, 10)  # ms
        try:
            socket.connect(endpoint)
        except zmq.ZMQError as error:
            raise RunError(f"{self._owner}: connecting to {name} at {endpoint}: {error}") from error
        return socket

    def send(self, peer: Peer, frame: bytes) -> None:
        """Send without blocking; what would block is retried by `retry` until it is gone."""
        if not peer.send(frame) and peer not in self.waiting:
            self.waiting.append(peer)

    def retry(self) -> None:
        """Try again what would have blocked."""
        if self.waiting:
            self.waiting = [peer for peer in self.waiting if not peer.retry()]

    def receive(self) -> list[bytes]:
        """The frames that have come; to be called when there is news of them, since an empty look costs 4 us."""
        self.frames_readable = False
        receive, pulled = self._pull.recv, self._pulled
        try:
            frames = [receive(_AT_ONCE)]
        except zmq.Again:
            return []
        while zmq_poll(pulled, 0):  # a third of the price of an empty look
            frames.append(receive(_AT_ONCE))
        return frames

    def wait(self, until_s: float) -> None:
        """Wait until this instant of `time.monotonic`, or until there is news.

        A past instant only looks. What has news then stands in `frames_readable` and `control_readable`.
        """
        left_s = until_s - time.monotonic()
        if self.waiting and left_s > RETRY_S:
            left_s = RETRY_S
        # rounded up to whole microseconds: one that woke early would find nothing due
        found, _, _ = select.select(self._descriptors, _NONE, _NONE, left_s if left_s > 0.0 else 0.0)
        self.frames_readable = self._pull_fd in found
        self.control_readable = self._control_fd in found

    def sleep_until(self, at_s: float) -> None:
        """Sleep until this instant of `time.monotonic`, deaf to the sockets."""
        left_s = at_s - time.monotonic()
        if left_s > 0.0:
            time.sleep(left_s)

    @property
    def would_blocks(self) -> int:
        """Frames that could not be sent at once."""
        return sum(peer.would_blocks for peer in self._connected.values())

    def close(self, linger_ms: int = LINGER_MS) -> None:
        """Close all but the control socket, which is not ours; frames on their way get the linger."""
        for peer in self._connected.values():
            peer.close(linger_ms)
        self._pull.close()


def _nowhere(frame: bytes, flags: int) -> object:
    """There is no socket: the frame waits."""
    raise zmq.Again


def _descriptor(socket: zmq.Socket[bytes]) -> int:
    descriptor = socket.get(zmq.FD)
    assert isinstance(descriptor, int), f"{descriptor!r} is no descriptor"
    return descriptor
