import math
import time

import numpy as np
import pytest

from testbed.analysis.oscillation import dominant_cycle, oscillation, relative_swing


def antiphase(swing: np.ndarray, level: float = 10.0) -> np.ndarray:
    """Two cells of the same mean, the one swinging up while the other swings down."""
    return level * np.array([1.0 + swing, 1.0 - swing])


def sine(bins: int, period_bins: float, size: float = 1.0) -> np.ndarray:
    return size * np.sin(2 * math.pi * np.arange(bins) / period_bins)


def ar1(bins: int, memory: float, rng: np.random.Generator) -> np.ndarray:
    noise = np.empty(bins)
    noise[0] = rng.standard_normal() / math.sqrt(1 - memory**2)
    for i, shock in enumerate(rng.standard_normal(bins - 1)):
        noise[i + 1] = memory * noise[i] + shock
    return noise


def test_a_pure_sine_has_its_own_amplitude_and_period():
    found = oscillation(antiphase(sine(600, 60.0, size=0.4)), bin_s=0.03, seed=1)

    assert found.amplitude == pytest.approx(0.4, rel=1e-6)
    assert found.period_s == pytest.approx(1.8, rel=0.003)
    assert found.coherence == pytest.approx(1.0, abs=0.01)
    assert found.significant


@pytest.mark.parametrize("period_bins", [43.0, 57.3, 71.9, 99.0])
def test_a_noisy_cycle_is_significant_and_its_period_is_right_within_three_per_cent(period_bins: float):
    """Where the window does not hold whole periods the peak lies between two bins of the spectrum."""
    noise = np.random.default_rng(7).standard_normal(500) * 0.1

    found = oscillation(antiphase(sine(500, period_bins, 0.4) + noise), bin_s=1.0, seed=1)

    assert found.significant
    assert found.period_s == pytest.approx(period_bins, rel=0.03)


def test_a_common_swing_of_the_load_drops_out():
    swing = sine(600, 60.0, size=0.4)

    found = oscillation(np.array([10 * (1 + swing), 3 * (1 + swing)]), bin_s=0.03, seed=1)

    assert found.amplitude == pytest.approx(0.0, abs=1e-12)
    assert not found.significant


@pytest.mark.parametrize("memory", [0.0, 0.6, 0.95])
def test_noise_without_a_cycle_is_hardly_ever_significant(memory: float):
    """At the 99th percentile one seed in a hundred may pass the threshold alone; more than two of 100 is unlikely."""
    rng = np.random.default_rng(11)

    found = [oscillation(antiphase(0.02 * ar1(250, memory, rng)), 1.0, seed) for seed in range(100)]

    assert sum(each.significant for each in found) <= 2
    assert all(math.isnan(each.period_s) for each in found if not each.significant)


def test_the_noise_of_requests_that_come_and_go_is_not_significant():
    """Independent stays in each cell: N(t) of an M/M/infinity queue, whose memory is the sojourn."""
    rng = np.random.default_rng(3)
    significant = 0
    for seed in range(30):
        cells = [10 + 3 * ar1(400, math.exp(-0.25), rng) for _ in range(3)]
        significant += oscillation(np.array(cells), 1.0, seed).significant

    assert significant <= 1


def test_four_periods_are_not_enough():
    found = oscillation(antiphase(sine(400, 100.0, 0.4)), bin_s=1.0, seed=1)

    assert not found.significant
    assert math.isnan(found.period_s)
    assert found.amplitude == pytest.approx(0.4, rel=1e-3)


def test_the_same_seed_gives_the_same_threshold():
    noisy = antiphase(0.02 * ar1(300, 0.5, np.random.default_rng(2)))

    assert oscillation(noisy, 1.0, 5) == oscillation(noisy, 1.0, 5)
    assert oscillation(noisy, 1.0, 5).threshold != oscillation(noisy, 1.0, 6).threshold


def test_a_cell_without_requests_is_left_out():
    swing = sine(600, 60.0, size=0.4)

    found = oscillation(np.array([*antiphase(swing), np.zeros(600)]), 0.03, 1)

    assert found.amplitude == pytest.approx(0.4, rel=1e-6)
    assert math.isnan(found.by_cell[2])


def test_one_cell_alone_cannot_swing_against_others():
    found = oscillation(np.array([10 + sine(100, 10.0)]), 1.0, 1)

    assert found.amplitude == 0.0
    assert not found.significant


def test_nothing_at_all_has_no_amplitude():
    found = oscillation(np.zeros((3, 100)), 1.0, 1)

    assert found.amplitude == 0.0
    assert math.isnan(found.period_s)


def test_a_series_of_a_few_bins_has_no_cycle():
    assert math.isnan(dominant_cycle(np.array([1.0, 2.0, 1.0])).lag_bins)
    assert not oscillation(antiphase(sine(6, 3.0, 0.1)), 1.0, 1).significant


def test_swings_are_relative_to_each_cells_own_mean():
    swing = sine(400, 40.0, size=0.2)

    z = relative_swing(np.array([100 * (1 + swing), 1 * (1 - swing)]))

    assert z[0] == pytest.approx(swing, abs=1e-9)
    assert z[1] == pytest.approx(-swing, abs=1e-9)


def test_a_long_run_is_tested_in_under_a_second():
    noisy = antiphase(sine(20000, 60.0, 0.3) + 0.01 * np.random.default_rng(1).standard_normal(20000))

    started = time.process_time()
    found = oscillation(noisy, 0.03, 1)

    assert found.significant
    assert time.process_time() - started < 1.0
