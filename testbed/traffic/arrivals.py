"""Planned arrival instants: Poisson, evenly spaced, gamma; at a constant rate or in stages.

All start from a renewal process of rate 1, mapped through the inverse of the cumulative rate: piecewise constant
rates are exact, and stretching time by a power of two stretches every instant to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from testbed.draw import key_base
from testbed.scenario.schema import GammaArrivals, Traffic

Instants = NDArray[np.float64]
# Gaps are drawn in blocks of a fixed size: the sums, and so the instants, do not hang on how many are asked for.
_BLOCK = 4096


class Piece(NamedTuple):
    """A span of constant rate: from `at_s` to `until_s`."""

    at_s: float
    until_s: float
    rate_per_s: float

    @property
    def arrivals(self) -> float:
        """Mean number of arrivals in the span."""
        return self.rate_per_s * (self.until_s - self.at_s)


def numpy_stream(seed: int, root: str, index: int, purpose: str) -> np.random.Generator:
    """The stream of one purpose for one line of a root's traffic."""
    return np.random.Generator(np.random.PCG64(key_base(seed, root, str(index), purpose)))


def draw_arrivals(
    kind: str | GammaArrivals, pieces: list[Piece], rng: np.random.Generator, phase: float = 0.5
) -> Instants:
    """Arrival instants within the pieces, rising; seconds.

    Args:
        kind: `poisson`, `evenly_spaced`, or gamma gaps with a coefficient of variation.
        pieces: spans of constant rate, one after another without gaps.
        rng: the stream of this line of traffic.
        phase: where in a gap the first evenly spaced arrival falls, in (0, 1); half a gap, unless given.
    """
    total = sum(piece.arrivals for piece in pieces)
    if kind == "evenly_spaced":
        unit = np.arange(int(total) + 1, dtype=np.float64) + phase
    elif isinstance(kind, GammaArrivals):
        unit = _gamma_process(kind.gamma.cv, total, rng)
    else:
        unit = _renewal(rng.standard_exponential, 0.0, total)
    return _mapped(unit, pieces)


def even_phase(position: int, count: int) -> float:
    """The phase of the evenly spaced line `position` of `count`: roots of equal rate interleave evenly."""
    return (position + 0.5) / count


def pieces_of(traffic: Traffic, stage_rates_per_s: list[float], duration_s: float) -> list[Piece]:
    """The spans of constant rate of a line of traffic over the run; before its first stage the rate is 0.

    Args:
        traffic: a line with `rate`, `load` or `stages`.
        stage_rates_per_s: the rate of each stage; of the whole line where there are no stages.
        duration_s: arrivals stop here.
    """
    starts = [0.0] if traffic.stages is None else [stage.at for stage in traffic.stages]
    ends = [*starts[1:], duration_s]
    pieces = [Piece(0.0, min(starts[0], duration_s), 0.0)] if starts[0] > 0.0 else []
    for at_s, until_s, rate_per_s in zip(starts, ends, stage_rates_per_s, strict=True):
        if at_s < duration_s:
            pieces.append(Piece(at_s, min(until_s, duration_s), rate_per_s))
    return pieces


def _gamma_process(cv: float, total: float, rng: np.random.Generator) -> Instants:
    """A stationary renewal process of rate 1 with gamma gaps.

    The first instant is the rest of the gap that covers time 0 (a uniform share of a gap drawn in proportion
    to its length), or the mean count would be off by (cv^2 - 1) / 2.
    """
    shape = 1.0 / cv**2
    first = float(rng.random() * rng.gamma(shape + 1.0) / shape)
    return _renewal(lambda count: rng.gamma(shape, 1.0 / shape, count), first, total)


def _renewal(draw_gaps: Callable[[int], Instants], first: float, total: float) -> Instants:
    """Points of a renewal process up to `total`; `first` is a point already (0: the process starts there)."""
    blocks = [np.array([first])] if first > 0.0 else []
    last = first
    while last < total:
        block = last + np.cumsum(draw_gaps(_BLOCK))
        blocks.append(block)
        last = float(block[-1])
    return np.concatenate(blocks) if blocks else np.empty(0)


def _mapped(unit: Instants, pieces: list[Piece]) -> Instants:
    """Unit-rate points to instants, through the inverse of the cumulative rate."""
    parts: list[Instants] = []
    passed = 0.0
    for piece in pieces:
        until = passed + piece.arrivals
        if until > passed:
            inside = unit[(unit >= passed) & (unit < until)]
            at_s = piece.at_s + (inside - passed) / piece.rate_per_s
            parts.append(at_s[at_s < piece.until_s])
        passed = until
    return np.concatenate(parts) if parts else np.empty(0)
