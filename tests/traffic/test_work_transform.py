"""Transforms of the work: their value at 0, their mean, and their known forms."""

from __future__ import annotations

import numpy as np
import pytest

from testbed.scenario.schema import Tokens
from testbed.serving.delayed_loop import fixed_work, memoryless_work
from testbed.traffic.work import draw_tokens, mean_tokens
from testbed.traffic.work_transform import Part, cell_transform, mixed, token_transform
from tests.traffic.scenes import herding, one_line

S = np.array([0.0, 1e-4, 0.3, 0.5j, 2.0 + 1.0j])
CASES = [
    {"fixed": 8},
    {"geometric": {"mean": 8.0}},
    {"lognormal": {"mean": 48.0, "cv": 1.0}},
    {"quantiles": [[0, 10.0], [0.5, 100.0], [1, 900.0]]},
]


@pytest.mark.parametrize("words", CASES, ids=str)
def test_a_transform_is_the_mean_of_the_exponential_of_what_is_drawn(words: dict[str, object]) -> None:
    """Against 100,000 draws; the standard error is at most 1/sqrt(100,000) = 0.003."""
    tokens = Tokens.model_validate(words)
    mean = mean_tokens(tokens)
    drawn = draw_tokens(tokens, 100_000, np.random.Generator(np.random.PCG64(1)))

    found = token_transform(tokens)(S / mean)

    assert found[0] == pytest.approx(1.0)
    assert found == pytest.approx(np.exp(-S[:, None] / mean * drawn).mean(axis=1), abs=0.012)
    assert (1.0 - found[1].real) / 1e-4 == pytest.approx(1.0, rel=0.01)  # minus the slope at 0: the mean


def test_a_long_geometric_is_nearly_exponential() -> None:
    tokens = Tokens.model_validate({"geometric": {"mean": 1000.0}})

    assert token_transform(tokens)(S / 1000.0) == pytest.approx(memoryless_work(S), abs=1e-3)


def test_a_mix_weighs_by_requests_and_is_scaled_to_mean_one() -> None:
    """Half of the requests bring 1 token, half 3: mean 2, so half of the work is 1/2 and half 3/2."""
    parts = [
        Part(0.5, mean, token_transform(Tokens.model_validate({"fixed": int(mean)}))) for mean in (1.0, 3.0)
    ]

    assert mixed(parts)(S) == pytest.approx(0.5 * np.exp(-0.5 * S) + 0.5 * np.exp(-1.5 * S))


def test_work_at_a_gpu_follows_the_output_tokens() -> None:
    """Geometric of mean 8, scaled: exp(-s/8) / (8 - 7 exp(-s/8))."""
    transform = cell_transform(herding(), "us", {("west", 0): 0.7, ("south", 0): 0.3})

    assert transform is not None
    once = np.exp(-S / 8)
    assert transform(S) == pytest.approx(once / (8 - 7 * once))


@pytest.mark.parametrize(
    ("service", "is_fixed"),
    [
        ({"slots": 2, "exponential": "1 s"}, False),
        ({"slots": 2, "fixed": "1 s"}, True),
        ({"rate_curve": {"capacity": "1 /s", "half": 1.0}}, False),
        ({"rate_curve": {"capacity": "1 /s", "half": 1.0}, "work": "exponential"}, False),
        ({"rate_curve": {"capacity": "1 /s", "half": 1.0}, "work": "fixed"}, True),
    ],
)
def test_work_at_a_service_model_is_what_the_model_says(service: dict[str, object], is_fixed: bool) -> None:
    scenario = one_line("rate: 1 /s", cells={"home": {"servers": 1, "service": service}})

    assert cell_transform(scenario, "home", {("west", 0): 1.0}) is (fixed_work if is_fixed else None)


def test_clipped_normal_work_has_the_transform_of_what_is_drawn() -> None:
    """Against 100,000 draws; the standard error is at most 0.003. A sixth of the work is 0."""
    service = {"slots": 2, "normal": {"mean": "80 ms", "sd": "80 ms"}}
    scenario = one_line("rate: 1 /s", cells={"home": {"servers": 1, "service": service}})
    drawn = np.maximum(0.0, np.random.Generator(np.random.PCG64(1)).normal(1.0, 1.0, 100_000))

    transform = cell_transform(scenario, "home", {("west", 0): 1.0})

    assert transform is not None
    assert transform(S) == pytest.approx(np.exp(-S[:, None] / drawn.mean() * drawn).mean(axis=1), abs=0.012)
