"""The critical step and the period: the tables of theory.md 2.5 and measures.md section 5."""

from __future__ import annotations

import math

import numpy as np
import pytest

from testbed.theory.stability import (
    CellResponse,
    Source,
    critical_factor,
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


def source(gain: float, slope: list[float], travel_s: float, age_s: float, support: list[bool]) -> Source:
    cells = np.ones(len(slope))
    return Source(gain, np.array(slope), travel_s * cells, age_s * cells, np.array(support))


# theory.md, section 2.5: J, I, rho, C, N0, one-way tau, eta_c, period (hyperbolic family)
FLUID = [
    (2, 1, 0.7, 50.0, 100.0, 0.2, 1.209e-2, 18.789),
    (2, 3, 0.7, 50.0, 100.0, 0.2, 1.209e-2, 18.789),
    (3, 2, 0.8, 50.0, 100.0, 0.5, 8.361e-4, 44.577),
    (2, 1, 0.5, 50.0, 5.0, 1.0, 4.245e-1, 9.565),
    (4, 4, 0.6, 50.0, 5.0, 1.0, 8.620e-2, 10.390),
]


@pytest.mark.parametrize(("J", "count", "rho", "C", "N0", "tau", "step", "period"), FLUID)
def test_equal_cells_have_the_critical_step_of_the_fluid_check(
    J: int, count: int, rho: float, C: float, N0: float, tau: float, step: float, period: float
) -> None:
    """Only the sum of lambda * eta counts, not how many roots share it."""
    a = C / N0 * (1 - rho) ** 2
    sigma = 2 / (C * (1 - rho))
    rate = J * rho * C / count
    cells = [CellResponse(a, N0 / C / (1 - rho))] * J
    roots = [source(rate * 1.0, [sigma] * J, tau, tau, [True] * J)] * count

    edge = critical_factor(cells, roots)

    assert edge.gain == pytest.approx(step, rel=1e-3)
    assert edge.period_s == pytest.approx(period, rel=1e-4)


def test_only_the_sum_of_travel_and_age_counts_where_all_are_alike() -> None:
    cells = [CellResponse(1.0, 0.5)] * 3
    near = critical_factor(cells, [source(1.0, [1.0] * 3, 0.1, 0.9, [True] * 3)])
    far = critical_factor(cells, [source(1.0, [1.0] * 3, 0.9, 0.1, [True] * 3)])

    assert near.gain == pytest.approx(far.gain)


def test_rule_nine_is_safe_where_delays_differ() -> None:
    """theory.md 2.7: the true critical multiplier over rule (9) was 1.04 or more in 150 random instances."""
    rng = np.random.default_rng(7)
    for _ in range(15):
        roots, count = int(rng.integers(1, 5)), int(rng.integers(2, 6))
        a = np.exp(rng.uniform(math.log(0.03), math.log(30.0), count))
        slope = np.exp(rng.uniform(math.log(0.1), math.log(10.0), count))
        gains = np.exp(rng.uniform(math.log(0.1), math.log(10.0), roots))
        travel, age = rng.uniform(0.02, 1.0, (2, roots, count))
        everywhere = np.ones(count, dtype=bool)
        sources = [Source(gains[i], slope, travel[i], age[i], everywhere) for i in range(roots)]
        rule = max(slope[j] / a[j] * float(gains @ (travel + age)[:, j]) for j in range(count))

        edge = critical_factor([CellResponse(each, 1 / each) for each in a], sources)

        assert 1.0 < edge.gain * rule < 10.0


def test_without_a_choice_or_a_delay_nothing_oscillates() -> None:
    cells = [CellResponse(1.0, 0.5)] * 2

    assert critical_factor(cells, []).gain == math.inf
    assert critical_factor(cells, [source(1.0, [1.0, 1.0], 0.1, 0.1, [True, False])]).gain == math.inf
    assert critical_factor(cells, [source(1.0, [1.0, 1.0], 0.0, 0.0, [True, True])]).gain == math.inf
