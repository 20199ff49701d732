"""Growth and period of the one oscillation that a noise-free series holds."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Mode(NamedTuple):
    """An oscillation exp(growth t) cos(2 pi t / period + phase); per sample, or per second."""

    growth: float
    period: float


def dominant_mode(series: Floats, spacing: float = 1.0) -> Mode:
    """The mode of a series that holds only one, by least squares; growth per `spacing` unit.

    A pure mode fulfils y(k+2m) = 2 e^(rm) cos(wm) y(k+m) - e^(2rm) y(k) for every lag m; m is near a quarter of the
    period, where both numbers are best told apart.

    Args:
        series: about its mean 0, after other modes have died away; a few periods.
        spacing: between samples.

    Raises:
        ValueError: the series does not oscillate.
    """
    crossings = np.flatnonzero(series[:-1] * series[1:] < 0.0)
    if len(crossings) < 3:
        raise ValueError("the series crosses 0 less than three times: no oscillation to measure")
    half = float(np.diff(crossings).mean())
    lag = max(1, round(half / 2))
    now, later, last = series[: -2 * lag], series[lag:-lag], series[2 * lag :]
    (once, twice), *_ = np.linalg.lstsq(np.stack([later, now], axis=1), last, rcond=None)
    if twice >= 0.0:
        raise ValueError("the series is no oscillation")
    shrink = math.sqrt(-twice)
    angle = math.acos(min(1.0, max(-1.0, once / (2 * shrink))))
    return Mode(math.log(shrink) / (lag * spacing), 2 * math.pi * lag * spacing / angle)
