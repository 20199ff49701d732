"""The control path: a ROUTER at the launcher, a DEALER at each process; no injected fault touches it.

A DEALER's identity is its node and its pid, so that a second process of one name is seen and refused: with the name
alone, ZeroMQ would drop all that the second one says without a word.
"""

from __future__ import annotations

import os

import zmq
from zmq import zmq_poll

from testbed.errors import RunError
from testbed.runtime.sockets import set_options
from testbed.runtime.wire import Control, Ready, pack_control, unpack_control


class ControlServer:
    """The launcher's end."""

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], address: str) -> None:
        """Bind at this address.

        Raises:
            RunError: it cannot bind there.
        """
        self.context = context
        self.socket = context.socket(zmq.ROUTER)
        set_options(self.socket)
        self.socket.set(zmq.ROUTER_MANDATORY, 1)  # else a message to an unknown process vanishes
        try:
            self.socket.bind(address)
        except zmq.ZMQError as error:
            raise RunError(f"the launcher: binding {address}: {error}") from error
        self.endpoint = self.socket.get_string(zmq.LAST_ENDPOINT).rstrip("\0")
        self._identities: dict[str, bytes] = {}

    def receive(self) -> list[Control]:
        """All that has come.

        Raises:
            RunError: a frame is malformed, or a second process says that it is ready under a used name.
        """
        messages: list[Control] = []
        while True:
            try:
                identity, data = self.socket.recv_multipart(zmq.DONTWAIT)
            except zmq.Again:
                return messages
            message = unpack_control(data)
            if isinstance(message, Ready):
                self._admit(message, identity)
            messages.append(message)

    def send(self, node: str, message: Control) -> bool:
        """Tell a process that has said that it is ready; returns False when it is there no more."""
        try:
            self.socket.send_multipart([self._identities[node], pack_control(message)], zmq.DONTWAIT)
        except zmq.ZMQError as error:
            if error.errno in (zmq.EHOSTUNREACH, zmq.EAGAIN):
                return False
            raise RunError(f"the launcher: telling {node} {type(message).__name__}: {error}") from error
        return True

    def forget(self, node: str) -> None:
        """The process of this node has ended: another may take its name."""
        self._identities.pop(node, None)

    def close(self) -> None:
        """Close the socket."""
        self.socket.close()

    def _admit(self, ready: Ready, identity: bytes) -> None:
        if ready.node in self._identities:
            first = self._identities[ready.node].decode()
            raise RunError(f"two processes are called {ready.node}: {first!r} and {identity.decode()!r}")
        self._identities[ready.node] = identity


class ControlClient:
    """A process's end. Who has sent is to `receive` before waiting: see `sockets.py`."""

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], node: str, endpoint: str) -> None:
        """Connect to the launcher.

        Raises:
            RunError: the endpoint is none.
        """
        self.socket = context.socket(zmq.DEALER)
        self._polled: list[tuple[zmq.backend.Socket, int]] = [(self.socket, int(zmq.POLLIN))]
        set_options(self.socket)
        self.socket.set(zmq.ROUTING_ID, f"{node} {os.getpid()}".encode())
        try:
            self.socket.connect(endpoint)
        except zmq.ZMQError as error:
            raise RunError(f"{node}: connecting to the launcher at {endpoint}: {error}") from error

    def send(self, message: Control) -> None:
        """Tell the launcher. It reads as long as it lives, so this waits for it rather than lose a word."""
        self.socket.send(pack_control(message))

    def offer(self, message: Control) -> bool:
        """Tell the launcher if that does not block; for beats, of which the next one says it better."""
        try:
            self.socket.send(pack_control(message), zmq.DONTWAIT)
        except zmq.Again:
            return False
        return True

    def receive(self) -> list[Control]:
        """All that has come; empty when nothing has.

        Raises:
            RunError: a frame is malformed.
        """
        messages: list[Control] = []
        while zmq_poll(self._polled, 0):  # cheaper than an empty look, which ends in an exception
            messages.append(unpack_control(self.socket.recv(zmq.DONTWAIT)))
        return messages

    def close(self) -> None:
        """Close the socket."""
        self.socket.close()
