"""Weighted round robin by queries over utilisation."""

from __future__ import annotations

import math
import random
from collections import Counter
from typing import Any

import pytest

from testbed.roles.messages import Outcome
from testbed.routing.policy import build_policy
from testbed.routing.utilisation import Usage, WeightedUtilisation
from testbed.routing.view import View
from testbed.scenario.policy_words import WeightedUtilisationPolicy
from tests.routing.beliefs import report, request, view_of

RNG = random.Random(1)


def policy_of(view: View, node: str = "us/leaf-1", **words: Any) -> WeightedUtilisation:
    policy = build_policy(
        WeightedUtilisationPolicy(kind="weighted_utilisation", **words),
        view, seed=1, node=node, report_every_s=1.0, output_mean=1.0,
    )  # fmt: skip
    assert isinstance(policy, WeightedUtilisation)
    return policy


def tell(policy: WeightedUtilisation, view: View, at_s: float, counts: dict[str, tuple[int, float]]) -> None:
    """Reports of (requests received, busy seconds) since the run began."""
    for name, (arrivals, busy_s) in counts.items():
        target = view.by_name[name]
        target.on_report(name, report(arrivals=arrivals, measured_at_s=at_s)._replace(busy_s=busy_s), at_s)
        policy.on_report(view, target)


def test_a_server_that_needs_less_time_for_a_query_gets_more() -> None:
    """a does 10 queries in 0.5 busy seconds, b in 0.25: weights 20 and 40 a busy second."""
    view = view_of([0, 0])
    policy = policy_of(view)
    tell(policy, view, 1.0, {"a": (0, 0.0), "b": (0, 0.0)})
    tell(policy, view, 2.0, {"a": (10, 0.5), "b": (10, 0.25)})

    assert policy.shares(view) == pytest.approx([1 / 3, 2 / 3])


def test_a_server_that_falls_behind_is_not_taken_to_be_quick() -> None:
    """Both finish 10 queries in half a second of work; b has received 30, of which 20 are still there."""
    view = view_of([0, 0])
    policy = policy_of(view)
    tell(policy, view, 1.0, {"a": (0, 0.0), "b": (0, 0.0)})
    tell(policy, view, 2.0, {"a": (10, 0.5)})
    target = view.by_name["b"]
    target.on_report("b", report(20, arrivals=30, measured_at_s=2.0)._replace(busy_s=0.5), 2.0)
    policy.on_report(view, target)

    assert policy.shares(view) == pytest.approx([0.5, 0.5])


def test_errors_lower_a_weight() -> None:
    view = view_of([0, 0])
    policy = policy_of(view)
    for _ in range(200):
        policy.on_reply(view.by_name["a"], 0.1, Outcome.FAILED)

    assert policy.shares(view) == pytest.approx([0.05 / 1.05, 1 / 1.05], rel=1e-3)


def test_a_server_without_load_has_the_mean_weight_and_a_forbidden_one_none() -> None:
    view = view_of([0, 0, 0, 0])
    policy = policy_of(view)
    view.allow(["a", "b", "c"])
    tell(policy, view, 1.0, {"a": (0, 0.0), "b": (0, 0.0), "c": (0, 0.0), "d": (0, 0.0)})
    tell(policy, view, 2.0, {"a": (10, 0.5), "b": (10, 0.25), "c": (0, 0.0), "d": (10, 0.1)})

    assert policy.shares(view) == pytest.approx([20 / 90, 40 / 90, 30 / 90, 0.0])


def test_rates_fade_with_the_age_of_what_they_count() -> None:
    """Ten seconds at 10 a second, then one memory of 10 s at none: 1/e is left of what was known."""
    usage = Usage(memory_s=10.0)
    usage.add(report(arrivals=0, measured_at_s=0.0)._replace(busy_s=0.0))
    usage.add(report(arrivals=100, measured_at_s=10.0)._replace(busy_s=4.0))
    known = usage.rate_per_s
    usage.add(report(arrivals=100, measured_at_s=20.0)._replace(busy_s=4.0))

    assert known == pytest.approx(10 * (1 - math.exp(-1)))
    assert usage.rate_per_s == pytest.approx(known / math.e)
    assert usage.busy_fraction == pytest.approx(0.4 * (1 - math.exp(-1)) / math.e)


def test_a_late_report_changes_nothing() -> None:
    usage = Usage(memory_s=10.0)
    for measured_at_s, arrivals in ((0.0, 0), (2.0, 20)):
        usage.add(report(arrivals=arrivals, measured_at_s=measured_at_s)._replace(busy_s=0.1 * arrivals))
    before = (usage.rate_per_s, usage.busy_fraction)
    usage.add(report(arrivals=10, measured_at_s=1.0)._replace(busy_s=1.0))

    assert (usage.rate_per_s, usage.busy_fraction) == before


def test_choices_follow_the_shares_and_new_shares_count_after_the_interval() -> None:
    view = view_of([0, 0])
    policy = policy_of(view, every="5 s")
    policy.choose(view, request(), RNG)
    tell(policy, view, 1.0, {"a": (0, 0.0), "b": (0, 0.0)})
    tell(policy, view, 2.0, {"a": (10, 0.5), "b": (10, 0.125)})

    def counts() -> Counter[str]:
        chosen = [policy.choose(view, request(i), RNG) for i in range(500)]
        return Counter(target.name for target in chosen if target is not None)

    assert counts()["a"] == pytest.approx(250, abs=1)
    view.now_s = 5.0
    assert counts()["a"] == pytest.approx(100, abs=1)


def test_leaves_with_equal_shares_begin_their_rounds_at_different_servers() -> None:
    first = set()
    for leaf in range(20):
        view = view_of([0] * 8)
        chosen = policy_of(view, f"us/leaf-{leaf}").choose(view, request(), RNG)
        assert chosen is not None
        first.add(chosen.name)

    assert len(first) > 4
