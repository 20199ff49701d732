from __future__ import annotations

import random

import pytest

from testbed.roles.messages import Outcome
from testbed.routing.least_latency import LeastLatency
from testbed.routing.view import View
from tests.routing.beliefs import request, view_of


def chosen(policy: LeastLatency, view: View, count: int = 1) -> str:
    rng = random.Random(3)
    targets = [policy.choose(view, request(i), rng) for i in range(count)]
    return "".join(target.name for target in targets if target is not None)


def test_targets_that_never_replied_are_tried_first_and_in_turn() -> None:
    view = view_of([9, 0, 5])
    policy = LeastLatency(3, weight=0.5, explore=0.0)

    assert chosen(policy, view, 4) == "abca"
    policy.on_reply(view.targets[0], 0.2, Outcome.COMPLETED)
    assert chosen(policy, view, 3) == "bcb"


def test_the_sojourn_is_smoothed_by_the_weight_of_the_newest_reply() -> None:
    view = view_of([0, 0])
    a, b = view.targets
    policy = LeastLatency(2, weight=0.5, explore=0.0)

    for sojourn_s in (1.0, 2.0, 4.0):
        policy.on_reply(a, sojourn_s, Outcome.COMPLETED)
    policy.on_reply(b, 2.7, Outcome.COMPLETED)

    assert policy.cost(a) == pytest.approx(2.75)  # ((1 + 2) / 2 + 4) / 2
    assert chosen(policy, view) == "b"
    policy.on_reply(a, 2.0, Outcome.COMPLETED)
    assert chosen(policy, view) == "a"


def test_a_target_that_fails_fast_is_not_thought_quick() -> None:
    view = view_of([0, 0])
    a, b = view.targets
    policy = LeastLatency(2, weight=0.2, explore=0.0)

    for _ in range(20):
        policy.on_reply(a, 0.5, Outcome.FAILED)
    policy.on_reply(b, 3.0, Outcome.COMPLETED)

    assert policy.cost(a) == pytest.approx(0.5 * 20, rel=0.01)  # 19 of 20 failures count at most
    assert chosen(policy, view) == "b"


def test_now_and_then_a_slow_target_is_tried_again() -> None:
    view = view_of([0, 0])
    policy = LeastLatency(2, weight=0.5, explore=0.1)
    policy.on_reply(view.targets[0], 1.0, Outcome.COMPLETED)
    policy.on_reply(view.targets[1], 9.0, Outcome.COMPLETED)

    tried = chosen(policy, view, 2_000).count("b")

    assert tried == pytest.approx(100, abs=4 * (2_000 * 0.05 * 0.95) ** 0.5)
