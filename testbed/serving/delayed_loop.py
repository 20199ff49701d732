"""The delayed loop between equal cells: how a cell answers its arrivals, and where flow routing begins to oscillate.

A cell answers a change of its arrival rate with G(s) = H / (1 - (1/W - a) H), H(s) = (1 - f(sW)) / s, where f is
the transform of the work scaled to mean 1; memoryless work gives 1 / (s + a). The loop is
1 + (K/s) G(s) exp(-sT) = 0, K = sigma * sum_i lambda_i eta_i. Plain numbers in, plain numbers out: balancers use it
as they run, and the theory of whole scenarios is built on it.

Sources: theory.md, section 2.5; measures.md, section 5.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Complex = NDArray[np.complex128]
Floats = NDArray[np.float64]
Transform = Callable[[Complex], Complex]

_HALVINGS = 60  # of an interval that holds a root: down to rounding
_START = 0.05  # of the slowest rate of the loop: below any crossing
_GROWTH = 1.05  # ratio of neighbouring frequencies, until their distance reaches the finest scale
_FINE = 0.1  # radians of delay or work between neighbouring frequencies
_FAR = 50.0  # times the fastest rate of the loop: where a search without a finding ends
_BLOCK = 64  # frequencies looked at together


class Edge(NamedTuple):
    """The edge of stability: the gain (or the factor on all gains) there, and the period of oscillation."""

    gain: float
    period_s: float


class CellResponse(NamedTuple):
    """How the in-flight count of a cell answers a change of its arrival rate.

    Attributes:
        a_per_s: marginal service rate l'(N), the inverse of the relaxation time.
        sojourn_s: mean sojourn W.
        transform: of the work, scaled to mean 1; None: memoryless.
    """

    a_per_s: float
    sojourn_s: float
    transform: Transform | None = None

    def at(self, s: Complex) -> Complex:
        """G(s), seconds; same shape as s."""
        if self.transform is None:
            return 1.0 / (s + self.a_per_s)
        held = (1.0 - self.transform(s * self.sojourn_s)) / s
        answer: Complex = held / (1.0 - (1.0 / self.sojourn_s - self.a_per_s) * held)
        return answer


def memoryless_work(s: Complex) -> Complex:
    """Transform of exponential work of mean 1."""
    answer: Complex = 1.0 / (1.0 + s)
    return answer


def fixed_work(s: Complex) -> Complex:
    """Transform of work that is always 1."""
    return np.exp(-s)


def edge_angle(relaxations: float) -> float:
    """theta in (0, pi/2) with theta tan(theta) = aT; `relaxations` is aT, the loop delay in relaxation times.

    Source: theory.md, equation (5).
    """
    low, high = 0.0, math.pi / 2
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if middle * math.sin(middle) < relaxations * math.cos(middle):
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


def critical_gain(a_per_s: float, loop_delay_s: float) -> float:
    """The gain K (1/s^2) at which the loop of memoryless work begins to oscillate; infinite without delay.

    Source: theory.md, equation (5).
    """
    if loop_delay_s == 0.0:
        return math.inf
    theta = edge_angle(a_per_s * loop_delay_s)
    return a_per_s / loop_delay_s * theta / math.sin(theta)


def period_s(a_per_s: float, loop_delay_s: float) -> float:
    """The period at the edge of stability, memoryless work: 2 pi T / theta.

    Source: theory.md, equation (5).
    """
    return 2 * math.pi * loop_delay_s / edge_angle(a_per_s * loop_delay_s)


def critical_gain_of_work(cell: CellResponse, loop_delay_s: float) -> Edge:
    """The edge of the loop 1 + (K/s) G(s) exp(-sT) = 0 for any work; infinite and NaN without delay.

    Source: measures.md, section 5.
    """
    if loop_delay_s == 0.0:
        return Edge(math.inf, math.nan)
    if cell.transform is None:
        return Edge(critical_gain(cell.a_per_s, loop_delay_s), period_s(cell.a_per_s, loop_delay_s))
    best, bracket = math.inf, None
    step = _FINE / max(loop_delay_s, cell.sojourn_s)
    last = _START * min(cell.a_per_s, 1.0 / loop_delay_s)
    end = _FAR * max(cell.a_per_s, 1.0 / loop_delay_s, 1.0 / cell.sojourn_s)
    # |G(i w)| <= 4/w beyond w = 4/W, so a crossing at w needs a gain of at least w^2 / 4.
    while last < end and not (last > 4.0 / cell.sojourn_s and last**2 > 4.0 * best):
        frequencies = _rising(last, step)
        last = float(frequencies[-1])
        gain, found = _least_crossing(cell, loop_delay_s, frequencies)
        if gain < best:
            best, bracket = gain, found
    return Edge(math.inf, math.nan) if bracket is None else _refined(cell, loop_delay_s, *bracket)


def _rising(first: float, step: float) -> Floats:
    """A block of frequencies: a constant ratio first, a constant distance later."""
    block = np.empty(_BLOCK)
    for i in range(_BLOCK):
        block[i] = first
        first += min(first * (_GROWTH - 1.0), step)
    return block


def _opened(cell: CellResponse, loop_delay_s: float, frequencies: Floats) -> Complex:
    """The loop without its gain, at each frequency."""
    s: Complex = np.asarray(1j * frequencies, dtype=np.complex128)
    return np.asarray(cell.at(s) / s * np.exp(-s * loop_delay_s))


def _least_crossing(
    cell: CellResponse, loop_delay_s: float, frequencies: Floats
) -> tuple[float, tuple[float, float] | None]:
    """The least gain at which the loop reaches -1 in this block, about, and the frequencies around it."""
    values = _opened(cell, loop_delay_s, frequencies)
    before, after = values[:-1], values[1:]
    crossing = (before.imag * after.imag <= 0.0) & (before.real < 0.0) & (after.real < 0.0)
    if not crossing.any():
        return math.inf, None
    sizes = np.where(crossing, np.maximum(-before.real, -after.real), 0.0)
    i = int(np.argmax(sizes))
    return 1.0 / float(sizes[i]), (float(frequencies[i]), float(frequencies[i + 1]))


def _refined(cell: CellResponse, loop_delay_s: float, low: float, high: float) -> Edge:
    """The edge between two frequencies, by halving."""
    start = float(_opened(cell, loop_delay_s, np.array([low]))[0].imag)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if float(_opened(cell, loop_delay_s, np.array([middle]))[0].imag) * start > 0.0:
            low = middle
        else:
            high = middle
    value = _opened(cell, loop_delay_s, np.array([low]))[0]
    return Edge(-1.0 / float(value.real), 2 * math.pi / low)
