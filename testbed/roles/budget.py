"""How many more sendings a balancer may make, as a share of its first ones.

The budget is a bucket: each first sending puts a share of a retry into it, up to SAVED, and a retry takes a whole one
(as retry budgets of Finagle and of gRPC do). Never more retries than that share of first sendings. The same holds for
the copies of hedging.
"""

from __future__ import annotations

SAVED = 10.0  # retries that a budget saves up at the most: a burst of failures may use so many at once
_WHOLE = 1.0 - 1e-9  # ten times a tenth is a little less than one


class Budget:
    """How many retries are left, as a share of first sendings."""

    __slots__ = ("_saved", "_share")

    def __init__(self, share: float | None) -> None:
        """None: any number."""
        self._share = share
        self._saved = 0.0

    def on_first(self) -> None:
        """A request was sent for the first time."""
        if self._share is not None:
            self._saved = min(SAVED, self._saved + self._share)

    def allows(self) -> bool:
        """Whether there may be a retry."""
        return self._share is None or self._saved >= _WHOLE

    def take(self) -> bool:
        """Whether there may be a retry; it is taken if so."""
        if not self.allows():
            return False
        if self._share is not None:
            self._saved -= 1.0
        return True
