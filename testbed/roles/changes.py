"""Reports of changes alone: whether what is in flight has changed enough to be worth one."""

from __future__ import annotations

import math


class Changes:
    """What a reporter last said, and when.

    A reporter does not know what became of its reports: one that was lost counts as said. With a lease it says again
    what has not changed for that long.
    """

    __slots__ = ("_lease_s", "_said", "_said_at_s", "_threshold")

    def __init__(self, threshold: int, lease_s: float = math.inf) -> None:
        """Args:
        threshold: requests in flight that make a change.
        lease_s: after this long a report is due, changed or not.
        """
        self._threshold = threshold
        self._lease_s = lease_s
        self._said = -threshold  # the first report is always news
        self._said_at_s = -math.inf

    def is_due(self, in_flight: int, now_s: float) -> bool:
        """Whether a report is due; if so it counts as said."""
        changed = abs(in_flight - self._said) >= self._threshold
        if not changed and now_s < self._said_at_s + self._lease_s:
            return False
        self._said, self._said_at_s = in_flight, now_s
        return True
