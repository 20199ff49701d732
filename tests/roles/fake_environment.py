"""The world of a role under test: what it sent, set and recorded, in lists."""

from __future__ import annotations

import random
from typing import Any

from testbed.draw import stream
from testbed.roles.messages import Message


class FakeEnvironment:
    """Keeps everything; time stands where the test puts it."""

    def __init__(self, name: str = "node") -> None:
        self.name = name
        self.life = 0
        self.at_s = 0.0
        self.sent: list[tuple[str, Message]] = []
        self.timers: dict[str, float] = {}
        self.rows: list[tuple[str, tuple[Any, ...]]] = []

    def now_s(self) -> float:
        return self.at_s

    def rng(self, purpose: str) -> random.Random:
        return stream(1, self.name, purpose)

    def send(self, target: str, message: Message) -> None:
        self.sent.append((target, message))

    def set_timer(self, name: str, at_s: float) -> None:
        self.timers[name] = at_s

    def cancel_timer(self, name: str) -> None:
        self.timers.pop(name, None)

    def record(self, table: str, row: tuple[Any, ...]) -> None:
        self.rows.append((table, row))

    def rows_of(self, table: str) -> list[tuple[Any, ...]]:
        return [row for name, row in self.rows if name == table]

    def take_sent(self) -> list[tuple[str, Message]]:
        sent, self.sent = self.sent, []
        return sent
