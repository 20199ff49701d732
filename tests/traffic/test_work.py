"""Token counts: what is drawn has the mean that the scenario names and that capacity reckons with."""

from __future__ import annotations

import math

import numpy as np
import pytest

from testbed.scenario.schema import Tokens
from testbed.traffic.work import draw_tokens, mean_tokens

COUNT = 200_000
CASES = [
    {"fixed": 7},
    {"geometric": {"mean": 1.0}},
    {"geometric": {"mean": 8.0}},
    {"lognormal": {"mean": 48.0, "cv": 1.0}},
    {"lognormal": {"mean": 1155.0, "cv": 1.5}},
    {"lognormal": {"mean": 1.5, "cv": 1.0}},
    {"lognormal": {"mean": 3.0, "cv": 2.0}},
    {"lognormal": {"mean": 1.5, "cv": 0.0}},
    {"lognormal": {"mean": 0.3, "cv": 1.0}},
    {"quantiles": [[0, 0.0], [0.5, 120.0], [1, 900.0]]},
    {"quantiles": [[0, 0.0], [0.9, 1.5], [1, 4.0]]},
    {"quantiles": [[0, 5.0], [1, 5.0]]},
]


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))


@pytest.mark.parametrize("words", CASES, ids=str)
def test_the_mean_of_what_is_drawn_is_the_mean_that_is_reckoned_with(words: dict[str, object]) -> None:
    """Five standard errors: one false alarm in two million draws of the seed."""
    tokens = Tokens.model_validate(words)

    drawn = draw_tokens(tokens, COUNT, rng())

    assert drawn.min() >= 1
    assert abs(drawn.mean() - mean_tokens(tokens)) <= 5 * drawn.std() / math.sqrt(COUNT) + 1e-12


@pytest.mark.parametrize(
    "words",
    [
        {"lognormal": {"mean": 1e9, "cv": 100.0}},
        {"geometric": {"mean": 1e9}},
        {"quantiles": [[0, 0], [1, 1e9]]},
    ],
    ids=str,
)
def test_the_largest_numbers_that_a_scenario_may_name_stay_within_64_bits(words: dict[str, object]) -> None:
    drawn = draw_tokens(Tokens.model_validate(words), COUNT, rng())

    assert drawn.min() >= 1
    assert drawn.max() < 2**62


@pytest.mark.parametrize("mean", [1.2, 2.0, 5.0, 48.0])
@pytest.mark.parametrize("cv", [0.1, 1.0, 2.0])
def test_rounding_and_the_cut_at_one_leave_the_named_mean_of_a_lognormal(mean: float, cv: float) -> None:
    tokens = Tokens.model_validate({"lognormal": {"mean": mean, "cv": cv}})

    drawn = draw_tokens(tokens, 400_000, rng())

    assert mean_tokens(tokens) == mean
    assert drawn.mean() == pytest.approx(mean, rel=0.01)


def test_a_lognormal_has_the_named_variation() -> None:
    drawn = draw_tokens(Tokens.model_validate({"lognormal": {"mean": 1000.0, "cv": 0.8}}), COUNT, rng())

    assert drawn.std() / drawn.mean() == pytest.approx(0.8, rel=0.02)


def test_a_geometric_is_memoryless() -> None:
    """P(X > 12 | X > 5) = P(X > 7)."""
    drawn = draw_tokens(Tokens.model_validate({"geometric": {"mean": 8.0}}), COUNT, rng())

    assert (drawn > 12).sum() / (drawn > 5).sum() == pytest.approx((drawn > 7).mean(), abs=0.005)


def test_a_quantile_table_gives_back_its_quantiles() -> None:
    tokens = Tokens.model_validate({"quantiles": [[0, 10.0], [0.25, 100.0], [0.75, 500.0], [1, 4000.0]]})

    drawn = draw_tokens(tokens, COUNT, rng())

    assert np.quantile(drawn, [0.25, 0.5, 0.75]) == pytest.approx([100.0, 300.0, 500.0], rel=0.02)
    assert drawn.max() <= 4001


@pytest.mark.parametrize("words", CASES, ids=str)
def test_a_longer_draw_begins_with_the_shorter_one(words: dict[str, object]) -> None:
    """A longer run keeps the requests of the shorter one."""
    tokens = Tokens.model_validate(words)

    assert draw_tokens(tokens, 2000, rng())[:1000].tolist() == draw_tokens(tokens, 1000, rng()).tolist()
