"""A counter that leaks: requests given up that stay counted as in flight, as a fault has it."""

from __future__ import annotations

from testbed.draw import uniform

_SALT = 12  # of the draw which requests are not counted down


class Leak:
    """What a balancer forgets to count down.

    Attributes:
        fraction: of the requests given up that stay counted.
        count: how many have stayed so far; healing the fault does not bring them back, a restart does.
    """

    __slots__ = ("_base", "count", "fraction")

    def __init__(self, base: int) -> None:
        """Nothing leaks; `base` keys the draws."""
        self._base = base
        self.fraction = 0.0
        self.count = 0

    def takes(self, request_id: int, attempt: int) -> bool:
        """Whether this request, given up now, stays counted."""
        if not self.fraction or uniform(self._base, request_id, attempt, _SALT) >= self.fraction:
            return False
        self.count += 1
        return True
