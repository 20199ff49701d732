"""Agents that choose between two links by a board that is refreshed every T, each waking at rate 1.

Between two refreshes the latencies on the board stay as they are, while shares of agents move on. Source: Fischer and
Voecking, Adaptive routing with stale information (PODC 2005); theory.md, section 5.3.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from testbed.theory.stability import Floats

Latencies = Callable[[float], tuple[float, float]]
"""Share of the first link to the latencies of both."""

Switching = Callable[[float, float], float]
"""Latency of the own link and of the other, as the board has them, to the rate at which an agent leaves."""


def best_response(own: float, other: float) -> float:
    """Everyone who wakes takes the better link."""
    return 1.0 if other < own else 0.0


def smooth_imitation(alpha: float) -> Switching:
    """Who wakes samples either link with probability a half, and goes there with alpha times what it gains."""
    return lambda own, other: 0.5 * min(1.0, alpha * max(0.0, own - other))


def share_over_time(
    latencies: Latencies,
    switching: Switching,
    refresh_s: float,
    start: float,
    refreshes: int,
    points: int = 200,
) -> Floats:
    """The share of the first link, `points` to a refresh, after the start; by Runge-Kutta steps of order 4."""
    width_s = refresh_s / points
    share, path = start, []
    for _ in range(refreshes):
        first, second = latencies(share)
        leaving, coming = switching(first, second), switching(second, first)
        for _ in range(points):
            share = _moved(share, leaving, coming, width_s)
            path.append(share)
    return np.array(path)


def _moved(share: float, leaving: float, coming: float, width_s: float) -> float:
    def velocity(at: float) -> float:
        return coming * (1.0 - at) - leaving * at

    k1 = velocity(share)
    k2 = velocity(share + width_s / 2 * k1)
    k3 = velocity(share + width_s / 2 * k2)
    k4 = velocity(share + width_s * k3)
    return share + width_s / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
