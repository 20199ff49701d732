"""The sockets of a process: where ZeroMQ, left to its defaults, would lose quietly."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
import zmq

from testbed.errors import RunError
from testbed.runtime.control import ControlClient, ControlServer
from testbed.runtime.sockets import Sockets, bind_address, open_context
from testbed.runtime.wire import Hello, Ready, Stop, pack_control

WAIT_S = 20.0  # far above what any of these needs, also on a busy host


class Processes:
    """Sockets of several processes, in one."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self.stack = stack
        self.context = open_context(16)
        self.clients: dict[str, ControlClient] = {}
        stack.callback(self.context.term)
        self.server = stack.enter_context(closing(ControlServer(self.context, "inproc://control")))

    def client(self, name: str) -> ControlClient:
        client = closing(ControlClient(self.context, name, "inproc://control"))
        self.clients[name] = self.stack.enter_context(client)
        return self.clients[name]

    def sockets(self, name: str, transport: str = "ipc") -> Sockets:
        address = bind_address(transport, self.folder, name)
        return self.stack.enter_context(
            closing(Sockets(self.context, name, address, self.client(name).socket))
        )


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    with ExitStack() as stack:
        yield Processes(tmp_path, stack)


def receive(sockets: Sockets, count: int) -> list[bytes]:
    """That many frames, or a failure when they do not come."""
    frames: list[bytes] = []
    until_s = time.monotonic() + WAIT_S
    while len(frames) < count:
        assert time.monotonic() < until_s, f"{len(frames)} of {count} frames came"
        sockets.wait(until_s)
        if sockets.frames_readable:
            frames += sockets.receive()
    return frames


@pytest.mark.parametrize("transport", ["ipc", "tcp"])
def test_frames_arrive_in_order_however_many_wait(processes: Processes, transport: str) -> None:
    """Two thousand frames before the reader looks: twice what ZeroMQ's default would hold at either end."""
    reader, writer = processes.sockets("reader", transport), processes.sockets("writer", transport)
    peer = writer.connect("reader", reader.endpoint)
    frames = [f"{i}".encode() for i in range(2000)]

    for frame in frames:
        writer.send(peer, frame)
    until_s = time.monotonic() + WAIT_S
    while writer.waiting and time.monotonic() < until_s:
        writer.wait(until_s)
        writer.retry()

    assert receive(reader, len(frames)) == frames


def test_what_cannot_be_sent_yet_is_kept_counted_and_sent_later(processes: Processes) -> None:
    """A peer that is not there yet: by default a PUSH would have taken the frames and said nothing."""
    writer = processes.sockets("writer")
    peer = writer.connect("reader", bind_address("ipc", processes.folder, "reader"))
    writer.send(peer, b"one")
    writer.send(peer, b"two")
    assert writer.would_blocks == 2

    reader = processes.sockets("reader")
    until_s = time.monotonic() + WAIT_S
    while writer.waiting and time.monotonic() < until_s:
        writer.wait(until_s)
        writer.retry()

    assert receive(reader, 2) == [b"one", b"two"]


def test_what_is_sent_between_a_death_and_the_next_life_waits_for_it(processes: Processes) -> None:
    """What was kept for the dead is lost with them; what came after the death was noticed is not."""
    writer = processes.sockets("writer")
    peer = writer.connect("reader", bind_address("ipc", processes.folder, "reader"))
    writer.send(peer, b"for the first life")
    writer.disconnect("reader")
    writer.send(peer, b"one")
    writer.send(peer, b"two")
    reader = processes.sockets("reader")

    writer.reconnect("reader", reader.endpoint)
    writer.send(peer, b"three")
    until_s = time.monotonic() + WAIT_S
    while writer.waiting and time.monotonic() < until_s:
        writer.wait(until_s)
        writer.retry()

    assert receive(reader, 3) == [b"one", b"two", b"three"]


def test_what_was_kept_for_a_peer_whose_death_went_unnoticed_is_lost_with_it(processes: Processes) -> None:
    writer = processes.sockets("writer")
    peer = writer.connect("reader", bind_address("ipc", processes.folder, "reader"))
    writer.send(peer, b"for the first life")
    reader = processes.sockets("reader.2")

    writer.reconnect("reader", reader.endpoint)
    writer.send(peer, b"for the second")
    until_s = time.monotonic() + WAIT_S
    while writer.waiting and time.monotonic() < until_s:
        writer.wait(until_s)
        writer.retry()

    assert receive(reader, 1) == [b"for the second"]


def test_waiting_is_finer_than_a_millisecond(processes: Processes) -> None:
    """The poller of ZeroMQ would turn 0.9 ms into 0 and spin, or into 1 ms and be late; here it waits, and not less."""
    sockets = processes.sockets("waiter")
    sockets.wait(0.0)
    assert sockets.receive() == []
    assert processes.clients["waiter"].receive() == []
    until_s = time.monotonic() + 0.0009

    sockets.wait(until_s)

    assert time.monotonic() >= until_s
    assert not sockets.frames_readable
    assert not sockets.control_readable


def test_closing_with_frames_for_a_dead_peer_ends(tmp_path: Path) -> None:
    """With the default linger it would hang for ever."""
    with ExitStack() as stack:
        both = Processes(tmp_path, stack)
        reader, writer = both.sockets("reader"), both.sockets("writer")
        peer = writer.connect("reader", reader.endpoint)
        writer.send(peer, b"hello")
        while writer.waiting:
            writer.wait(time.monotonic() + 0.01)
            writer.retry()
        receive(reader, 1)
        reader.close()
        for _ in range(100):
            writer.send(peer, b"to nobody")
        began_s = time.monotonic()

    assert time.monotonic() - began_s < WAIT_S


def test_nodes_of_one_process_share_its_sending_end(processes: Processes) -> None:
    """One frame per process and pass, not per node."""
    reader, writer = processes.sockets("reader"), processes.sockets("writer")

    assert writer.connect("a", reader.endpoint) is writer.connect("b", reader.endpoint)


def test_thirty_processes_at_once_find_thirty_ports(processes: Processes) -> None:
    """The system picks each port as it is bound, so nobody can take it in between."""
    context = open_context(64)
    control = context.socket(zmq.DEALER)
    with ExitStack() as stack:
        stack.callback(context.term)
        stack.enter_context(closing(control))
        address = bind_address("tcp", processes.folder, "any")
        found = {
            stack.enter_context(closing(Sockets(context, f"{i}", address, control))).endpoint
            for i in range(30)
        }

    assert len(found) == 30
    assert all(endpoint.startswith("tcp://127.0.0.1:") for endpoint in found)


def test_a_path_too_long_for_a_socket_is_refused_by_name(tmp_path: Path) -> None:
    """Linux gives the path of a socket 107 bytes."""
    with pytest.raises(RunError, match=r"node\.ipc: too long .* 107 bytes"):
        bind_address("ipc", tmp_path / ("x" * 100), "node")


def heard(server: ControlServer) -> list[object]:
    """What the launcher hears; waits for something."""
    assert server.socket.poll(int(WAIT_S * 1000))
    return list(server.receive())


def test_a_second_process_of_one_name_is_an_error(processes: Processes) -> None:
    """With the name as identity ZeroMQ would drop all that the second one says."""
    first = processes.client("us/leaf-1")
    first.send(Ready("us/leaf-1", "ipc://a", 1))
    assert heard(processes.server) == [Ready("us/leaf-1", "ipc://a", 1)]
    second = processes.context.socket(zmq.DEALER)
    with closing(second):
        second.set(zmq.LINGER, 0)
        second.set(zmq.ROUTING_ID, b"us/leaf-1 2")
        second.connect("inproc://control")
        second.send(pack_control(Ready("us/leaf-1", "ipc://b", 2)))

        with pytest.raises(RunError, match="two processes are called us/leaf-1"):
            heard(processes.server)


def test_a_word_to_a_process_that_is_gone_is_known_to_be_lost(processes: Processes) -> None:
    """By default a ROUTER drops it in silence."""
    client = processes.client("node")
    client.send(Ready("node", "ipc://a", 1))
    heard(processes.server)
    assert processes.server.send("node", Stop(1.0))

    client.close()
    until_s = time.monotonic() + WAIT_S
    while processes.server.send("node", Stop(1.0)):
        assert time.monotonic() < until_s
        processes.server.receive()


def test_a_word_reaches_the_process_it_is_for(processes: Processes) -> None:
    """And no other."""
    one, other = processes.client("one"), processes.client("other")
    for client, name in ((one, "one"), (other, "other")):
        client.send(Ready(name, "ipc://a", 1))
    words: list[object] = []
    while len(words) < 2:
        words += heard(processes.server)

    processes.server.send("other", Hello("launcher"))

    assert other.socket.poll(int(WAIT_S * 1000))
    assert other.receive() == [Hello("launcher")]
    assert one.receive() == []
