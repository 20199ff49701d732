"""V1 to V4: critical steps and periods of flow routing, found by following the noise-free model.

An onset is where the growth of a small disturbance changes its sign, between a step that damps it and one that does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
from scipy.optimize import brentq

from testbed.routing.simplex import project
from testbed.theory.discrete import critical_update_gain
from testbed.theory.fluid import solve
from testbed.theory.fluid_rule import Gradient
from testbed.theory.stability import Edge, Floats
from testbed.verification.equal_cells import EqualCells
from testbed.verification.finding import Finding, within
from testbed.verification.mode import Mode, dominant_mode

KICK = 1e-6  # of a share: far from any bound, so that the model stays linear
_PRECISION = 1e-4  # of a critical step: a hundredth of the tightest tolerance
HYPERBOLIC = EqualCells(2, 0.7, "hyperbolic", 50.0, 100.0, 0.2)
EXPONENTIAL = EqualCells(2, 0.7, "exponential", 50.0, 10.0, 0.5)


def delayed_integrator(quick: bool) -> Iterator[Finding]:
    """V1: two cells whose cost is their rate, by the projected update of the roots, costs d updates old."""
    for delay in (1, 2, 5, 10):
        expected = critical_update_gain(delay)
        gain = float(
            brentq(
                lambda gain, delay=delay: dominant_mode(_updates(gain, delay)).growth,
                0.8 * expected.gain,
                1.25 * expected.gain,
                rtol=_PRECISION,
            )
        )
        period = dominant_mode(_updates(gain, delay)).period
        age = f"{delay} update{'s' if delay > 1 else ''} late"
        yield within(
            "V1", f"critical gain, cost = rate, {age}", "theory 2.6(a): 2 sin(pi/(2(2d+1)))", "fluid",
            expected=expected.gain, measured=gain, relative=0.01,
        )  # fmt: skip
        yield within(
            "V1", f"period there, {age}", "theory 2.6(a): 4d+2", "fluid",
            expected=expected.period_s, measured=period, relative=0.01, unit="updates",
        )  # fmt: skip


def critical_step(quick: bool) -> Iterator[Finding]:
    """V2: onset and period of two equal cells, for two families of service rates."""
    for setting, step, period_s in ((HYPERBOLIC, 1.209e-2, 18.8), (EXPONENTIAL, 0.380, 6.36)):
        onset = onset_of(setting)
        what = f"{setting.family}, C={setting.capacity_per_s:g}, N0={setting.half:g}, tau={setting.one_way_s:g} s"
        yield within(
            "V2", f"critical step, {what}", "theory 2.5, (6) and (7)", "fluid",
            expected=step, measured=onset.gain, relative=0.02, unit="/s^2",
        )  # fmt: skip
        yield within(
            "V2", f"period there, {what}", "theory 2.5, (5)", "fluid",
            expected=period_s, measured=onset.period_s, relative=0.02, unit="s",
        )  # fmt: skip


def root_count(quick: bool) -> Iterator[Finding]:
    """V3: three roots at the same total rate and the same step as one."""
    one, three = onset_of(HYPERBOLIC), onset_of(HYPERBOLIC, roots=3)
    for what, expected, measured, unit in (
        ("critical step", one.gain, three.gain, "/s^2"),
        ("period there", one.period_s, three.period_s, "s"),
    ):
        yield within(
            "V3", f"{what} of three roots, as of one at the same rate", "theory 2.5: only sum lambda eta counts",
            "fluid", expected=expected, measured=measured, relative=1e-6, unit=unit,
        )  # fmt: skip


def headroom_law(quick: bool) -> Iterator[Finding]:
    """V4: how the critical step falls as load rises."""
    cases = (
        (HYPERBOLIC, ((0.5, 7.877e-2), (0.7, 1.209e-2), (0.9, 3.473e-4))),
        (EXPONENTIAL, ((0.5, 1.570), (0.7, 0.3804), (0.9, 2.986e-2))),
    )
    for setting, steps in cases:
        for rho, step in steps:
            onset = onset_of(setting._replace(rho=rho))
            yield within(
                "V4", f"critical step at rho {rho:g}, {setting.family}", "theory 2.5, (6) and (7)", "fluid",
                expected=step, measured=onset.gain, relative=0.02, unit="/s^2",
            )  # fmt: skip


@cache
def onset_of(setting: EqualCells, roots: int = 1) -> Edge:
    """The step at which a disturbance neither grows nor decays, and its period; found by following the fluid."""
    predicted = setting.edge
    step = float(
        brentq(
            lambda step: _mode(setting, roots, step).growth,
            0.85 * predicted.gain,
            1.2 * predicted.gain,
            rtol=_PRECISION,
        )
    )
    return Edge(step, _mode(setting, roots, step).period)


def _mode(setting: EqualCells, roots: int, step: float) -> Mode:
    """Of the difference of two cells, from the fourth to the tenth period."""
    period_s = setting.edge.period_s
    spacing_s = min(setting.loop_delay_s / 16, period_s / 100)
    path = solve(
        setting.fluid(Gradient(np.full(roots, step)), roots=roots, kick=KICK),
        10 * period_s,
        in_flight=setting.in_flight,
        spacing_s=spacing_s,
    ).after(4 * period_s)
    return dominant_mode(path.in_flight[:, 0] - path.in_flight[:, 1], spacing_s)


def _updates(gain: float, delay: int) -> Floats:
    """The share of the first of two equal cells less a half, over six periods, after six to settle into one mode."""
    length = 12 * (4 * delay + 2)
    share = np.full(length + delay + 1, 0.5)
    share[: delay + 1] += KICK
    for k in range(delay, length + delay):
        old = share[k - delay]
        moved = [share[k] - gain * old, (1.0 - share[k]) - gain * (1.0 - old)]
        share[k + 1] = project(moved, (True, True))[0]
    return np.asarray(share[len(share) // 2 :] - 0.5)
