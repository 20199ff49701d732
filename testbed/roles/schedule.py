"""A periodic instant on an absolute schedule: phase, phase + period, phase + 2 period, ...

A role that was held up (a stopped process, a busy host) does what it missed once, not many times, and goes on at
the instants it would have kept; instants are multiples, so that they do not drift.
"""

from __future__ import annotations

import math


class Schedule:
    """The instants of a periodic action; `next_at_s` is the coming one."""

    __slots__ = ("_count", "next_at_s", "period_s", "phase_s", "skipped")

    def __init__(self, period_s: float, phase_s: float) -> None:
        """Begin at `phase_s`; a period of 0 or less is refused."""
        assert period_s > 0, f"a period of {period_s} s never ends"
        self.period_s = period_s
        self.phase_s = phase_s
        self.next_at_s = phase_s
        self.skipped = 0
        self._count = 0

    def first_s(self, now_s: float) -> float:
        """The coming instant for a role that begins now; earlier ones were another life's."""
        if self.next_at_s < now_s:
            self._count = math.ceil((now_s - self.phase_s) / self.period_s)
            self.next_at_s = self.phase_s + self._count * self.period_s
        return self.next_at_s

    def after_s(self, periods: int) -> float:
        """The instant so many periods after the coming one."""
        return self.phase_s + (self._count + periods) * self.period_s

    def passed(self, now_s: float) -> float:
        """Mark the coming instant as done at `now_s`, skip those missed, and return the next."""
        self._count += 1
        self.next_at_s = self.phase_s + self._count * self.period_s
        if self.next_at_s <= now_s:
            missed = math.floor((now_s - self.phase_s) / self.period_s) + 1 - self._count
            self.skipped += max(missed, 0)
            self._count += max(missed, 0)
            self.next_at_s = self.phase_s + self._count * self.period_s
        return self.next_at_s
