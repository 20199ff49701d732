"""The slowest mode of the loop: against the table of theory.md, section 2.5, and against the edge of stability."""

from __future__ import annotations

import math

import numpy as np
import pytest

from testbed.serving.delayed_loop import CellResponse, critical_gain
from testbed.theory.damping import slowest_mode
from testbed.theory.stability import Source, critical_factor

# aT, K/K_c, Re and Im of the dominant root in 1/T, damping ratio
TABLE = [
    (0.08, 0.02, -0.0392, 0.0093, 0.97),
    (0.08, 0.3, -0.0276, 0.1525, 0.18),
    (0.08, 0.9, -0.0038, 0.2653, 0.014),
    (1.0, 0.1, -0.158, 0.0, 1.0),
    (1.0, 0.2, -0.342, 0.286, 0.77),
    (1.0, 0.5, -0.182, 0.633, 0.28),
    (10.0, 0.2, -0.502, 0.0, 1.0),
    (10.0, 0.5, -0.435, 1.07, 0.38),
]
BOTH = np.ones(2, dtype=bool)


@pytest.mark.parametrize(("relaxations", "fraction", "growth", "frequency", "ratio"), TABLE)
def test_the_dominant_root_is_that_of_the_published_table(
    relaxations: float, fraction: float, growth: float, frequency: float, ratio: float
) -> None:
    """In whatever way the loop delay is split, and however many roots share the gain."""
    delay_s = 0.7
    gain = fraction * critical_gain(relaxations / delay_s, delay_s)
    sources = [Source(part * gain, np.ones(2), np.full(2, 0.2), np.full(2, 0.5), BOTH) for part in (0.4, 0.6)]

    mode = slowest_mode([CellResponse(relaxations / delay_s, 1.0)] * 2, sources)

    assert mode is not None
    assert mode.growth_per_s * delay_s == pytest.approx(growth, abs=6e-4)
    assert mode.frequency_per_s * delay_s == pytest.approx(frequency, abs=5e-3)
    assert mode.damping_ratio == pytest.approx(ratio, abs=6e-3)


def test_at_the_critical_factor_of_unequal_delays_the_slowest_mode_neither_grows_nor_dies() -> None:
    rng = np.random.default_rng(5)
    cells = [CellResponse(a, 1.0 / a) for a in (0.4, 0.9, 1.7)]
    sources = [
        Source(0.3, rng.uniform(0.5, 2.0, 3), *rng.uniform(0.1, 0.8, (2, 3)), np.ones(3, dtype=bool))
        for _ in range(2)
    ]

    edge = critical_factor(cells, sources)
    mode = slowest_mode(cells, [source._replace(gain=source.gain * edge.gain) for source in sources])

    assert mode is not None
    assert abs(mode.growth_per_s) < 1e-4 * mode.frequency_per_s
    assert mode.period_s == pytest.approx(edge.period_s, rel=1e-4)


def test_a_mode_without_oscillation_has_no_period() -> None:
    source = Source(0.01, np.ones(2), np.zeros(2), np.full(2, 0.1), BOTH)

    mode = slowest_mode([CellResponse(5.0, 0.2)] * 2, [source])

    assert mode is not None
    assert mode.period_s == math.inf
    assert mode.fold_s == pytest.approx(5.0 / 0.01, rel=1e-2)


def test_without_a_choice_there_is_no_mode() -> None:
    alone = Source(1.0, np.ones(2), np.zeros(2), np.ones(2), np.array([True, False]))

    assert slowest_mode([CellResponse(1.0, 1.0)] * 2, [alone]) is None
    assert slowest_mode([CellResponse(1.0, 1.0)] * 2, []) is None
