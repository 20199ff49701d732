"""Closed forms of oscillating routing: the relay, the board, and the design rule for unequal delays."""

from __future__ import annotations

import numpy as np
import pytest

from testbed.serving.delayed_loop import critical_gain
from testbed.theory.bulletin_board import best_response, share_over_time, smooth_imitation
from testbed.theory.limit_cycle import greedy_cycle
from testbed.theory.rule_nine import rule_nine_factor

# theory.md, section 7: aT, period/T simulated, peak/(Lambda T)
CYCLES = [
    (0.01, 3.982, 0.995),
    (0.1, 3.819, 0.952),
    (0.5, 3.328, 0.787),
    (1, 2.980, 0.632),
    (5, 2.276, 0.199),
    (20, 2.069, 0.050),
]


@pytest.mark.parametrize(("relaxations", "period", "peak"), CYCLES)
def test_the_greedy_cycle_is_that_of_the_published_table(
    relaxations: float, period: float, peak: float
) -> None:
    cycle = greedy_cycle(rate_per_s=3.0, a_per_s=relaxations / 0.7, loop_delay_s=0.7)

    assert cycle.period_s / 0.7 == pytest.approx(period, rel=1e-3)
    assert cycle.peak / (3.0 * 0.7) == pytest.approx(peak, abs=6e-4)


@pytest.mark.parametrize(
    ("refresh", "excess"), [(0.1, 0.025), (0.5, 0.122), (1.0, 0.231), (2.0, 0.381), (5.0, 0.493)]
)
def test_best_response_swings_as_far_as_the_board_is_old(refresh: float, excess: float) -> None:
    """theory.md, section 5.3: excess latency (beta/2) tanh(T/2), beta = 1."""
    path = share_over_time(lambda x: (x, 1.0 - x), best_response, refresh, 0.6, 300, 20)[200 * 20 :]

    assert np.abs(path - 0.5).max() == pytest.approx(excess, abs=2e-3)


@pytest.mark.parametrize(("product", "calm"), [(3.8, True), (4.2, False)])
def test_smooth_imitation_is_calm_below_its_threshold(product: float, calm: bool) -> None:
    path = share_over_time(
        lambda x: (0.1 * x, 0.1 * (1.0 - x)), smooth_imitation(product / 0.1), 1.0, 0.501, 60, 10
    )

    assert bool(np.abs(path[-20:] - 0.5).max() < 1e-4) is calm


def test_rule_nine_is_the_critical_step_of_slow_equal_cells_at_equal_delays() -> None:
    """aT to 0: K_c = a/T."""
    a, delay_s = np.full(3, 1e-4), np.full((2, 3), 0.5)

    factor = rule_nine_factor(a, np.full((2, 3), 2.0), np.array([0.3, 0.7]), delay_s)

    assert factor == pytest.approx(critical_gain(1e-4, 0.5) / 2.0, rel=1e-3)
