"""Critical gains of flow routing that moves in updates, not continuously.

Without inertia, x(k+1) = x(k) - g x(k-d): the cost follows the rate itself. With inertia the cell relaxes between
updates, and the gain counts the static answer of the cell to one update.

Source: theory.md, section 2.6.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq

from testbed.theory.stability import Edge, Floats


def critical_update_gain(delay_updates: int) -> Edge:
    """The edge of x(k+1) = x(k) - g x(k-d), its period in updates: g = 2 sin(pi / (2 (2d + 1))), 4d + 2 updates."""
    return Edge(2.0 * math.sin(math.pi / (2 * (2 * delay_updates + 1))), 4 * delay_updates + 2)


def monotone_update_gain(delay_updates: int) -> float:
    """The gain up to which x(k+1) = x(k) - g x(k-d) does not oscillate at all: d^d / (d+1)^(d+1)."""
    d = delay_updates
    return float(d**d / (d + 1) ** (d + 1))


def critical_held_gain(relaxations: float, delay_updates: int) -> Edge:
    """The edge of (z - 1)(z - phi) z^d + G (1 - phi) = 0, phi = exp(-a dt); its period in updates.

    Args:
        relaxations: a dt, the interval in relaxation times of the cell; above 0.
        delay_updates: d; the update at k+1 uses the cost at k-d, which is (d+1) dt old then.

    Source: theory.md, equation (8).
    """
    kept = math.exp(-relaxations)

    def excess(gain: float) -> float:
        return float(np.abs(_roots(kept, delay_updates, gain)).max()) - 1.0

    # The root at 1 leaves inwards with any gain; G is at most some 2 / (1 - phi) for d = 0.
    gain = float(brentq(excess, 1e-6, 4.0 / (1.0 - kept), xtol=1e-13))
    roots = _roots(kept, delay_updates, gain)
    angle = abs(float(np.angle(roots[np.argmax(np.abs(roots))])))
    return Edge(gain, 2 * math.pi / angle)


def _roots(kept: float, delay_updates: int, gain: float) -> Floats:
    polynomial = np.zeros(delay_updates + 3)
    polynomial[:3] = 1.0, -(1.0 + kept), kept
    polynomial[-1] += gain * (1.0 - kept)
    return np.asarray(np.roots(polynomial))
