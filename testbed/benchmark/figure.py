"""One measured figure, what it is held against, and how it was measured."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple


class Figure(NamedTuple):
    """A line of the benchmark.

    Attributes:
        name: what was measured, with its setting.
        value: in `unit`; NaN where it could not be measured.
        unit: of the value and of the aim.
        aim: what it is to reach; NaN: nothing, it is for information.
        is_least: the aim is the least value; otherwise the largest.
        how: in a few words, with what the host did meanwhile if it disturbed.
    """

    name: str
    value: float
    unit: str
    aim: float = math.nan
    is_least: bool = True
    how: str = ""

    @property
    def reached(self) -> bool | None:
        """Whether the aim is reached; None where there is none, or nothing was measured."""
        if math.isnan(self.aim) or math.isnan(self.value):
            return None
        return self.value >= self.aim if self.is_least else self.value <= self.aim


Measurement = Callable[[bool], Iterator[Figure]]
"""Measures figure after figure; True: the short form, which says the same with less certainty."""
