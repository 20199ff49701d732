"""The limit cycle of greedy routing between two equal cells: dD/dt = Lambda u(t - T) - a D, u = -sign(D), D = N_1 - N_2.

Exact for a constant a; for other rates accurate to 1 % up to T/W near 1, where cells begin to run empty.
Source: theory.md, section 7, equation (11).
"""

from __future__ import annotations

import math
from typing import NamedTuple


class LimitCycle(NamedTuple):
    """Period, and the peak of |N_1 - N_2|."""

    period_s: float
    peak: float


def greedy_cycle(rate_per_s: float, a_per_s: float, loop_delay_s: float) -> LimitCycle:
    """Equation (11).

    Args:
        rate_per_s: Lambda, of all roots together.
        a_per_s: marginal service rate of a cell.
        loop_delay_s: T, above 0.
    """
    kept = math.exp(-a_per_s * loop_delay_s)
    return LimitCycle(
        2.0 * loop_delay_s + 2.0 / a_per_s * math.log(2.0 - kept), rate_per_s / a_per_s * (1.0 - kept)
    )
