from __future__ import annotations

import random
from collections import Counter

import pytest

from testbed.routing.belief import configure_view
from testbed.routing.greedy import LeastCost, RandomChoice, RoundRobin, TwoChoices, build_least_cost
from testbed.routing.policy import Policy, build_policy
from testbed.routing.view import Target, View
from testbed.scenario import policy_words
from testbed.scenario.policy_words import LeastCostPolicy
from tests.routing.beliefs import request, view_of


class NoDraws(random.Random):
    """A stream that must not be used."""

    def random(self) -> float:
        raise AssertionError("a draw was made")


def in_flight(target: Target) -> float:
    return float(target.in_flight)


def names(policy: Policy, view: View, count: int, rng: random.Random) -> str:
    chosen = [policy.choose(view, request(i), rng) for i in range(count)]
    return "".join(target.name for target in chosen if target is not None)


@pytest.mark.parametrize(
    "policy", [RandomChoice(), RoundRobin(), LeastCost(in_flight), TwoChoices(in_flight, "random")]
)
def test_one_allowed_target_needs_no_draw_and_none_gives_none(policy: Policy) -> None:
    view = view_of([1, 2, 3])
    rng = NoDraws()

    view.allow(["b"])
    assert policy.choose(view, request(), rng) is view.targets[1]
    view.allow([])
    assert policy.choose(view, request(), rng) is None


def test_random_gives_each_allowed_target_the_same_share() -> None:
    """Binomial, 4 standard deviations of 9000 draws at 1/3: 179."""
    view = view_of([0, 0, 0, 0])
    view.allow(["a", "c", "d"])

    counts = Counter(names(RandomChoice(), view, 9000, random.Random(1)))

    assert set(counts) == {"a", "c", "d"}
    assert all(abs(count - 3000) < 179 for count in counts.values())


def test_round_robin_goes_on_where_it_was_when_the_allowed_targets_change() -> None:
    view = view_of([0, 0, 0, 0])
    policy = RoundRobin()
    rng = NoDraws()

    assert names(policy, view, 5, rng) == "abcda"
    view.allow(["a", "c"])
    assert names(policy, view, 3, rng) == "cac"
    view.allow(["a", "b", "c", "d"])
    assert names(policy, view, 2, rng) == "da"


def test_least_cost_takes_the_cheapest_allowed_target() -> None:
    view = view_of([5, 1, 3])
    policy = LeastCost(in_flight)

    assert policy.choose(view, request(), NoDraws()) is view.targets[1]
    view.allow(["a", "c"])
    assert policy.choose(view, request(), NoDraws()) is view.targets[2]


def test_tied_targets_are_taken_in_turn_after_the_last_choice() -> None:
    view = view_of([1, 1, 9, 1])
    policy = LeastCost(in_flight, "rotated")

    assert names(policy, view, 5, NoDraws()) == "abdab"


def test_tied_targets_may_be_taken_first_or_at_random() -> None:
    view = view_of([9, 1, 1, 1])

    assert names(LeastCost(in_flight, "first"), view, 3, NoDraws()) == "bbb"
    counts = Counter(names(LeastCost(in_flight, "random"), view, 3000, random.Random(2)))
    assert set(counts) == {"b", "c", "d"}
    assert all(abs(count - 1000) < 104 for count in counts.values())  # 4 standard deviations


def test_two_choices_takes_the_cheaper_of_every_pair_equally_often() -> None:
    """Of the three pairs of a < b < c, a wins two and b one; 4 standard deviations of 6000 draws: 146."""
    view = view_of([1, 2, 3])

    counts = Counter(names(TwoChoices(in_flight), view, 6000, random.Random(3)))

    assert set(counts) == {"a", "b"}
    assert abs(counts["a"] - 4000) < 146


def test_two_choices_draws_two_distinct_targets() -> None:
    """With two targets the cheaper one always wins."""
    view = view_of([2, 1])

    assert set(names(TwoChoices(in_flight), view, 200, random.Random(4))) == {"b"}


def test_ties_of_two_choices_follow_their_rule() -> None:
    view = view_of([1, 1])

    assert names(TwoChoices(in_flight, "rotated"), view, 4, random.Random(5)) == "abab"
    assert names(TwoChoices(in_flight, "first"), view, 4, random.Random(5)) == "aaaa"
    counts = Counter(names(TwoChoices(in_flight, "random"), view, 1000, random.Random(5)))
    assert abs(counts["a"] - 500) < 64


def test_a_policy_that_corrects_by_own_sends_has_them_kept() -> None:
    view = view_of([0, 0])
    spec = LeastCostPolicy(kind="least_cost", cost="in_flight", own_counts="add")

    configure_view(spec, view)
    policy = build_least_cost(spec, view, output_mean=8.0)
    view.targets[0].on_sent(1, 1.0)

    assert policy.cost(view.targets[0]) == 1
    assert policy.choose(view, request(), NoDraws()) is view.targets[1]


def test_a_policy_on_reports_alone_keeps_no_own_sends() -> None:
    view = view_of([0, 0])

    configure_view(LeastCostPolicy(kind="least_cost"), view)

    assert not any(target.keeps_unseen for target in view.targets)


def test_balancers_that_share_targets_begin_their_rounds_at_different_ones() -> None:
    """One alone begins with the first of the scenario; in step, many would all send to the same target at once."""
    first = set()
    for leaf in range(20):
        for spec in (policy_words.RoundRobinPolicy(kind="round_robin"), policy_words.DEFAULT_LEAF_POLICY):
            view = view_of([0] * 8)
            place = {"seed": 1, "node": f"us/leaf-{leaf}", "report_every_s": 0.1, "output_mean": 1.0}
            assert (
                build_policy(spec, view, **place).choose(view, request(), random.Random(1)) is view.targets[0]
            )
            chosen = build_policy(spec, view, **place, peers=20).choose(view, request(), random.Random(1))
            assert chosen is not None
            first.add((spec.kind, chosen.name))

    assert len(first) > 8
