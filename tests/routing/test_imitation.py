from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

import pytest

from testbed.routing.imitation import Imitation
from testbed.routing.view import View
from testbed.routing.weighted import Chance
from tests.routing.beliefs import request, view_of


def imitation(view: View, costs_s: Sequence[float], **changes: Any) -> Imitation:
    words: dict[str, Any] = {
        "cost": lambda target: costs_s[target.index],
        "is_clipped": lambda target: False,
        "slope_per_s": 0.5,
        "wake_per_s": 2.0,
        "by_shares": True,
        "interval_s": 0.1,
        "start": "even",
        "sampler": Chance(),
    }
    return Imitation(view, **{**words, **changes})


def moved(policy: Imitation, view: View) -> list[float]:
    """The shares after an update that there is."""
    update = policy.on_tick(view)
    assert update is not None
    return list(update.after)


def test_shares_move_by_the_migration_rule_of_fischer_and_voecking() -> None:
    """wake dt = 0.2; from b (0.3) to a (0.6), gap 1 s: 0.2 * 0.3 * 0.6 * 0.5, and so on for each pair."""
    view = view_of([0, 0, 0])
    policy = imitation(view, [1.0, 2.0, 4.0], start={"a": 0.6, "b": 0.3, "c": 0.1})

    update = policy.on_tick(view)

    ba, ca, cb = 0.2 * 0.3 * 0.6 * 0.5, 0.2 * 0.1 * 0.6 * 1.0, 0.2 * 0.1 * 0.3 * 1.0
    assert update is not None
    assert update.before == pytest.approx([0.6, 0.3, 0.1])
    assert update.after == pytest.approx([0.6 + ba + ca, 0.3 - ba + cb, 0.1 - ca - cb])
    assert (update.interval_s, update.step) == (0.1, 1.0)


def test_a_uniform_sample_comes_back_to_a_target_that_had_nothing() -> None:
    view = view_of([0, 0])
    start = {"a": 1.0, "b": 0.0}

    assert moved(imitation(view, [2.0, 1.0], start=start), view) == [1.0, 0.0]
    uniform = imitation(view, [2.0, 1.0], start=start, by_shares=False)
    assert moved(uniform, view) == pytest.approx([0.95, 0.05])


def test_the_board_of_two_links_follows_its_phase_map() -> None:
    """Latency beta x, uniform sampling, both shares near 1/2: e <- e (1 - alpha beta T / 2), theory.md section 5.3."""
    view = view_of([0, 0])
    beta_s, kick = 2.0, 1e-4
    costs_s = [beta_s * (0.5 + kick), beta_s * (0.5 - kick)]
    policy = imitation(
        view,
        costs_s,
        start={"a": 0.5 + kick, "b": 0.5 - kick},
        by_shares=False,
        slope_per_s=3.0,
        wake_per_s=1.0,
    )

    policy.on_tick(view)

    assert policy.shares[0] - 0.5 == pytest.approx(kick * (1 - 3.0 * beta_s * 0.1 / 2), rel=1e-3)


def test_nothing_moves_where_costs_are_equal_and_no_share_leaves_the_simplex_where_gaps_are_wide() -> None:
    view = view_of([0, 0, 0])
    assert moved(imitation(view, [3.0, 3.0, 3.0]), view) == pytest.approx([1 / 3] * 3)

    policy = imitation(view, [0.0, 50.0, 90.0], slope_per_s=9.0, wake_per_s=100.0)
    for _ in range(50):
        policy.on_tick(view)
        assert min(policy.shares) >= 0.0
        assert math.isclose(sum(policy.shares), 1.0, abs_tol=1e-12)
    assert policy.shares[0] > 0.999


def test_what_a_forbidden_target_had_goes_to_the_others_in_proportion() -> None:
    view = view_of([0, 0, 0])
    policy = imitation(view, [1.0, 1.0, 1.0], start={"a": 0.2, "b": 0.6, "c": 0.2})

    view.allow(["a", "b"])
    policy.choose(view, request(), random.Random(1))

    assert policy.shares == pytest.approx([0.25, 0.75, 0.0])
    view.allow([])
    assert policy.choose(view, request(), random.Random(1)) is None
    assert policy.on_tick(view) is None
    view.allow(["c"])
    policy.choose(view, request(), random.Random(1))
    assert policy.shares == [0.0, 0.0, 1.0]
