"""The swing of requests between cells: its definition, and what a noise-free trajectory swings.

Source of the definition: measures.md, section 3.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from testbed.theory.fluid import Trajectory
from testbed.theory.stability import Floats

CALM = 0.01  # an amplitude below this is nothing that anyone would see
_DYING = 0.5  # from the third to the last quarter: an amplitude that falls below this part of itself goes to nothing
_LEAST_CROSSINGS = 3


class Swing(NamedTuple):
    """What a trajectory does in the long run.

    Attributes:
        amplitude: max over cells of sqrt(2) sd(z_j) in its last quarter.
        period_s: mean distance of the upward crossings of the largest z_j; None where it settles, or has less than
            three.
        settles: whether the amplitude is below 0.01, or falls by half and more from one quarter to the next.
        in_flight: mean of each cell in the last quarter.
    """

    amplitude: float
    period_s: float | None
    settles: bool
    in_flight: Floats


def relative_swing(in_flight: Floats) -> Floats:
    """z_j: requests in flight over their mean, less the mean of that over the cells; shape (cells, instants) as given.

    A cell that never held a request is left out of the mean and is NaN.
    """
    means = in_flight.mean(axis=1, keepdims=True)
    used = means[:, 0] > 0
    z = np.full(in_flight.shape, np.nan)
    if used.any():
        relative = in_flight[used] / means[used]
        z[used] = relative - relative.mean(axis=0)
    return z


def long_run(path: Trajectory) -> Swing:
    """The swing of a trajectory that is long enough: a quarter of it holds several periods."""
    quarter = len(path.in_flight) // 4
    before, last = (
        relative_swing(part.T)
        for part in (path.in_flight[-2 * quarter : -quarter], path.in_flight[-quarter:])
    )
    amplitude, amplitude_before = _amplitude(last), _amplitude(before)
    settles = amplitude < CALM or amplitude < _DYING * amplitude_before
    half = relative_swing(path.in_flight[-2 * quarter :].T)
    period_s = None if settles else _period_s(half, path.spacing_s)
    return Swing(amplitude, period_s, settles, path.in_flight[-quarter:].mean(axis=0))


def _amplitude(z: Floats) -> float:
    deviations = z.std(axis=1)
    return math.sqrt(2.0) * float(np.nanmax(deviations)) if np.isfinite(deviations).any() else 0.0


def _period_s(z: Floats, spacing_s: float) -> float | None:
    largest = z[int(np.nanargmax(z.std(axis=1)))]
    centred = largest - largest.mean()
    up = np.flatnonzero((centred[:-1] < 0.0) & (centred[1:] >= 0.0))
    if len(up) < _LEAST_CROSSINGS:
        return None
    at = up - centred[up] / (centred[up + 1] - centred[up])
    return float(np.diff(at).mean()) * spacing_s
