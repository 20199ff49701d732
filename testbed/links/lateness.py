"""Lateness of releases, counted in bins of equal ratio: small enough to log, fine enough for percentiles.

Bin 0 holds lateness up to 1 us; each further bin ends 5 % higher, so a percentile read from the bins is at most
5 % too high. The last bin holds everything from about 20 s on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

FIRST_END_S = 1e-6
RATIO = 1.05
BIN_COUNT = 346  # FIRST_END_S * RATIO**345 is 20 s
_PER_LOG = 1.0 / math.log(RATIO)


def bin_of(lateness_s: float) -> int:
    """The bin that counts this lateness."""
    if lateness_s <= FIRST_END_S:
        return 0
    return min(BIN_COUNT - 1, 1 + int(math.log(lateness_s / FIRST_END_S) * _PER_LOG))


def counts_by_bin(lateness_s: Sequence[float]) -> NDArray[np.int64]:
    """How many of these each bin counts, shape (BIN_COUNT,): `bin_of` each, at a fraction of the price for hundreds."""
    late_s = np.array(lateness_s, dtype=np.float64)
    above = np.maximum(late_s * (1.0 / FIRST_END_S), 1.0)
    index = (np.log(above) * _PER_LOG).astype(np.int64) + (late_s > FIRST_END_S)
    return np.bincount(np.minimum(index, BIN_COUNT - 1), minlength=BIN_COUNT)


def bin_end_s(index: int) -> float:
    """Upper end of a bin, seconds."""
    return FIRST_END_S * RATIO**index


def percentile_s(bins: Sequence[int], fraction: float) -> float:
    """The lateness that this fraction of the messages does not exceed, seconds; NaN when nothing was counted.

    Args:
        bins: counts per bin; shorter than BIN_COUNT where the upper bins are empty.
        fraction: from 0 to 1.
    """
    total = sum(bins)
    if total == 0:
        return math.nan
    wanted = fraction * total
    seen = 0
    for index, count in enumerate(bins):
        seen += count
        if seen >= wanted and count:
            return bin_end_s(index)
    return bin_end_s(len(bins) - 1)
