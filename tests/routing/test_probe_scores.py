"""The two other rankings of probe answers: a linear combination, and C3."""

from __future__ import annotations

import random

import pytest

from testbed.routing.c3 import C3
from testbed.routing.linear import Linear
from testbed.routing.policy import build_policy
from testbed.routing.prequal import Prequal
from testbed.routing.probe_pool import Answer
from testbed.scenario.policy_words import C3Policy, LinearPolicy
from tests.routing.beliefs import answer, request, view_of


@pytest.mark.parametrize(("weight", "best", "worst"), [(0.0, 0, 1), (0.5, 2, 1), (1.0, 2, 0)])
def test_the_linear_rule_weighs_latency_against_requests_in_flight(
    weight: float, best: int, worst: int
) -> None:
    """At 100 ms a request, half and half: 0.05 + 0.35, 0.45 + 0.1 and 0.15 + 0.05 s."""
    view = view_of([0, 0, 0])
    pool = [Answer(view.targets[i], *stated) for i, stated in enumerate([(7, 0.1), (2, 0.9), (1, 0.3)])]
    rule = Linear(LinearPolicy(kind="linear", in_flight_weight=weight, service_time="100 ms"))

    assert rule.best(pool) is pool[best]
    assert rule.worst(pool) is pool[worst]


def test_without_a_service_time_a_request_counts_as_the_servers_latency_alone() -> None:
    """alpha is 0.1 s."""
    (target,) = view_of([0]).targets
    rule = Linear(LinearPolicy(kind="linear"))

    assert rule._score_s(Answer(target, 4, 0.2)) == pytest.approx(0.1 + 0.2)


def test_c3_scores_by_the_cube_of_the_queue_it_expects() -> None:
    """Three leaves, two own requests there: q = 1 + 2 * 3 + 4 = 11, so (0.3 - 0.1) + 11^3 * 0.1."""
    (target,) = view_of([0]).targets
    rule = C3(C3Policy(kind="c3", newest_weight=1.0), leaves=3)
    rule.on_answer(target, answer(4, 0.1))
    rule.on_reply(target, 0.3)
    target.own_in_flight = 2

    assert rule._score_s(Answer(target, 4, 0.1)) == pytest.approx(0.2 + 11**3 * 0.1)


def test_c3_averages_what_it_hears() -> None:
    """After a first 0.1 s and 4 in flight come 0.5 s and 8, at a weight of one quarter: 0.2 s and 5."""
    (target,) = view_of([0]).targets
    rule = C3(C3Policy(kind="c3", newest_weight=0.25), leaves=1)
    rule.on_answer(target, answer(4, 0.1))
    rule.on_answer(target, answer(8, 0.5))

    assert rule._score_s(Answer(target, 8, 0.5)) == pytest.approx(6**3 * 0.2)  # no reply yet: R = 1/mu


def test_c3_does_not_believe_in_a_server_that_takes_no_time() -> None:
    """A stated 0 says nothing: alpha, 0.1 s, stands for it, so that the queue shows."""
    (target,) = view_of([0]).targets
    rule = C3(C3Policy(kind="c3", newest_weight=1.0), leaves=1)
    rule.on_answer(target, answer(9, 0.0))

    assert rule._score_s(Answer(target, 9, 0.0)) == pytest.approx(10**3 * 0.1)


def test_c3_avoids_the_server_where_its_own_requests_are() -> None:
    view = view_of([0, 0])
    policy = build_policy(
        C3Policy(kind="c3", removals_per_request=0.0), view, seed=1, node="us/leaf-1",
        report_every_s=0.1, output_mean=1.0, peers=4,
    )  # fmt: skip
    assert isinstance(policy, Prequal)
    for target in view.targets:
        policy.on_probe_reply(view, target, answer(1, 0.1))
    view.targets[0].own_in_flight = 1

    assert policy.choose(view, request(), random.Random(1)) is view.targets[1]
