"""What a leaf learns of its servers' speed."""

import random

import pytest

from testbed.roles.latency_model import LatencyModel

STEP_S, PER_REQUEST_S = 0.011, 0.0005


def complete(model, rng, count, speed=1.0, a_s=STEP_S, b_s=PER_REQUEST_S):
    """Feed completions of random length and occupancy, with a tenth of noise."""
    for _ in range(count):
        n, steps = rng.uniform(1, 30), rng.randint(1, 40)
        sojourn_s = (steps + 0.5) * (a_s + b_s * n) / speed * rng.uniform(0.9, 1.1)
        model.on_completion(n, steps, sojourn_s)


def test_a_server_at_its_profile_s_speed_is_believed_to_be():
    model = LatencyModel(STEP_S, PER_REQUEST_S, 0.5)
    complete(model, random.Random(1), 3000)
    assert model.speed == pytest.approx(1.0, rel=0.02)
    assert model.model_error == pytest.approx(0.05, abs=0.02)  # the mean of |u| for u uniform in +-0.1


def test_a_slowed_server_is_recognised_after_some_memories_of_completions():
    model = LatencyModel(STEP_S, PER_REQUEST_S, 0.5)
    rng = random.Random(2)
    complete(model, rng, 2000)
    complete(model, rng, 2500, speed=0.4)
    assert model.speed == pytest.approx(0.4, rel=0.05)


def test_the_fit_finds_the_line_that_the_sojourns_lie_on():
    model = LatencyModel(STEP_S, PER_REQUEST_S, 0.5)
    complete(model, random.Random(3), 5000, a_s=0.02, b_s=0.001)
    model.refit()
    assert model.fitted_a_s == pytest.approx(0.02, rel=0.05)
    assert model.fitted_b_s == pytest.approx(0.001, rel=0.1)


def test_a_falling_line_is_refused():
    """Sojourns that fall with occupancy are noise: a negative slope would make a full cell look cheap."""
    model = LatencyModel(STEP_S, PER_REQUEST_S, 0.5)
    for i in range(1000):
        n = 1 + i % 20
        model.on_completion(n, 8, 8.5 * (0.03 - 0.001 * n))
    model.refit()
    assert model.fitted_b_s == PER_REQUEST_S
    assert model.fitted_a_s == STEP_S
