"""When to place requests one by one, and when to let shares flow: the rule of DLB.

Within one loop delay T nobody sees what the others did. If the roots place n_T = Lambda T requests in that time, each
at the least cost, the herd's rms difference between two cells is about n_T / sqrt(3); a random split by shares has
the noise sqrt(Lambda / a), 1/a the time for which a difference lasts. So discrete routing is the better one when
n_T^2 <= 3 Lambda / a. Rare, heavy requests (boulders) meet this, frequent ones (sand) do not.

Source: measures.md, section 5.
"""

from __future__ import annotations

import math
from typing import NamedTuple

HOLD = 1.5  # factor beyond equality before a decision is changed: at the edge both are equally good


class Decision(NamedTuple):
    """Which of the two, and the numbers behind it.

    Attributes:
        is_discrete: place one by one.
        decisions: n_T.
        most: n_T at equality, sqrt(3 Lambda / a).
    """

    is_discrete: bool
    decisions: float
    most: float


def decide(
    rate_per_s: float, loop_delay_s: float, a_per_s: float, was_discrete: bool | None = None
) -> Decision:
    """The decision for a class.

    Args:
        rate_per_s: Lambda, its requests at all roots.
        loop_delay_s: T.
        a_per_s: the rate at which a difference between the targets fades for this class, above 0.
        was_discrete: what was decided before; it is given up only beyond `HOLD`.
    """
    decisions = rate_per_s * loop_delay_s
    limit = 3.0 * rate_per_s / a_per_s
    if was_discrete is not None:
        limit *= HOLD if was_discrete else 1.0 / HOLD
    return Decision(decisions**2 <= limit, decisions, math.sqrt(3.0 * rate_per_s / a_per_s))
