"""The way from `testbed control` to a run: a socket of its own in the run's folder, for this user alone.

It is apart from the sockets of the data and from those of the processes, so that no fault can cut it. A question and its
answer are one JSON object each: `{"action": ..., ...}`, and `{"done": true or false, "said": [lines]}`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import zmq

from testbed.errors import RunError
from testbed.record.run_folder import ArmFolder
from testbed.runtime.sockets import set_options

NOTE = "control"  # the file in the arm's folder that tells where the socket is
ANSWER_S = 5.0  # longest wait for an answer, which is due within a second


class HandServer:
    """The launcher's end."""

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], folder: ArmFolder, place: Path) -> None:
        """Bind in this folder, and note it in that of the arm.

        Raises:
            RunError: it cannot bind there.
        """
        self.socket = context.socket(zmq.ROUTER)
        set_options(self.socket)
        address = f"ipc://{place / 'hand'}"
        try:
            self.socket.bind(address)
        except zmq.ZMQError as error:
            raise RunError(f"the launcher: binding {address}: {error}") from error
        self._note = folder.path / NOTE
        self._note.write_text(address)

    def receive(self) -> tuple[bytes, dict[str, Any]] | None:
        """The next question, with whom to answer; None when there is none. What is no question is answered so."""
        while True:
            try:
                asker, *_, data = self.socket.recv_multipart(zmq.DONTWAIT)
            except zmq.Again:
                return None
            try:
                question = json.loads(data)
                assert isinstance(question["action"], str)
            except (ValueError, TypeError, KeyError, AssertionError):
                self.answer(asker, False, ["not a question"])
                continue
            return asker, question

    def answer(self, asker: bytes, done: bool, said: list[str]) -> None:
        """Answer; whoever has gone is not waited for."""
        self.socket.send_multipart(
            [asker, b"", json.dumps({"done": done, "said": said}).encode()], zmq.DONTWAIT
        )

    def close(self) -> None:
        """Close the socket, and take the note away."""
        self._note.unlink(missing_ok=True)
        self.socket.close()


def ask(folder: ArmFolder, question: dict[str, Any]) -> tuple[bool, list[str]]:
    """Ask the run in this folder; whether it has done what was asked, and what it says.

    Raises:
        RunError: no run goes on there, or it does not answer.
    """
    try:
        address = (folder.path / NOTE).read_text()
    except OSError as error:
        raise RunError(f"{folder.path}: no live run goes on there") from error
    with zmq.Context() as context, context.socket(zmq.REQ) as socket:
        set_options(socket)
        socket.set(zmq.LINGER, 0)
        socket.connect(address)
        socket.send(json.dumps(question).encode())
        if not socket.poll(int(ANSWER_S * 1000)):
            raise RunError(f"{folder.path}: the run did not answer within {ANSWER_S:.0f} s; has it ended?")
        answer = json.loads(socket.recv())
    return bool(answer["done"]), [str(line) for line in answer["said"]]
