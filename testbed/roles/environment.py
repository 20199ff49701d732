"""What a role may ask of the world around it, and what an engine may ask of a role."""

from __future__ import annotations

import random
from typing import Any, Protocol

from testbed.roles.messages import Message, Notice

LIFE_BITS = 32  # what a node numbers itself begins here in each life, so that no two messages are alike


class Environment(Protocol):
    """All that a role may ask of the world around it."""

    @property
    def life(self) -> int:
        """How often this node was started before; above 0 it begins in the middle of a run."""

    def now_s(self) -> float:
        """Seconds since the run began."""

    def rng(self, purpose: str) -> random.Random:
        """This node's stream of that name; the same in every engine and process."""

    def send(self, target: str, message: Message) -> None:
        """Send over the link to `target` that carries this kind of message; it may be lost."""

    def set_timer(self, name: str, at_s: float) -> None:
        """Fire `on_timer(name)` at this instant; replaces a timer of that name."""

    def cancel_timer(self, name: str) -> None:
        """Forget the timer of that name, if there is one."""

    def record(self, table: str, row: tuple[Any, ...]) -> None:
        """Append a row, in the order of the columns of `record.tables`."""


class Role(Protocol):
    """A node's behaviour: messages and timers in, effects through its environment out."""

    def start(self) -> None:
        """The run begins (time 0), or this node's new life in it: set the first timers."""

    def on_message(self, source: str, message: Message | Notice) -> None:
        """A message has arrived; a setting or a rotation comes from the engine, from no source."""

    def on_timer(self, name: str) -> None:
        """A timer has fired."""

    def stop(self, *, killed: bool = False) -> None:
        """The run is over, or this node dies: record what is still open as unfinished, or as lost."""

    def is_idle(self) -> bool:
        """Nothing planned is still to come and nothing is open."""

    def gauges(self) -> tuple[int, int, int]:
        """For people watching: (requests received, finished, in flight)."""
