from __future__ import annotations

import random
from collections import Counter

from testbed.routing.smooth_weighted import SmoothWeighted
from testbed.routing.view import View
from tests.routing.beliefs import request, view_of


def names(policy: SmoothWeighted, view: View, count: int) -> str:
    chosen = [policy.choose(view, request(i), random.Random(1)) for i in range(count)]
    return "".join(target.name for target in chosen if target is not None)


def test_turns_are_those_of_nginx() -> None:
    """The example in nginx's source: weights 5, 1, 1 give a a b a c a a, and the round begins again."""
    view = view_of([0, 0, 0])
    policy = SmoothWeighted({"a": 5, "b": 1, "c": 1})

    assert names(policy, view, 14) == "aabacaa" * 2


def test_capacity_is_the_weight_unless_weights_are_given() -> None:
    view = view_of([0, 0], servers=[3, 1])

    assert names(SmoothWeighted("capacity"), view, 8) == "aaba" * 2


def test_a_target_that_may_not_be_chosen_gets_nothing_and_the_others_keep_their_ratio() -> None:
    view = view_of([0, 0, 0])
    policy = SmoothWeighted({"a": 4, "b": 2, "c": 1})
    names(policy, view, 5)

    view.allow(["a", "b"])
    counts = Counter(names(policy, view, 300))

    assert counts["c"] == 0
    assert abs(counts["a"] - 200) <= 2


def test_targets_without_a_weight_share_alike_when_no_other_is_left() -> None:
    view = view_of([0, 0, 0])
    policy = SmoothWeighted({"a": 1})

    assert names(policy, view, 3) == "aaa"
    view.allow(["b", "c"])
    assert names(policy, view, 4) == "bcbc"
