"""Requests that a server answers FAILED, as a fault has it: which of them, and after how long."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from testbed.draw import uniform
from testbed.roles.messages import Request

_SALT = 11  # of the draw which requests fail


class Failures:
    """The requests that will fail at one server, until they do.

    Attributes:
        fraction: of the requests that fail; the same ones in every arm and engine.
        after_s: from their receipt to the answer.
    """

    __slots__ = ("_base", "_due", "after_s", "fraction")

    def __init__(self, base: int) -> None:
        """None fail; `base` keys the draws."""
        self._base = base
        self._due: list[tuple[float, int, int, float, str, Request]] = []  # (at, key, stay, leaf, request)
        self.fraction = self.after_s = 0.0

    def __len__(self) -> int:
        return len(self._due)

    def strikes(self, request: Request) -> bool:
        """Whether this request is to fail."""
        return uniform(self._base, request[0], request[1], _SALT) < self.fraction

    def take(self, leaf: str, request: Request, now_s: float) -> None:
        """This request fails, and waits for that here."""
        heappush(self._due, (now_s + self.after_s, request[0], request[1], self.after_s, leaf, request))

    def with_those_here(self, by_class: tuple[int, ...]) -> tuple[int, ...]:
        """Requests of each class, and those of it that wait here."""
        if not self._due:
            return by_class
        counts = list(by_class)
        for *_, request in self._due:
            counts[request.class_index] += 1
        return tuple(counts)

    def next_at_s(self) -> float:
        """When the next one fails; infinite when none will."""
        return self._due[0][0] if self._due else float("inf")

    def due(self, now_s: float) -> list[tuple[str, Request, float]]:
        """Those that fail by now: the leaf that sent each, the request, and how long it was to stay."""
        failed = []
        while self._due and self._due[0][0] <= now_s:
            _, _, _, stay_s, leaf, request = heappop(self._due)
            failed.append((leaf, request, stay_s))
        return failed

    def cancel(self, request_id: int, attempt: int) -> bool:
        """Forget a request; False: it is not here."""
        left = [each for each in self._due if each[1:3] != (request_id, attempt)]
        found = len(left) < len(self._due)
        heapify(left)
        self._due = left
        return found
