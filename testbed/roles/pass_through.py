"""What stands between a role and its engine, and hands on all that it has no business with.

A feature that only some scenarios have may stand in front of a role (health checks, an autoscaler, a filter of copies)
or in its environment. It says what it changes; the rest goes through as it came.
"""

from __future__ import annotations

from typing import Any

from testbed.roles.environment import Environment, Role
from testbed.roles.messages import Message, Notice


class PassThroughRole:
    """Hands all that an engine says on to a role, and the role's answers back."""

    def __init__(self, role: Role) -> None:
        """In front of `role`."""
        self._role = role
        self._hand_on = role.on_message  # bound once: it is called for every message

    def start(self) -> None:
        """As the role."""
        self._role.start()

    def on_message(self, source: str, message: Message | Notice) -> None:
        """As the role."""
        self._hand_on(source, message)

    def on_timer(self, name: str) -> None:
        """As the role."""
        self._role.on_timer(name)

    def stop(self, *, killed: bool = False) -> None:
        """As the role."""
        self._role.stop(killed=killed)

    def is_idle(self) -> bool:
        """As the role."""
        return self._role.is_idle()

    def gauges(self) -> tuple[int, int, int]:
        """As the role."""
        return self._role.gauges()


class PassThroughEnvironment:
    """Hands all that a role asks for on to its environment."""

    def __init__(self, env: Environment) -> None:
        """In `env`; messages and rows pass methods of their own, all else goes there directly."""
        self.life = env.life
        self.now_s = env.now_s
        self.rng = env.rng
        self.set_timer = env.set_timer
        self.cancel_timer = env.cancel_timer
        self._send = env.send
        self._record = env.record

    def send(self, target: str, message: Message) -> None:
        """As the environment."""
        self._send(target, message)

    def record(self, table: str, row: tuple[Any, ...]) -> None:
        """As the environment."""
        self._record(table, row)
