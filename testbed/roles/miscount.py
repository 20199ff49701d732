"""What faults make of a balancer's counts of its own requests in flight: they leak, or are set to nought.

A leak leaves requests that were given up counted. A reset forgets those that are open, yet each of them is counted down
when it is over: so the count falls below nought and stays there, and the target that had most in flight looks the
emptiest. Healing mends neither; a restart does.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from testbed.draw import uniform
from testbed.routing.view import Target

_SALT = 12  # of the draw which requests are not counted down


class Miscount:
    """How far a balancer's counts are off.

    Attributes:
        fraction: of the requests given up that stay counted.
        count: by how much the counts of all targets together exceed the truth; below 0 after a reset.
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

    def row(self, node: str, at_s: float, targets: Iterable[Target], still_open: int) -> tuple[Any, ...]:
        """A row of table `counts`: what a balancer counts at the end of its life, beside what it has sent and not closed."""
        counts = [target.own_in_flight for target in targets]
        return node, at_s, sum(counts), min(counts, default=0), still_open, self.count

    def reset(self, targets: Iterable[Target]) -> None:
        """All counts of own requests at these targets begin anew at nought, whatever is open there."""
        for target in targets:
            self.count -= target.own_in_flight
            target.forget_own()
