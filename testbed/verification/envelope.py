"""Growth and period of an oscillation in a measured series, whose other motions are filtered out.

The series is multiplied by a wave of about its period and averaged over two periods (Hann window): what remains is the
amplitude and the phase of the oscillation as they change in time. Jitter, drift and other periods average out.
"""

from __future__ import annotations

import math

import numpy as np

from testbed.verification.mode import Floats, Mode

_WINDOW = 2.0  # periods: the narrowest that leaves no trace of the mean and of twice the frequency
_LEAST_PERIODS = 3.0


def envelope(series: Floats, spacing_s: float, near_period_s: float) -> tuple[Floats, Floats]:
    """Amplitude and phase of an oscillation in time: shapes (points,) at the spacing of the series.

    Args:
        series: about any mean.
        spacing_s: between its points.
        near_period_s: a guess of the period, right to a third or so; the phase is relative to a wave of this period.

    Raises:
        ValueError: the series is shorter than three periods.
    """
    width = round(_WINDOW * near_period_s / spacing_s)
    if len(series) * spacing_s < _LEAST_PERIODS * near_period_s:
        raise ValueError(f"{len(series) * spacing_s:g} s hold less than three periods of {near_period_s:g} s")
    window = np.hanning(width + 2)[1:-1]
    at_s = np.arange(len(series)) * spacing_s
    wave = np.exp(-2j * math.pi * at_s / near_period_s)
    smooth = np.convolve((series - series.mean()) * wave, window / window.sum(), mode="valid")
    return np.asarray(2.0 * np.abs(smooth)), np.asarray(np.unwrap(np.angle(smooth)))


def measured_mode(series: Floats, spacing_s: float, near_period_s: float) -> Mode:
    """Growth per second by the slope of the log-envelope, and the period by that of the phase; arguments as `envelope`."""
    amplitude, phase = envelope(series, spacing_s, near_period_s)
    at_s = np.arange(len(amplitude)) * spacing_s
    growth = float(np.polyfit(at_s, np.log(amplitude), 1)[0])
    faster = float(np.polyfit(at_s, phase, 1)[0])
    return Mode(growth, 2 * math.pi / (2 * math.pi / near_period_s + faster))
