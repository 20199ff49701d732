"""The slowest mode of the loop of flow routing about its optimum: how fast a disturbance dies, and at which period.

The linear delay differential equations of all cells and lines are turned into a matrix by collocation at Chebyshev
points over the longest delay; its eigenvalues are the roots of the loop. Cells must answer without a memory of their
own (memoryless work). Directions in which only the roles of the roots change, while every cell gets the same, neither
grow nor decay; they are left out.

Source: Breda, Maset and Vermiglio, Pseudospectral differencing methods for characteristic roots of delay differential
equations (SIAM J. Scientific Computing 27, 2005); theory.md, section 2.5, the table of damping.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import null_space

from testbed.theory.stability import CellResponse, Floats, Source

_POINTS = 24  # of the collocation: roots of table 2.5 to seven digits
_MOST_STATES = 2000  # of the matrix, beyond which its eigenvalues take minutes
_NEUTRAL = 1e-7  # of the fastest rate: what is this slow neither grows nor decays


class SlowestMode(NamedTuple):
    """The root of the loop with the largest real part.

    Attributes:
        growth_per_s: its real part; below 0: disturbances die away.
        frequency_per_s: its imaginary part, from 0; 0: without oscillation.
    """

    growth_per_s: float
    frequency_per_s: float

    @property
    def fold_s(self) -> float:
        """Time in which a disturbance shrinks (or grows) e-fold."""
        return 1.0 / abs(self.growth_per_s)

    @property
    def damping_ratio(self) -> float:
        """1: no overshoot; 0: the edge of stability."""
        return -self.growth_per_s / math.hypot(self.growth_per_s, self.frequency_per_s)

    @property
    def period_s(self) -> float:
        """Infinite where nothing oscillates."""
        return 2 * math.pi / self.frequency_per_s if self.frequency_per_s > 0.0 else math.inf


def slowest_mode(cells: Sequence[CellResponse], sources: Sequence[Source]) -> SlowestMode | None:
    """The dominant root; None where nothing moves, nothing is delayed, or the matrix would be too large.

    Args:
        cells: their `a_per_s` counts alone.
        sources: the lines that move their shares.
    """
    moving = [source for source in sources if source.gain > 0.0 and source.support.sum() > 1]
    if not moving:
        return None
    bases = [_moves(source.support) for source in moving]
    size = len(cells) + sum(basis.shape[1] for basis in bases)
    parts = _delayed_parts(cells, moving, bases, size)
    longest_s = max(parts)
    if longest_s <= 0.0 or size * (_POINTS + 1) > _MOST_STATES:
        return None
    roots = np.linalg.eigvals(_generator(parts, size, longest_s))
    fastest = max(max(cell.a_per_s for cell in cells), 1.0 / longest_s)
    roots = roots[np.abs(roots) > _NEUTRAL * fastest]
    slowest = roots[np.argmax(roots.real)]
    return SlowestMode(float(slowest.real), abs(float(slowest.imag)))


def _moves(support: NDArray[np.bool_]) -> Floats:
    """Orthonormal directions in which the shares of a line can move; shape (cells, directions)."""
    within = np.eye(len(support))[:, support]
    return np.asarray(within @ null_space(np.ones((1, within.shape[1]))))


def _delayed_parts(
    cells: Sequence[CellResponse], sources: Sequence[Source], bases: Sequence[Floats], size: int
) -> dict[float, Floats]:
    """The matrices A_d of y'(t) = sum_d A_d y(t - d), by delay d; y holds the cells, then the moves of each line."""
    parts: dict[float, Floats] = {0.0: np.zeros((size, size))}
    count = len(cells)
    parts[0.0][:count, :count] = -np.diag([cell.a_per_s for cell in cells])
    first = count
    for source, basis in zip(sources, bases, strict=True):
        mine = slice(first, first + basis.shape[1])
        for j in np.flatnonzero(source.support).tolist():
            arriving = parts.setdefault(float(source.travel_s[j]), np.zeros((size, size)))
            arriving[j, mine] += basis[j]
            seen = parts.setdefault(float(source.age_s[j]), np.zeros((size, size)))
            seen[mine, j] -= source.gain * source.slope[j] * basis[j]
        first = mine.stop
    return parts


def _generator(parts: dict[float, Floats], size: int, longest_s: float) -> Floats:
    """The collocated generator of the solutions: y' at the present, differentiation of the polynomial before it."""
    nodes = np.cos(np.pi * np.arange(_POINTS + 1) / _POINTS)  # 1: now, -1: the longest delay ago
    differences = _differentiation(nodes) * (2.0 / longest_s)
    matrix: Floats = np.asarray(np.kron(differences, np.eye(size)), np.float64)
    matrix[:size] = 0.0
    for delay_s, part in parts.items():
        matrix[:size] += np.kron(_interpolation(nodes, 1.0 - 2.0 * delay_s / longest_s), part)
    return matrix


def _weights(nodes: Floats) -> Floats:
    """Barycentric weights of Chebyshev points of the second kind."""
    weights = (-1.0) ** np.arange(len(nodes))
    weights[[0, -1]] *= 0.5
    return np.asarray(weights)


def _differentiation(nodes: Floats) -> Floats:
    weights = _weights(nodes)
    gaps = nodes[:, None] - nodes[None, :] + np.eye(len(nodes))
    matrix = weights[None, :] / weights[:, None] / gaps
    np.fill_diagonal(matrix, 0.0)
    np.fill_diagonal(matrix, -matrix.sum(axis=1))
    return np.asarray(matrix)


def _interpolation(nodes: Floats, at: float) -> Floats:
    """The row that evaluates the polynomial through the nodes at a point; shape (1, nodes)."""
    gaps = at - nodes
    hit = np.abs(gaps) < 1e-14
    if hit.any():
        return np.asarray(hit[None, :] * 1.0)
    row = _weights(nodes) / gaps
    return np.asarray((row / row.sum())[None, :])
