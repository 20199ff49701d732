"""How much traffic moves between cells, and how often it comes back to where it was.

Migration is half the sum of |dx| per minute, the mean over roots and classes weighted by their requests: 1 means that
each minute as much moves as all traffic is. Bounces are the changes A-B-A of the top cell per minute, the top cell of a
report period being the one with the largest share of all roots' traffic in it. The shares x are those of
`routing_shares`: a fixed split moves nothing; shares of a policy that chooses anew for each request are counted per
report period, so the fewer requests a period has, the more of their movement is chance.

Source: measures.md, section 3.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from testbed.analysis.records import Floats, Window
from testbed.analysis.routing_shares import StreamShares

MINUTE_S = 60.0


def migration_per_minute(streams: Sequence[StreamShares], window: Window) -> float:
    """Half the sum of |dx| per minute, over all roots and classes; NaN without requests."""
    if not streams:
        return float("nan")
    moved = sum(stream.weight * float(np.abs(np.diff(stream.shares, axis=0)).sum()) for stream in streams)
    return 0.5 * moved / _minutes(window)


def bounces_per_minute(streams: Sequence[StreamShares], window: Window, edges_s: Floats) -> float:
    """A-B-A changes of the top cell per minute; NaN without requests.

    Args:
        streams: the shares of every root and class.
        window: that they cover.
        edges_s: of the report periods.
    """
    if not streams:
        return float("nan")
    middles = (edges_s[:-1] + edges_s[1:]) / 2
    mixed = np.sum([stream.weight * stream.at(middles) for stream in streams], axis=0)
    return bounces(np.argmax(mixed, axis=1)) / _minutes(window)


def bounces(top: npt.NDArray[np.integer]) -> int:
    """How often the top goes from A to B and its next change leads back to A."""
    changed = top[np.flatnonzero(np.diff(top, prepend=-1))]
    return int((changed[2:] == changed[:-2]).sum())


def _minutes(window: Window) -> float:
    return (window.to_s - window.from_s) / MINUTE_S
