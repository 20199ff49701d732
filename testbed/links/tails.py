"""Jitter with a tail: exponential and Pareto delays, of the stated mean.

A fraction is turned round (1 - fraction) first, which costs nothing and keeps the far tail's precision.
"""

from __future__ import annotations

import math
from collections.abc import Callable

TAILS = ("pareto", "exponential")


def pareto(mean_s: float, sd_s: float) -> Callable[[float], float]:
    """The quantile function of a Pareto delay with this mean (above 0) and standard deviation.

    Its shape is 1 + sqrt(1 + (mean/sd)^2), above 2, so that it has a variance.
    """
    if sd_s == 0.0:
        return lambda fraction: mean_s
    least_s, power = least_pareto_s(mean_s, sd_s), -1.0 / _shape(mean_s, sd_s)
    return lambda fraction: least_s * (1.0 - fraction) ** power


def least_pareto_s(mean_s: float, sd_s: float) -> float:
    """The least value of that delay."""
    if sd_s == 0.0 or mean_s == 0.0:
        return mean_s
    shape = _shape(mean_s, sd_s)
    return mean_s * ((shape - 1.0) / shape)


def exponential(mean_s: float, part_s: float) -> Callable[[float], float]:
    """The quantile function of a delay of this mean, of which this part is exponential; of all of it at most."""
    scale_s = min(part_s, mean_s)
    least_s = mean_s - scale_s
    return lambda fraction: least_s - scale_s * math.log1p(-fraction)


def _shape(mean_s: float, sd_s: float) -> float:
    return 1.0 + math.sqrt(1.0 + (mean_s / sd_s) ** 2)
