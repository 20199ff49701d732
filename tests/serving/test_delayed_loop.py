"""The critical gain and the period between equal cells: the tables of theory.md 2.5 and measures.md section 5."""

from __future__ import annotations

import math

import pytest

from testbed.serving.delayed_loop import (
    CellResponse,
    critical_gain,
    critical_gain_of_work,
    edge_angle,
    fixed_work,
    memoryless_work,
    period_s,
)

# theory.md, section 2.5: aT, theta, K_crit T/a, period/T
EDGES = [
    (0.01, 0.0998, 1.0017, 62.9),
    (0.05, 0.2218, 1.0082, 28.3),
    (0.1, 0.3111, 1.0163, 20.20),
    (0.5, 0.6533, 1.0748, 9.618),
    (1.0, 0.8603, 1.1349, 7.303),
    (2.0, 1.0769, 1.2231, 5.835),
    (4.0, 1.2646, 1.3263, 4.969),
    (16.0, 1.4786, 1.4849, 4.249),
]
# measures.md, section 5: T/W, K_c(fixed) / K_c(memoryless) at aW = 0.3
FIXED_WORK = [(0.02, 0.10), (0.05, 0.22), (0.1, 0.37), (0.2, 0.55), (0.5, 0.77), (1.0, 0.90), (2.0, 1.00)]


@pytest.mark.parametrize(("relaxations", "theta", "gain", "period"), EDGES)
def test_the_edge_is_that_of_the_published_table(
    relaxations: float, theta: float, gain: float, period: float
) -> None:
    delay_s = 0.7
    a_per_s = relaxations / delay_s

    assert edge_angle(relaxations) == pytest.approx(theta, abs=6e-5)
    assert critical_gain(a_per_s, delay_s) * delay_s / a_per_s == pytest.approx(gain, abs=6e-5)
    assert period_s(a_per_s, delay_s) / delay_s == pytest.approx(period, rel=2e-3)


def test_a_cell_that_reacts_at_once_is_the_delayed_integrator() -> None:
    """aT to infinity: K T / a to pi/2, period to 4 T."""
    assert critical_gain(1e6, 1.0) / 1e6 == pytest.approx(math.pi / 2, rel=1e-5)
    assert period_s(1e6, 1.0) == pytest.approx(4.0, rel=1e-5)
    assert critical_gain(1.0, 0.0) == math.inf


@pytest.mark.parametrize("transform", [None, memoryless_work])
@pytest.mark.parametrize(("relaxations", "theta", "gain", "period"), EDGES)
def test_the_general_loop_gives_the_simple_one_back(
    relaxations: float, theta: float, gain: float, period: float, transform: None
) -> None:
    edge = critical_gain_of_work(CellResponse(relaxations, 0.4 / relaxations, transform), 1.0)

    assert edge.gain == pytest.approx(critical_gain(relaxations, 1.0), rel=1e-9)
    assert edge.period_s == pytest.approx(period_s(relaxations, 1.0), rel=1e-9)


@pytest.mark.parametrize(("delay", "ratio"), FIXED_WORK)
def test_fixed_work_lowers_the_critical_step_as_measured(delay: float, ratio: float) -> None:
    sojourn_s = 5.0
    cell = CellResponse(0.3 / sojourn_s, sojourn_s, fixed_work)

    edge = critical_gain_of_work(cell, delay * sojourn_s)

    assert edge.gain / critical_gain(cell.a_per_s, delay * sojourn_s) == pytest.approx(ratio, abs=0.0055)


def test_work_of_any_kind_scales_with_time() -> None:
    """All times doubled: the gain a quarter, the period twice."""
    once = critical_gain_of_work(CellResponse(0.3, 1.0, fixed_work), 0.2)
    twice = critical_gain_of_work(CellResponse(0.15, 2.0, fixed_work), 0.4)

    assert twice.gain == pytest.approx(once.gain / 4)
    assert twice.period_s == pytest.approx(2 * once.period_s)
