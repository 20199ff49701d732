"""Requests that a balancer keeps because no target is usable: in order of arrival, up to a bound."""

from __future__ import annotations

import math
from collections import deque
from typing import NamedTuple

from testbed.roles.messages import Request


class Waiting(NamedTuple):
    """A request that waits at a balancer for a target.

    `source` is the root that sent it to a leaf, empty at a root; `arrived_at_s` the planned arrival at a root, the
    receipt at a leaf.
    """

    request: Request
    source: str
    arrived_at_s: float
    deadline_s: float


class Held:
    """The queue of one stream of a root, or of a leaf; with a bound of 0 it holds nothing."""

    __slots__ = ("_most", "_waiting")

    def __init__(self, most: int) -> None:
        """Hold up to so many."""
        self._most = most
        self._waiting: deque[Waiting] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def holds(self) -> bool:
        """Whether it ever holds anything."""
        return self._most > 0

    def has_room(self) -> bool:
        """Whether one more may come."""
        return len(self._waiting) < self._most

    def put(self, waiting: Waiting) -> None:
        """The newest; there must be room."""
        assert self.has_room(), f"more than {self._most} requests held"
        self._waiting.append(waiting)

    def head(self) -> Waiting:
        """The oldest; there must be one."""
        return self._waiting[0]

    def take(self) -> Waiting:
        """The oldest leaves; there must be one."""
        return self._waiting.popleft()

    def drop(self, request_id: int) -> Waiting | None:
        """The one with this id leaves; None if it is not held."""
        for waiting in self._waiting:
            if waiting.request.request_id == request_id:
                self._waiting.remove(waiting)
                return waiting
        return None

    def take_all(self) -> list[Waiting]:
        """All leave, the oldest first."""
        waiting = list(self._waiting)
        self._waiting.clear()
        return waiting

    def take_expired(self, now_s: float) -> list[Waiting]:
        """Those whose deadline has come leave, the oldest first."""
        expired = [each for each in self._waiting if each.deadline_s <= now_s]
        if expired:
            self._waiting = deque(each for each in self._waiting if each.deadline_s > now_s)
        return expired

    def next_deadline_s(self) -> float:
        """The earliest deadline; infinite when nobody waits."""
        return min((each.deadline_s for each in self._waiting), default=math.inf)

    def by_class(self, class_count: int) -> tuple[int, ...]:
        """How many of each class wait."""
        counts = [0] * class_count
        for each in self._waiting:
            counts[each.request.class_index] += 1
        return tuple(counts)
