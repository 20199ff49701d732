"""How long a root waits for the next report of any cell, from a random instant on.

Reports of one period keep their distances, so their mean wait is exact: between neighbours in the period, at
distance g, it is g/2 on average, and more if the next one is lost. Reports of different periods drift past each
other; there the waits of the periods count as independent and each as uniform between 0 and twice its mean, which
is exact for reports at equal distances without loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.polynomial import Polynomial


class Reporter(NamedTuple):
    """One sender of reports: its period, an instant at which one arrives, and the share that is lost, below 1."""

    period_s: float
    arrives_at_s: float
    loss: float


def mean_wait_s(reporters: Sequence[Reporter]) -> float:
    """Mean time from a random instant to the next report that arrives; at least one reporter."""
    by_period: dict[float, list[Reporter]] = {}
    for each in reporters:
        by_period.setdefault(each.period_s, []).append(each)
    waits_s = [_wait_of_period_s(period_s, group) for period_s, group in by_period.items()]
    if len(waits_s) == 1:
        return waits_s[0]
    survival = Polynomial((1.0,))
    for wait_s in waits_s:
        survival *= Polynomial((1.0, -0.5 / wait_s))
    return float(survival.integ()(2.0 * min(waits_s)))


def _wait_of_period_s(period_s: float, reporters: Sequence[Reporter]) -> float:
    slots = sorted((each.arrives_at_s % period_s, each.loss) for each in reporters)
    offsets_s = [offset_s for offset_s, _ in slots]
    gaps_s = np.diff([*offsets_s, offsets_s[0] + period_s])  # from each to the next
    # The further wait at the instant of report i is p_i (gap_i + that at report i + 1); round the circle this is
    # constant + factor * itself.
    constant, factor = 0.0, 1.0
    for (_, loss), gap_s in zip(reversed(slots), reversed(gaps_s.tolist()), strict=True):
        constant, factor = loss * (gap_s + constant), loss * factor
    further_s = constant / (1.0 - factor)  # at the first report
    total = 0.0
    for (_, loss), gap_s in zip(reversed(slots), reversed(gaps_s.tolist()), strict=True):
        total += gap_s * (gap_s / 2 + further_s)
        further_s = loss * (gap_s + further_s)
    return total / period_s
