"""V16: agents between two links who see latencies on a board that is refreshed every T."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.optimize import brentq

from testbed.theory.bulletin_board import best_response, share_over_time, smooth_imitation
from testbed.verification.finding import Finding, within

_SOURCE = "theory 5.3 (Fischer and Voecking 2005)"
_POINTS = 200


def oscillation(quick: bool) -> Iterator[Finding]:
    """Best response with T = 1 in units of the wake-up time, and the threshold of smooth imitation."""

    def latencies(share: float) -> tuple[float, float]:
        return max(0.0, share - 0.5), max(0.0, 0.5 - share)  # beta = 1

    path = share_over_time(latencies, best_response, 1.0, 0.6, 60, _POINTS)[40 * _POINTS :]
    above = path - 0.5
    crossings = np.flatnonzero((above[:-1] < 0.0) & (above[1:] >= 0.0))
    for what, expected, measured, unit in (
        ("period", 2.0, float(np.diff(crossings).mean()) / _POINTS, "T"),
        ("peak share", 0.731, float(path.max()), ""),
        ("largest excess latency", 0.231, float(np.abs(above).max()), "beta"),
    ):
        yield within(
            "V16", f"best response by a board, T=1: {what}", _SOURCE, "fluid",
            expected=expected, measured=measured, relative=0.01, unit=unit,
        )  # fmt: skip
    yield within(
        "V16", "smooth imitation by a board: alpha beta T at which it begins to oscillate", _SOURCE, "fluid",
        expected=4.0, measured=float(brentq(_growth, 2.0, 8.0, xtol=1e-5)), relative=0.01,
    )  # fmt: skip


def _growth(product: float) -> float:
    """Log of the factor by which a small error of the share grows in one refresh, T = 1, beta = 1/10."""
    small, beta = 1e-6, 0.1
    path = share_over_time(
        lambda share: (beta * share, beta * (1.0 - share)),
        smooth_imitation(product / beta),
        1.0,
        0.5 + small,
        1,
        _POINTS,
    )
    return float(np.log(abs(path[-1] - 0.5) / small))
