"""V1 to V8 and V16: what the noise-free model has to give."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.optimize import brentq

from testbed.routing.simplex import project
from testbed.theory.discrete import critical_update_gain
from testbed.theory.stability import Floats
from testbed.verification.finding import Finding, within
from testbed.verification.mode import dominant_mode

_KICK = 1e-6  # of a share: far from any bound, so that the projection stays linear


def delayed_integrator(quick: bool) -> Iterator[Finding]:
    """V1: two cells whose cost is their rate, by the projected update of the testbed, costs d updates old."""
    for delay in (1, 2, 5, 10):
        expected = critical_update_gain(delay)

        def growth(gain: float, delay: int = delay) -> float:
            return dominant_mode(_updates(gain, delay)).growth

        gain = float(brentq(growth, 0.8 * expected.gain, 1.25 * expected.gain, rtol=1e-5))
        period = dominant_mode(_updates(gain, delay)).period
        source = "theory 2.6(a): g = 2 sin(pi/(2(2d+1)))"
        what = f"critical gain, cost = rate, {delay} updates late"
        yield within("V1", what, source, "fluid", expected=expected.gain, measured=gain, relative=0.01)
        what = f"period at the edge, {delay} updates late"
        yield within(
            "V1", what, "theory 2.6(a): 4d + 2", "fluid",
            expected=expected.period_s, measured=period, relative=0.01, unit="updates",
        )  # fmt: skip


def _updates(gain: float, delay: int) -> Floats:
    """The share of the first of two equal cells less a half, over six periods, after six to settle into one mode."""
    length = 12 * (4 * delay + 2)
    share = np.full(length + delay + 1, 0.5)
    share[: delay + 1] += _KICK
    for k in range(delay, length + delay):
        old = share[k - delay]
        moved = [share[k] - gain * old, (1.0 - share[k]) - gain * (1.0 - old)]
        share[k + 1] = project(moved, (True, True))[0]
    return np.asarray(share[len(share) // 2 :] - 0.5)
