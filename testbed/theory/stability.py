"""Critical step and period of the delayed loop of flow routing through all cells and roots of a scenario.

Between equal cells the loop is a scalar (see `serving/delayed_loop.py`); cells, delays and allowed sets that differ
make it a matrix, whose eigenvalues take the place of the scalar.

Sources: theory.md, sections 2.5 and 2.7; measures.md, section 5.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from testbed.serving.delayed_loop import CellResponse, Complex, Edge, Floats

__all__ = ["CellResponse", "Edge", "Floats", "Source", "critical_factor"]

_BLOCK = 128  # frequencies looked at together
_START = 1e-3  # of the slowest rate of the loop: far below any crossing
_GROWTH = 1.04  # ratio of neighbouring frequencies, until their distance reaches the finest scale
_FINE = 0.05  # radians of delay or work between neighbouring frequencies
_FAR = 50.0  # times the fastest rate of the loop: where a search without a finding ends
# The projectors leave one eigenvalue at 0 when all travel is alike: what is this much smaller than the loop can be
# is rounding, and its sign says nothing.
_NOISE = 1e-9
_ON_AXIS = 1e-6  # the imaginary part of an eigenvalue at a crossing, of its size
_SAME = 1e-9  # of an eigenvalue: nearer ones are one
_REFINE = 60  # halvings of the step in which a crossing was found


class Source(NamedTuple):
    """One line of traffic that moves its shares: a root and a class.

    Attributes:
        gain: its rate times its step, lambda * eta.
        slope: d cost / d in flight of each cell as it reckons, shape (cells,).
        travel_s: mean travel of its requests to each cell.
        age_s: mean age of its observation of each cell when it is used.
        support: the cells among which its shares move.
    """

    gain: float
    slope: Floats
    travel_s: Floats
    age_s: Floats
    support: NDArray[np.bool_]


def critical_factor(cells: Sequence[CellResponse], sources: Sequence[Source]) -> Edge:
    """The factor on all steps at which the loop through all cells and roots begins to oscillate.

    The loop matrix is L_jk(s) = G_j(s)/s * sum_i gain_i exp(-s (travel_ij + age_ik)) (P_i)_jk slope_ik, P_i the
    projector of a root's moves. At the edge an eigenvalue of factor * L(i w) is -1. The factor and the period are
    infinite and NaN where no factor makes it oscillate (no delay, or no root has a choice).

    Source: theory.md, section 2.7.
    """
    moving = _merged([source for source in sources if source.gain > 0.0 and source.support.sum() > 1])
    if not moving:
        return Edge(math.inf, math.nan)
    best = Edge(math.inf, math.nan)
    # |G(i w)| <= 4/w beyond w = 4/W, so an eigenvalue at w is at most 4 * strength / w^2.
    strength = sum(source.gain * float(source.slope[source.support].max()) for source in moving)
    slow = max(4.0 / cell.sojourn_s for cell in cells)
    previous: tuple[float, Complex] | None = None
    for frequencies in _frequencies(cells, moving):
        values = np.linalg.eigvals(_loop(frequencies, cells, moving))
        for frequency, eigenvalues in zip(frequencies.tolist(), values, strict=True):
            if previous is not None:
                eigenvalues = _in_order_of(previous[1], eigenvalues)
                for edge in _crossings(previous, (frequency, eigenvalues), strength, cells, moving):
                    best = min(best, edge)
            previous = (frequency, eigenvalues)
        if frequencies[-1] > slow and frequencies[-1] ** 2 > 4.0 * strength * best.gain:
            break
    return best


def _merged(sources: Sequence[Source]) -> list[Source]:
    """One source for all that differ in their gains alone: their terms of the loop matrix add up."""
    merged: dict[tuple[bytes, ...], Source] = {}
    for source in sources:
        key = tuple(np.asarray(each).tobytes() for each in source[1:])
        known = merged.get(key)
        merged[key] = source if known is None else known._replace(gain=known.gain + source.gain)
    return list(merged.values())


def _frequencies(cells: Sequence[CellResponse], sources: Sequence[Source]) -> Iterator[Floats]:
    """Angular frequencies in rising blocks: a constant ratio first, a constant distance later."""
    delays = [source.travel_s[source.support] + source.age_s[source.support] for source in sources]
    positive = [float(delay) for each in delays for delay in each if delay > 0.0]
    rates = [cell.a_per_s for cell in cells] + [1.0 / delay for delay in positive]
    works = [cell.sojourn_s for cell in cells if cell.transform is not None]
    finest = _FINE / max([*positive, *works, *(1.0 / rate for rate in rates if not positive)])
    fastest = max([*rates, *(1.0 / each for each in works)])
    last = _START * min(rates)
    while last < _FAR * fastest:
        block = np.empty(_BLOCK)
        for i in range(_BLOCK):
            block[i] = last
            last += min(last * (_GROWTH - 1.0), finest)
        yield block


def _loop(frequencies: Floats, cells: Sequence[CellResponse], sources: Sequence[Source]) -> Complex:
    """The loop matrix at each frequency; shape (frequencies, cells, cells)."""
    s: Complex = np.asarray(1j * frequencies, dtype=np.complex128)
    total = np.zeros((len(s), len(cells), len(cells)), dtype=np.complex128)
    for source in sources:
        projector = np.diag(source.support * 1.0) - np.outer(source.support, source.support) / (
            source.support.sum()
        )
        travel = np.exp(-s[:, None] * source.travel_s)
        news = np.exp(-s[:, None] * source.age_s) * source.slope
        total += source.gain * travel[:, :, None] * projector * news[:, None, :]
    answers = np.stack([cell.at(s) for cell in cells], axis=1)
    looped: Complex = (answers / s[:, None])[:, :, None] * total
    return looped


def _in_order_of(before: Complex, eigenvalues: Complex) -> Complex:
    """The eigenvalues in the order of those at the neighbouring frequency, each with its nearest."""
    _, order = linear_sum_assignment(np.abs(before[:, None] - eigenvalues[None, :]))
    return np.asarray(eigenvalues[order])


def _crossings(
    before: tuple[float, Complex],
    after: tuple[float, Complex],
    strength: float,
    cells: Sequence[CellResponse],
    sources: Sequence[Source],
) -> Iterator[Edge]:
    """The edges between two neighbouring frequencies: eigenvalues that cross the negative real axis."""
    noise = _NOISE * strength / after[0] ** 2
    crossed: list[complex] = []  # equal cells have equal eigenvalues: one of them tells for all
    for one, other in zip(before[1].tolist(), after[1].tolist(), strict=True):
        if max(abs(one), abs(other)) <= noise:
            continue
        if one.imag * other.imag < 0.0 and one.real < 0.0 and other.real < 0.0:
            if any(abs(one - other_one) <= _SAME * abs(one) for other_one in crossed):
                continue
            crossed.append(one)
            frequency, value = _crossing(before[0], after[0], one, cells, sources)
            # An eigenvalue may also change its sign by passing through 0: that is no crossing of the axis.
            if abs(value) > noise and abs(value.imag) < _ON_AXIS * abs(value):
                yield Edge(-1.0 / value.real, 2 * math.pi / frequency)


def _crossing(
    low: float, high: float, start: complex, cells: Sequence[CellResponse], sources: Sequence[Source]
) -> tuple[float, complex]:
    """The frequency of the crossing and the eigenvalue there, by halving; `start` is the eigenvalue at `low`."""
    value = start
    for _ in range(_REFINE):
        middle = 0.5 * (low + high)
        eigenvalues = np.linalg.eigvals(_loop(np.array([middle]), cells, sources)[0])
        nearest = complex(eigenvalues[np.argmin(np.abs(eigenvalues - value))])
        if nearest.imag * value.imag > 0.0:
            low, value = middle, nearest
        else:
            high = middle
    return low, value
