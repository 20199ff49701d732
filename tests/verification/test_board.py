"""The estimate behind V10 and V11: what it corrects for, and that its error is honest."""

from __future__ import annotations

import numpy as np
import pytest

from testbed.verification.board import Length, mean_sojourn, read_at


def test_the_mean_is_read_at_the_load_that_was_meant():
    loads = np.array([0.88, 0.89, 0.91, 0.93])

    estimate = read_at(0.9, loads, 3.0 + 20.0 * (loads - 0.9))

    assert estimate.mean_s == pytest.approx(3.0)
    assert estimate.error_s == pytest.approx(0.0, abs=1e-9)


def test_two_in_three_estimates_lie_within_their_standard_error():
    """Of 400 made-up runs of 20 stretches; by Student's t with 18 degrees of freedom 67 % are to."""
    rng = np.random.default_rng(4)
    hits = 0
    for _ in range(400):
        loads = rng.normal(0.895, 0.01, 20)
        estimate = read_at(0.9, loads, 3.0 + 20.0 * (loads - 0.9) + rng.normal(0.0, 0.1, 20))
        hits += abs(estimate.mean_s - 3.0) < estimate.error_s

    assert abs(hits - 268) < 4 * (400 * 0.67 * 0.33) ** 0.5


def test_random_choice_among_servers_is_an_m_m_1_queue_for_each():
    """1 / (1 - 0.9) = 10 s, from a run that is too short for more than four of its standard errors."""
    estimate = mean_sojourn({"kind": "random"}, Length(600.0, 200.0, 8), servers=20)

    assert abs(estimate.mean_s - 10.0) < 4 * estimate.error_s
    assert estimate.error_s < 1.5
