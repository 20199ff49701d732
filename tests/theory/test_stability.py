"""The critical factor of loops through cells and roots: the fluid check of theory.md 2.5, and rule (9)."""

from __future__ import annotations

import math

import numpy as np
import pytest

from testbed.serving.delayed_loop import CellResponse, critical_gain_of_work, fixed_work, memoryless_work
from testbed.theory.stability import Source, critical_factor


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


@pytest.mark.parametrize("transform", [None, memoryless_work, fixed_work])
@pytest.mark.parametrize("delay_s", [0.02, 0.3, 4.0])
def test_between_two_equal_cells_the_matrix_is_the_scalar_loop(delay_s: float, transform: None) -> None:
    cell = CellResponse(0.3, 1.0, transform)

    edge = critical_factor([cell, cell], [source(1.0, [1.0, 1.0], delay_s, 0.0, [True, True])])

    scalar = critical_gain_of_work(cell, delay_s)
    assert edge.gain == pytest.approx(scalar.gain, rel=1e-9)
    assert edge.period_s == pytest.approx(scalar.period_s, rel=1e-9)
