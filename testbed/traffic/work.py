"""How many tokens requests bring: drawn counts, and the exact mean of what is drawn.

Counts are whole and at least 1. A continuous draw x becomes max(1, floor(x + u)), u uniform in [0, 1): rounding
by chance keeps the mean of x exactly, and the mean after the cut at 1 is E[max(x, 1)], which has closed forms.
The lognormal is shifted beforehand so that the mean after the cut is the one that the scenario names.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from testbed.scenario.schema import LogNormal, Tokens

Counts = NDArray[np.int64]
Quantiles = tuple[tuple[float, float], ...]


def draw_tokens(tokens: Tokens, count: int, rng: np.random.Generator) -> Counts:
    """Token counts of `count` requests, each at least 1; shape (count,).

    A longer draw from the same stream begins with the shorter one.
    """
    if tokens.fixed is not None:
        return np.full(count, tokens.fixed, dtype=np.int64)
    if tokens.geometric is not None:
        return rng.geometric(1.0 / tokens.geometric.mean, count).astype(np.int64)
    if tokens.lognormal is not None:
        return _draw_lognormal(tokens.lognormal, count, rng)
    assert tokens.quantiles is not None
    return _draw_quantiles(tokens.quantiles, count, rng)


def mean_tokens(tokens: Tokens) -> float:
    """The exact mean of what `draw_tokens` draws, rounding and the cut at 1 included."""
    if tokens.fixed is not None:
        return float(tokens.fixed)
    if tokens.geometric is not None:
        return tokens.geometric.mean
    if tokens.lognormal is not None:
        return max(1.0, tokens.lognormal.mean)
    assert tokens.quantiles is not None
    return _quantile_mean(tokens.quantiles)


def _draw_lognormal(words: LogNormal, count: int, rng: np.random.Generator) -> Counts:
    uniforms = rng.random((count, 3))
    if words.mean <= 1.0:
        return np.ones(count, dtype=np.int64)
    sigma = math.sqrt(math.log1p(words.cv**2))
    location = math.log(_mean_before_cut(words.mean, sigma)) - sigma**2 / 2
    # Box and Muller, for a fixed number of uniforms a request: 1 - u is never 0.
    normal = np.sqrt(-2.0 * np.log1p(-uniforms[:, 0])) * np.cos(2.0 * math.pi * uniforms[:, 1])
    return _rounded(np.exp(location + sigma * normal), uniforms[:, 2])


def _draw_quantiles(quantiles: Quantiles, count: int, rng: np.random.Generator) -> Counts:
    uniforms = rng.random((count, 2))
    probabilities, counts = zip(*quantiles, strict=True)
    return _rounded(np.interp(uniforms[:, 0], probabilities, counts), uniforms[:, 1])


def _rounded(continuous: NDArray[np.float64], uniforms: NDArray[np.float64]) -> Counts:
    return np.maximum(1, np.floor(continuous + uniforms)).astype(np.int64)


def _mean_before_cut(mean: float, sigma: float) -> float:
    """The mean of the lognormal x for which E[max(x, 1)] = mean, above 1; by bisection."""
    low, high = 0.0, mean
    for _ in range(200):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        low, high = (middle, high) if _mean_after_cut(middle, sigma) < mean else (low, middle)
    return high


def _mean_after_cut(mean: float, sigma: float) -> float:
    """E[max(x, 1)] of a lognormal x.

    Source: the partial expectation of the lognormal, as in the call price of Black and Scholes (1973).
    """
    if sigma == 0.0:
        return max(mean, 1.0)
    upper = math.log(mean) / sigma + sigma / 2
    return mean * _normal_cdf(upper) + _normal_cdf(sigma - upper)


def _normal_cdf(z: float) -> float:
    return 0.5 * math.erfc(-z / math.sqrt(2.0))


def _quantile_mean(quantiles: Quantiles) -> float:
    """E[max(x, 1)] where the inverse distribution function of x is linear between the quantiles."""
    total = 0.0
    for (from_p, from_x), (to_p, to_x) in pairwise(quantiles):
        total += (to_p - from_p) * _mean_of_line(from_x, to_x)
    return total


def _mean_of_line(start: float, end: float) -> float:
    """Mean of max(x, 1) for x uniform between start and end (start <= end)."""
    if end <= 1.0 or start >= 1.0:
        return max(1.0, 0.5 * (start + end))
    return ((1.0 - start) + 0.5 * (end**2 - 1.0)) / (end - start)
