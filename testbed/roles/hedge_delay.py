"""How long a request goes unanswered before a second copy of it is sent."""

from __future__ import annotations

import math
from collections import deque

from testbed.scenario.resilience_words import Hedging

WATCHED = 1000  # ages of first copies, the latest ones: enough for a quantile of 99 %
FEWEST = 50  # of these before a quantile is believed
_ANEW = 25  # so many new ages before the quantile is worked out anew: sorting each time would cost more than it tells


class HedgeDelay:
    """A delay that is given, or a quantile of how long first copies took.

    A first copy that was called off, since another one answered, counts with its age at that time. It is older than
    the delay, so the share that lies above the delay stays what the quantile says; without it the slow ones would be
    missing, and the delay would shrink.
    """

    __slots__ = ("_after_s", "_ages_s", "_new", "_quantile")

    def __init__(self, words: Hedging) -> None:
        """Nothing has been seen yet."""
        self._quantile = words.after_quantile
        self._after_s = math.inf if words.after is None else words.after
        self._ages_s: deque[float] = deque(maxlen=WATCHED)
        self._new = 0

    def after_s(self) -> float:
        """Seconds from sending to the second copy; infinite while too little is known."""
        return self._after_s

    def on_end(self, age_s: float) -> None:
        """A first copy was answered, given up or called off at this age."""
        if self._quantile is None:
            return
        self._ages_s.append(age_s)
        self._new += 1
        if self._new >= _ANEW and len(self._ages_s) >= FEWEST:
            self._new = 0
            ranked = sorted(self._ages_s)
            self._after_s = ranked[min(len(ranked) - 1, int(self._quantile * len(ranked)))]
