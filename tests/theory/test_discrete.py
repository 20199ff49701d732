"""Critical gains of updates: against the tables of theory.md, section 2.6."""

from __future__ import annotations

import pytest

from testbed.serving.delayed_loop import critical_gain, period_s
from testbed.theory.discrete import critical_held_gain, critical_update_gain, monotone_update_gain


@pytest.mark.parametrize(
    ("delay", "gain", "period", "monotone"),
    [
        (0, 2.0, 2, 1.0),
        (1, 1.0, 6, 0.25),
        (2, 0.618, 10, 0.1481),
        (5, 0.2846, 22, 0.0670),
        (50, 0.0311, 202, 0.0073),
    ],
)
def test_without_inertia_the_gains_are_those_published(delay, gain, period, monotone):
    edge = critical_update_gain(delay)

    assert edge.gain == pytest.approx(gain, abs=5e-5)
    assert edge.period_s == period
    assert monotone_update_gain(delay) == pytest.approx(monotone, abs=5e-5)


@pytest.mark.parametrize(
    ("relaxations", "delay", "gain", "period"),
    [
        (0.05, 0, 1.0, 28.4),
        (0.05, 10, 0.0982, 101.7),
        (0.2, 5, 0.1917, 41.2),
        (1.0, 2, 0.4125, 16.1),
        (3.0, 5, 0.2396, 26.2),
    ],
)
def test_with_inertia_the_gains_are_those_published(relaxations, delay, gain, period):
    edge = critical_held_gain(relaxations, delay)

    assert edge.gain == pytest.approx(gain, abs=6e-5)
    assert edge.period_s == pytest.approx(period, abs=0.06)


def test_many_small_updates_are_the_continuous_loop():
    """Equation (8) tends to (5) with T = (d + 1) dt; G = K dt / a."""
    relaxations, delay = 0.01, 99

    edge = critical_held_gain(relaxations, delay)

    loop_delay = (delay + 1) * relaxations
    assert edge.gain == pytest.approx(critical_gain(1.0, loop_delay) * relaxations, rel=2e-4)
    assert edge.period_s * relaxations == pytest.approx(period_s(1.0, loop_delay), rel=2e-4)
