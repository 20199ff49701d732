"""Who answers for a role while its process is stopped or dead, under virtual time.

A stopped process takes nothing in: what comes waits, as it does in the sockets of a real one, and is handled in one
burst when the process goes on. Timers that fell due fire then too, unless what was handled before has moved them. A
dead process has nothing and nobody waits for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from testbed.roles.environment import Role
from testbed.roles.messages import Message, Notice
from testbed.runtime.timeline import Change


class Paused:
    """A role whose process is stopped."""

    def __init__(self, role: Role, hold_timer: Callable[[str], int]) -> None:
        """Args:
        role: as it was when its process was stopped.
        hold_timer: keeps a timer that has fallen due; gives its number.
        """
        self.role = role
        self.gauges = role.gauges
        self._hold_timer = hold_timer
        self.backlog: list[tuple[Any, ...]] = []

    def start(self) -> None:
        """It began long ago."""

    def on_message(self, source: str, message: Message | Notice) -> None:
        """The message waits."""
        self.backlog.append(("message", source, message))

    def on_timer(self, name: str) -> None:
        """The timer waits."""
        self.backlog.append(("timer", name, self._hold_timer(name)))

    def wait(self, change: Change) -> None:
        """The change waits, like all that the process would have done by itself."""
        self.backlog.append(("change", change))

    def stop(self, *, killed: bool = False) -> None:
        """As the role itself."""
        self.role.stop(killed=killed)

    def is_idle(self) -> bool:
        """Nobody knows before it goes on."""
        return False


class Dead:
    """A role whose process has died."""

    def start(self) -> None:
        """Never."""

    def on_message(self, source: str, message: Message | Notice) -> None:
        """Its links are closed, so nothing comes."""
        raise AssertionError(f"{message} from {source} came to a dead process")

    def on_timer(self, name: str) -> None:
        """Its timers are gone."""
        raise AssertionError(f"timer {name} of a dead process fired")

    def stop(self, *, killed: bool = False) -> None:
        """It has recorded all it had when it died."""

    def is_idle(self) -> bool:
        """Nobody waits for it."""
        return True

    def gauges(self) -> tuple[int, int, int]:
        """It has nothing."""
        return 0, 0, 0
