"""Prefix-aware scoring: hits against load, a memory that is bounded and ages, and balance that comes first."""

from __future__ import annotations

import random
from typing import Any

import pytest

from testbed.roles.messages import Request
from testbed.routing.policy import build_policy
from testbed.routing.prefix_aware import PrefixAware
from testbed.routing.view import Target, View
from testbed.scenario.policy_words import PrefixAwarePolicy
from tests.routing.beliefs import view_of

RNG = random.Random(1)
SYSTEM, ANNE, BEN = 1, 11, 12


def aware(beliefs: View, /, **words: Any) -> PrefixAware:
    spec = PrefixAwarePolicy(kind="prefix_aware", **words)
    policy = build_policy(spec, beliefs, seed=1, node="n", report_every_s=0.1, output_mean=8.0)
    assert isinstance(policy, PrefixAware)
    return policy


def prompt(*chain: int) -> Request:
    return Request(0, 0, 0, max(1, sum(chain[1::2])), 8, (0, *chain))


def load(target: Target, requests: int) -> None:
    for i in range(requests):
        target.on_sent(i, 0.0)


def test_a_prompt_goes_where_its_beginning_went() -> None:
    view = view_of([0, 0, 0])
    policy = aware(view)

    anne = policy.choose(view, prompt(SYSTEM, 100, ANNE, 10), RNG)
    stranger = policy.choose(view, prompt(99, 50), RNG)

    assert anne is not stranger  # nothing is known of the other: the next in turn
    for _ in range(3):
        assert policy.choose(view, prompt(SYSTEM, 100, ANNE, 40), RNG) is anne
        assert policy.choose(view, prompt(SYSTEM, 100, BEN, 10), RNG) is anne


def test_the_share_of_the_prompt_that_is_held_weighs_against_load() -> None:
    """Held 0.9 of it and 3 in flight: 0.9 w + 1/4 against 0 + 1, so it stays for w above 0.83."""
    for weight, stays in ((0.8, False), (0.9, True)):
        view = view_of([0, 0])
        policy = aware(view, cache_weight=weight)
        holder = policy.choose(view, prompt(SYSTEM, 90), RNG)
        assert holder is not None
        load(holder, 3)

        chosen = policy.choose(view, prompt(SYSTEM, 90, ANNE, 10), RNG)

        assert (chosen is holder) == stays


def test_loads_out_of_balance_decide_alone_and_only_beyond_both_thresholds() -> None:
    for others, requests, decides in ((0, 4, False), (0, 5, True), (10, 15, False), (8, 13, True)):
        view = view_of([0, 0])
        policy = aware(view, cache_weight=100.0, balance_requests=4.0, balance_ratio=1.5)
        holder = policy.choose(view, prompt(SYSTEM, 90), RNG)
        assert holder is not None
        load(holder, requests)
        load(view.targets[1 - holder.index], others)

        assert (policy.choose(view, prompt(SYSTEM, 90), RNG) is not holder) == decides


def test_load_is_counted_per_capacity() -> None:
    """Three servers with four requests are less loaded than one with two."""
    view = view_of([0, 0], servers=[3, 1])
    load(view.targets[0], 4)
    load(view.targets[1], 2)

    assert aware(view).choose(view, prompt(), RNG) is view.targets[0]


def test_a_memory_that_is_too_old_or_crowded_out_counts_no_more() -> None:
    view = view_of([0, 0])
    policy = aware(view, max_age="10 s", memory_tokens=100)
    holder = policy.choose(view, prompt(SYSTEM, 90), RNG)
    assert holder is not None
    load(holder, 1)

    view.now_s = 10.0
    assert policy.choose(view, prompt(SYSTEM, 90), RNG) is holder  # and used again at 10 s
    view.now_s = 20.5
    assert policy.choose(view, prompt(SYSTEM, 90), RNG) is not holder

    view = view_of([0, 0])
    policy = aware(view, memory_tokens=100)
    holder = policy.choose(view, prompt(SYSTEM, 90), RNG)
    assert holder is not None
    view.allow([holder.name])
    policy.choose(view, prompt(ANNE, 100), RNG)
    view.allow(["a", "b"])
    load(holder, 1)
    assert policy.choose(view, prompt(SYSTEM, 90), RNG) is not holder


def test_the_load_may_go_by_reports_and_nothing_is_chosen_where_nothing_is_allowed() -> None:
    view = view_of([5, 0])
    assert aware(view, view="reports").choose(view, prompt(), RNG) is view.targets[1]

    view.allow([])
    assert aware(view).choose(view, prompt(), RNG) is None


@pytest.mark.parametrize("count", [2, 3])
def test_requests_that_share_nothing_go_round(count: int) -> None:
    view = view_of([0] * count)
    policy = aware(view)

    names = [policy.choose(view, prompt(), RNG) for _ in range(2 * count)]

    assert names == [*view.targets, *view.targets]
