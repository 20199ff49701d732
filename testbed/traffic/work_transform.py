"""Laplace transforms of the work that requests bring to a cell, scaled to mean 1.

A batch works for as many steps as a request has output tokens, so there the work follows the output tokens (the
prefill, short beside them, is left out). Source of the use: measures.md, section 5.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from testbed.scenario.schema import LogNormal, NormalWork, Scenario, Tokens, Traffic
from testbed.serving.delayed_loop import Complex, Floats, Transform, fixed_work
from testbed.traffic.capacity import trace_window
from testbed.traffic.work import mean_tokens

_POINTS = 256  # equally likely values that stand for a continuous distribution


class Part(NamedTuple):
    """One kind of request in a mix: its share of the requests, its mean tokens, its transform in tokens."""

    share: float
    mean: float
    transform: Transform


def cell_transform(scenario: Scenario, cell: str, shares: dict[tuple[str, int], float]) -> Transform | None:
    """Transform of the work that arrives at a cell; None for memoryless work.

    Args:
        scenario: in scenario time.
        cell: its name.
        shares: (root, index in its traffic) -> share of what arrives at the cell; they add up to 1.
    """
    service = scenario.cells[cell].service
    if service is not None:
        curve = service.rate_curve
        if service.normal is not None:
            return _clipped_normal(service.normal)
        is_fixed = service.fixed is not None or (curve is not None and service.work == "fixed")
        return fixed_work if is_fixed else None
    parts = [
        _part(scenario, scenario.roots[root].traffic[index], share)
        for (root, index), share in shares.items()
        if share > 0.0
    ]
    return mixed(parts) if parts else None


def mixed(parts: list[Part]) -> Transform:
    """Transform of a mix of works, scaled to mean 1."""
    mean = sum(part.share * part.mean for part in parts)
    total = sum(part.share for part in parts)

    def transform(s: Complex) -> Complex:
        return np.asarray(sum(part.share / total * part.transform(s * total / mean) for part in parts))

    return transform


def token_transform(tokens: Tokens) -> Transform:
    """E exp(-u tokens), as a function of u."""
    if tokens.fixed is not None:
        return _of_points(np.array([float(tokens.fixed)]))
    if tokens.geometric is not None:
        return _geometric(tokens.geometric.mean)
    middles = (np.arange(_POINTS) + 0.5) / _POINTS
    if tokens.lognormal is not None:
        return _of_points(_lognormal_points(tokens.lognormal, middles))
    assert tokens.quantiles is not None
    probabilities, counts = zip(*tokens.quantiles, strict=True)
    return _of_points(np.maximum(1.0, np.interp(middles, probabilities, counts)))


def _part(scenario: Scenario, line: Traffic, share: float) -> Part:
    if line.trace is None:
        tokens = scenario.classes[line.class_].output_tokens
        return Part(share, mean_tokens(tokens), token_transform(tokens))
    counts = trace_window(scenario, line.trace).output_tokens
    points = np.quantile(counts, (np.arange(_POINTS) + 0.5) / _POINTS) if len(counts) else np.ones(1)
    return Part(share, float(points.mean()), _of_points(points))


def _geometric(mean: float) -> Transform:
    def transform(u: Complex) -> Complex:
        once = np.exp(-u)
        return np.asarray(once / (mean - (mean - 1.0) * once))

    return transform


def _lognormal_points(words: LogNormal, probabilities: Floats) -> Floats:
    sigma = math.sqrt(math.log1p(words.cv**2))
    inverse: Callable[[float], float] = NormalDist().inv_cdf
    points = np.maximum(1.0, np.exp([sigma * inverse(p) for p in probabilities.tolist()]) * words.mean)
    # The middles of the slices miss the far tail: the mean is set right again.
    return np.asarray(points * max(1.0, words.mean) / points.mean())


def _clipped_normal(words: NormalWork) -> Transform:
    middles = ((np.arange(_POINTS) + 0.5) / _POINTS).tolist()
    points = np.maximum(0.0, [words.mean + words.sd * NormalDist().inv_cdf(each) for each in middles])
    return _of_points(points / points.mean())


def _of_points(points: NDArray[np.float64]) -> Transform:
    """Of equally likely values."""

    def transform(u: Complex) -> Complex:
        return np.asarray(np.exp(-u[..., None] * points).mean(axis=-1))

    return transform
