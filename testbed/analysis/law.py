"""One law at one node, as it was checked."""

from __future__ import annotations

import math
from typing import NamedTuple

INSTANT_TOLERANCE_S = 1e-9  # what dividing by the time scale and subtracting may cost


class Law(NamedTuple):
    """One law at one node, or of one step on the way: whether it held, and the numbers.

    Attributes:
        name: conservation, little or causality.
        place: the node, cell or step.
        holds: whether it was kept.
        detail: the numbers.
        error: relative, where the law is an equation of numbers.
        at_s: of the first breach, scenario time; NaN: it has no instant.
        node: at which the first breach was, where the place is none.
    """

    name: str
    place: str
    holds: bool
    detail: str
    error: float = 0.0
    at_s: float = math.nan
    node: str = ""
