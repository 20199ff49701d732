"""A flapping link: down for a share of each period, which begins with it."""

from __future__ import annotations

import math

from testbed.scenario.link_words import Flap


def is_down(flap: Flap, at_s: float) -> bool:
    """Whether the link is down at this instant of run time."""
    since_s = flap.since or 0.0
    return at_s >= since_s and math.fmod(at_s - since_s, flap.period) < flap.down * flap.period
