"""Neighbours on a machine that take what a server could use: the cores left to it are drawn anew now and then.

The draws are keyed by a server and the number of the redraw, so they depend neither on its load nor on who asks.
Source: the co-tenants of the testbed in Wydrowski et al., Prequal (NSDI 2024), section 5, as a renewal process.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from testbed.draw import uniform

_WHEN, _WHAT = 0, 1  # the two draws of a redraw


class Antagonist:
    """The cores that a server may use as a function of time.

    Attributes:
        cores: those it may use now.
        next_change_s: when they are drawn anew.
    """

    def __init__(
        self, cores: Sequence[float], probabilities: Sequence[float], every_s: float, base: int
    ) -> None:
        """At instant 0, with a first draw made.

        Args:
            cores: the numbers of cores that may be left to the server.
            probabilities: of each; they add up to 1.
            every_s: mean of the exponential time between redraws.
            base: stands for the seed and the server.
        """
        self._levels = tuple(cores)
        self._bounds = list(accumulate(probabilities))[:-1]
        self._every_s = every_s
        self._base = base
        self._redraws = 0
        self.next_change_s = 0.0
        self.cores = 0.0
        self.change()

    def change(self) -> None:
        """The next redraw has come."""
        number = self._redraws
        self._redraws += 1
        self.cores = self._levels[bisect_right(self._bounds, uniform(self._base, number, _WHAT))]
        self.next_change_s -= self._every_s * math.log(uniform(self._base, number, _WHEN))
