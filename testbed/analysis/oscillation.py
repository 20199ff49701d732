"""How much the requests in flight swing between the cells, at which period, and whether chance would do it.

z_j = N_j / mean(N_j), less the mean over the cells of the same, so that a common swing of the load drops out.
The amplitude is always defined. A period is claimed only where the swing repeats itself: its autocorrelation at
the lag of the dominant spectral peak is at least a half, above the 99th percentile of what first-order
autoregressive noise gives by the same procedure, and the window holds at least five periods.

Source of the definitions: measures.md, section 3. Surrogates: Allen and Smith, "Monte Carlo SSA: detecting
irregular oscillations in the presence of colored noise", Journal of Climate 9 (1996).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from testbed.analysis.records import Floats
from testbed.theory.swing import relative_swing

SURROGATES = 999
LEAST_COHERENCE = 0.5
LEAST_PERIODS = 5
SIGNIFICANCE = 0.99
# Longer series are held against surrogates of this length, which scatter more: the test errs on the strict side.
LONGEST_SURROGATE = 2048


class Cycle(NamedTuple):
    """The dominant cycle of a series.

    Attributes:
        lag_bins: its period in bins; NaN for a series that does not move.
        coherence: autocorrelation at that lag; NaN where less than half of the series overlaps.
    """

    lag_bins: float
    coherence: float


class Oscillation(NamedTuple):
    """The swing of requests between cells.

    Attributes:
        amplitude: max over cells of sqrt(2) sd(z_j), dimensionless: the amplitude of a pure sine of that size.
        by_cell: sqrt(2) sd(z_j) of each cell; NaN for a cell without requests.
        period_s: period of the cell of the largest amplitude; NaN unless `significant`.
        coherence: its autocorrelation at the dominant lag.
        threshold: the coherence that it had to exceed.
        significant: whether the cycle is more than noise.
    """

    amplitude: float
    by_cell: tuple[float, ...]
    period_s: float
    coherence: float
    threshold: float
    significant: bool


def oscillation(in_flight: Floats, bin_s: float, seed: int) -> Oscillation:
    """Amplitude, and period with its significance, of the cells' requests in flight.

    Args:
        in_flight: mean requests in flight per cell and bin of an even grid: shape (cells, bins).
        bin_s: width of a bin, seconds.
        seed: of the surrogates.
    """
    z = relative_swing(in_flight)
    by_cell = math.sqrt(2.0) * z.std(axis=1)
    if not len(z) or np.isnan(by_cell).all():
        return Oscillation(0.0, tuple(by_cell.tolist()), math.nan, math.nan, math.nan, False)
    worst = int(np.nanargmax(by_cell))
    cycle = dominant_cycle(z[worst])
    threshold = coherence_threshold(z[worst], seed)
    significant = is_significant(cycle, threshold, z.shape[1])
    period_s = cycle.lag_bins * bin_s if significant else math.nan
    return Oscillation(
        float(by_cell[worst]), tuple(by_cell.tolist()), period_s, cycle.coherence, threshold, significant
    )


def dominant_cycle(series: Floats) -> Cycle:
    """The lag of the highest peak of the Hann-windowed spectrum, and the autocorrelation there.

    Both are NaN for a series too short to hold five periods.
    """
    if len(series) < 2 * LEAST_PERIODS:
        return Cycle(math.nan, math.nan)
    lags, coherences = _cycles(series[np.newaxis, :])
    return Cycle(float(lags[0]), float(coherences[0]))


def coherence_threshold(series: Floats, seed: int) -> float:
    """The coherence that 99 % of 999 AR(1) surrogates of this series stay below.

    A surrogate counts with the coherence of its own dominant cycle, or with 0 where its window holds fewer than
    five of its periods, since it would then not be called significant either.
    """
    count = min(len(series), LONGEST_SURROGATE)
    if count < 2 * LEAST_PERIODS or series.std() == 0.0:
        return math.nan
    lags, coherences = _cycles(_surrogates(series, count, seed))
    qualified = np.where(lags * LEAST_PERIODS <= count, coherences, 0.0)
    return float(np.quantile(qualified, SIGNIFICANCE))


def is_significant(cycle: Cycle, threshold: float, bins: int) -> bool:
    """Whether a cycle is more than noise: coherent, above the threshold, and seen five times."""
    return (
        cycle.coherence >= LEAST_COHERENCE
        and cycle.coherence > threshold
        and cycle.lag_bins * LEAST_PERIODS <= bins
    )


def _surrogates(series: Floats, count: int, seed: int) -> Floats:
    """AR(1) noise of the variance and lag-one autocorrelation of the series: shape (SURROGATES, count)."""
    centred = series - series.mean()
    memory = float(np.clip(centred[:-1] @ centred[1:] / (centred @ centred), 0.0, 0.9999))
    shocks = np.random.default_rng(seed).standard_normal((SURROGATES, count))
    shocks[:, 0] /= math.sqrt(1.0 - memory**2)  # so that the noise is stationary from its first value on
    for i in range(1, count):
        shocks[:, i] += memory * shocks[:, i - 1]
    return shocks


def _cycles(series: Floats) -> tuple[Floats, Floats]:
    """Dominant lag, in bins, and coherence of each row: shapes (rows,)."""
    centred = series - series.mean(axis=1, keepdims=True)
    count = centred.shape[1]
    spectra = np.abs(np.fft.rfft(centred * np.hanning(count + 1)[:-1], axis=1))
    lags = count / _peak_positions(spectra)
    lags[np.isclose(centred.std(axis=1), 0.0, atol=1e-15)] = np.nan
    return lags, np.array([_autocorrelation(row, lag) for row, lag in zip(centred, lags, strict=True)])


def _peak_positions(spectra: Floats) -> Floats:
    """Position of the highest peak of each row, between bins; bin 0, the mean, is left out.

    The ratio of the peak to its larger neighbour gives the exact place of a pure tone under a Hann window.

    Source: Grandke, "Interpolation algorithms for discrete Fourier transforms of weighted signals", IEEE Trans.
    Instrumentation and Measurement 32 (1983).
    """
    which = np.arange(len(spectra))
    peaks = 1 + np.argmax(spectra[:, 1:], axis=1)
    peak = spectra[which, peaks]
    left = np.where(peaks > 1, spectra[which, peaks - 1], 0.0)
    right = spectra[which, np.minimum(peaks + 1, spectra.shape[1] - 1)]
    ratio = np.maximum(left, right) / np.where(peak > 0, peak, 1.0)
    shift = (2.0 * ratio - 1.0) / (1.0 + ratio)
    return np.asarray(peaks + np.clip(np.where(right >= left, shift, -shift), -0.5, 0.5), np.float64)


def _autocorrelation(centred: Floats, lag_bins: float) -> float:
    """Autocorrelation at a lag between bins, normalised by the overlap; NaN beyond half of the series."""
    if not lag_bins <= len(centred) / 2:
        return math.nan
    whole = int(lag_bins)
    part = lag_bins - whole
    return (1.0 - part) * _at_lag(centred, whole) + part * _at_lag(centred, whole + 1)


def _at_lag(centred: Floats, lag: int) -> float:
    count = len(centred)
    power = float(centred @ centred) / count
    return float(centred[: count - lag] @ centred[lag:]) / (count - lag) / power
