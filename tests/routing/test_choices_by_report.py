"""Rules that compare what targets reported: the shortest queue, the greatest marginal rate, the best of d, the worst."""

from __future__ import annotations

import math
import random
from collections import Counter

import pytest

from testbed.routing.d_choices import DChoices
from testbed.routing.greedy import TwoChoices
from testbed.routing.marginal_rate import GreatestMarginalRate, inverse_marginal_rate_s
from testbed.routing.policy import Policy, build_policy
from testbed.routing.shortest_queue import QUEUED, ShortestQueue, per_server
from testbed.routing.view import REPORTED, Target, View
from testbed.routing.worst import Worst
from testbed.scenario.policy_words import DChoicesPolicy
from testbed.serving.rate_curve import RateCurve
from tests.routing.beliefs import report, request, view_of


def chosen(policy: Policy, view: View, seed: int = 1) -> str:
    target = policy.choose(view, request(), random.Random(seed))
    assert target is not None
    return target.name


def believed(target: Target) -> float:
    return float(target.in_flight)


def test_the_shortest_queue_counts_per_server_and_not_what_was_sent_since() -> None:
    view = view_of([9, 8, 4], servers=[3, 2, 1])
    policy = ShortestQueue(per_server(REPORTED))
    for i in range(5):
        view.targets[0].on_sent(i, 0.0)

    assert chosen(policy, view) == "a"


def test_the_shortest_queue_may_look_at_the_waiting_alone() -> None:
    view = view_of([0, 0])
    view.targets[0].on_report("a", report(6, sequence=1, running=5), 0.0)  # one waits
    view.targets[1].on_report("b", report(4, sequence=1, running=2), 0.0)  # two wait

    assert chosen(ShortestQueue(per_server(QUEUED)), view) == "a"
    assert chosen(ShortestQueue(per_server(REPORTED)), view) == "b"


def test_the_greatest_marginal_rate_is_the_derivative_of_the_completion_rate() -> None:
    """1/l' against a difference quotient of l, for a group of servers, by profile and by a speed factor."""
    curve = RateCurve(alpha_s=0.1, beta_s=0.01, n_cap=30.0)
    target = Target("a", curve, servers=4)
    target.on_report("a", report(40, speed=0.5), 0.0)

    def rate_per_s(in_flight: float) -> float:
        return 4 * curve.rate_per_s(in_flight / 4)

    slope_per_s = (rate_per_s(40 + 1e-4) - rate_per_s(40 - 1e-4)) / 2e-4
    assert inverse_marginal_rate_s("profile", 8.0)(target) == pytest.approx(1 / slope_per_s, rel=1e-6)
    assert inverse_marginal_rate_s("scaled", 8.0)(target) == pytest.approx(2 / slope_per_s, rel=1e-6)


def test_the_greatest_marginal_rate_prefers_the_quick_server_until_it_is_the_fuller_in_rate() -> None:
    """l' = alpha / (alpha + beta n)^2: with twice the alpha and beta a server of n equals one of 1.1 n + 4.1."""
    quick, slow = RateCurve(0.1, 0.01), RateCurve(0.2, 0.02)
    policy = GreatestMarginalRate(inverse_marginal_rate_s("profile", 8.0))

    def between(n_quick: int, n_slow: int) -> str:
        targets = [Target("quick", quick, index=0), Target("slow", slow, index=1)]
        for target, n in zip(targets, (n_quick, n_slow), strict=True):
            target.on_report(target.name, report(n), 0.0)
        return chosen(policy, View(targets))

    edge = math.sqrt(2) * 20.0 - 10.0  # where (0.1 + 0.01 n)^2 / 0.1 = (0.2 + 0.02 * 10)^2 / 0.2
    assert between(math.floor(edge), 10) == "quick"
    assert between(math.ceil(edge), 10) == "slow"


def test_among_full_targets_the_greatest_marginal_rate_takes_the_least_full() -> None:
    view = view_of([45, 40, 50])  # n_cap is 30

    assert chosen(GreatestMarginalRate(inverse_marginal_rate_s("scaled", 8.0)), view) == "b"


def test_the_best_of_d_is_the_best_of_any_d_with_the_same_chance() -> None:
    """Of 5 targets the k-th best is the best of 3 in C(5-k, 2) of the 10 sets; the two worst never are."""
    view = view_of([4, 3, 2, 1, 0])
    policy = DChoices(believed, 3)
    rng = random.Random(7)

    counts = Counter()
    for i in range(10_000):
        target = policy.choose(view, request(i), rng)
        assert target is not None
        counts[target.name] += 1

    for name, sets in (("e", 6), ("d", 3), ("c", 1)):
        sd = math.sqrt(10_000 * sets / 10 * (1 - sets / 10))
        assert abs(counts[name] - 1000 * sets) < 4 * sd
    assert counts["a"] == counts["b"] == 0


def test_more_choices_than_targets_are_all_of_them_and_two_are_two_choices() -> None:
    view = view_of([4, 1, 2])
    view.allow(["a", "c"])

    assert chosen(DChoices(believed, 9), view) == "c"
    spec = DChoicesPolicy(kind="d_choices", choices=2)
    built = build_policy(spec, view, seed=1, node="a", report_every_s=0.1, output_mean=8.0)
    assert isinstance(built, TwoChoices)


def test_the_worst_takes_the_dearest() -> None:
    view = view_of([4, 9, 2])

    assert chosen(Worst(believed), view) == "b"
    view.allow(["a", "c"])
    assert chosen(Worst(believed), view) == "a"
