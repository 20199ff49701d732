"""A leaf that gives requests to further servers: when, to which, and that its root gets one answer."""

from __future__ import annotations

import pytest

from testbed.roles.attempt_keys import LEAF_ATTEMPT, AttemptKeys, PlainWorld
from testbed.roles.hedge_delay import FEWEST, HedgeDelay
from testbed.roles.latency_model import LatencyModel
from testbed.roles.leaf_configuration import LeafConfiguration
from testbed.roles.messages import Cancel, Outcome, Reply, Request
from testbed.roles.resending_leaf import ResendingLeaf
from testbed.roles.schedule import Schedule
from testbed.routing.policy import build_policy, policy_hooks
from testbed.routing.view import Target, View
from testbed.scenario.policy_words import DEFAULT_LEAF_POLICY
from testbed.scenario.resilience_words import Hedging, Retries
from testbed.serving.rate_curve import RateCurve
from tests.roles.fake_environment import FakeEnvironment

ONE, TWO, THREE = (f"us/server-{i}" for i in (1, 2, 3))


def make_leaf(env, retries=None, hedging=None, servers=3):
    curve = RateCurve(0.1, 0.01, 50)
    view = View([Target(name, curve, 1, i) for i, name in enumerate((ONE, TWO, THREE)[:servers])])
    policy = build_policy(
        DEFAULT_LEAF_POLICY, view, seed=1, node="us/leaf-1", report_every_s=0.1, output_mean=8.0
    )
    told = LeafConfiguration(
        view=view, policy=policy, hooks=policy_hooks(policy), roots=["root.a"],
        timeouts_s=[5.0], reports=Schedule(0.1, 0.02), model=LatencyModel(0.0125, 0.00125, 0.5),
        has_peers=False, counts_steps=True,
    )  # fmt: skip
    leaf = ResendingLeaf(
        PlainWorld(env),
        "us/leaf-1",
        told,
        cancels=[True],
        limit=None,
        seed=1,
        retries=retries,
        hedging=hedging,
    )
    role = AttemptKeys(leaf)
    role.start()
    return role, view


def request(request_id=7, attempt=0):
    return Request(request_id, attempt, 0, 48, 8)


def reply(request_id=7, attempt=0, outcome=Outcome.COMPLETED):
    return Reply(request_id, attempt, int(outcome), 0.2, 0, 0)


def given(env):
    return [(target, *message[:2]) for target, message in env.sent if isinstance(message, Request)]


def answers(env):
    return [
        (message.request_id, message.attempt, Outcome(message.outcome).name)
        for target, message in env.sent
        if target == "root.a" and isinstance(message, Reply)
    ]


def visits(env):
    return [(row[1], row[3], Outcome(row[4]).name) for row in env.rows_of("visits")]


def fire(env, leaf, name):
    env.at_s = env.timers.pop(name)
    leaf.on_timer(name)


def assert_free(leaf, view):
    assert leaf.is_idle()
    assert leaf.gauges() == (1, 1, 0)
    assert [target.own_in_flight for target in view.targets] == [0] * len(view.targets)


def test_a_request_that_failed_is_given_to_another_server_and_its_root_gets_one_answer():
    env = FakeEnvironment()
    leaf, view = make_leaf(env, Retries())
    leaf.on_message("root.a", request(attempt=2))
    leaf.on_message(ONE, reply(attempt=2, outcome=Outcome.FAILED))
    leaf.on_message(TWO, reply(attempt=2 + LEAF_ATTEMPT))

    assert given(env) == [(ONE, 7, 2), (TWO, 7, 2 + LEAF_ATTEMPT)]
    assert answers(env) == [(7, 2, "COMPLETED")]
    assert visits(env) == [(2, ONE, "FAILED"), (2 + LEAF_ATTEMPT, TWO, "COMPLETED")]
    assert_free(leaf, view)


def test_the_last_failure_is_the_answer_where_there_are_no_more_attempts():
    env = FakeEnvironment()
    leaf, view = make_leaf(env, Retries(attempts=2))
    leaf.on_message("root.a", request())
    leaf.on_message(ONE, reply(outcome=Outcome.SHED))
    leaf.on_message(TWO, reply(attempt=LEAF_ATTEMPT, outcome=Outcome.FAILED))

    assert answers(env) == [(7, 0, "FAILED")]
    assert_free(leaf, view)


def test_a_copy_that_waits_for_too_long_is_called_back_and_follows_at_another_server_after_a_backoff():
    env = FakeEnvironment()
    leaf, view = make_leaf(env, Retries(attempt_timeout="1 s", backoff="100 ms"))
    leaf.on_message("root.a", request())
    fire(env, leaf, "attempt")

    assert env.sent[-1] == (ONE, Cancel(7, 0))
    assert view.targets[0].own_in_flight == 0
    assert not leaf.is_idle()
    fire(env, leaf, "again")
    assert 1.05 <= env.at_s <= 1.1
    leaf.on_message(TWO, reply(attempt=LEAF_ATTEMPT))

    assert answers(env) == [(7, 0, "COMPLETED")]
    assert_free(leaf, view)


def test_a_call_of_the_root_ends_all_copies_and_what_waits_for_its_backoff():
    env = FakeEnvironment()
    leaf, view = make_leaf(env, Retries(backoff="100 ms"), Hedging(after="1 s", budget=None))
    leaf.on_message("root.a", request())
    fire(env, leaf, "hedge")
    leaf.on_message("root.a", Cancel(7, 0, int(Outcome.CANCELLED)))

    calls = [each for each in env.sent if isinstance(each[1], Cancel)]
    assert calls == [(ONE, Cancel(7, 0)), (TWO, Cancel(7, LEAF_ATTEMPT))]
    assert visits(env) == [(0, ONE, "CANCELLED"), (LEAF_ATTEMPT, TWO, "CANCELLED")]
    assert answers(env) == []
    assert_free(leaf, view)


def test_a_call_during_a_backoff_ends_the_request():
    env = FakeEnvironment()
    leaf, view = make_leaf(env, Retries(backoff="100 ms"))
    leaf.on_message("root.a", request())
    leaf.on_message(ONE, reply(outcome=Outcome.FAILED))
    leaf.on_message("root.a", Cancel(7, 0))
    assert leaf.is_idle()
    fire(env, leaf, "again")

    assert len(given(env)) == 1
    assert_free(leaf, view)


def test_the_first_answer_wins_and_the_other_copy_frees_its_place():
    env = FakeEnvironment()
    leaf, view = make_leaf(env, hedging=Hedging(after="1 s", budget=None))
    leaf.on_message("root.a", request())
    fire(env, leaf, "hedge")
    assert given(env) == [(ONE, 7, 0), (TWO, 7, LEAF_ATTEMPT)]
    leaf.on_message(TWO, reply(attempt=LEAF_ATTEMPT))

    assert (ONE, Cancel(7, 0)) in env.sent
    assert answers(env) == [(7, 0, "COMPLETED")]
    assert visits(env) == [(LEAF_ATTEMPT, TWO, "COMPLETED"), (0, ONE, "CANCELLED")]
    assert_free(leaf, view)
    leaf.on_message(ONE, reply())  # it had finished when the call came: too late, and no error
    assert answers(env) == [(7, 0, "COMPLETED")]


def test_no_hedge_goes_where_a_copy_is_already():
    env = FakeEnvironment()
    leaf, _ = make_leaf(env, hedging=Hedging(after="1 s", copies=5, budget=None), servers=2)
    leaf.on_message("root.a", request())
    fire(env, leaf, "hedge")
    fire(env, leaf, "hedge")

    assert given(env) == [(ONE, 7, 0), (TWO, 7, LEAF_ATTEMPT)]


def test_without_either_word_a_copy_that_failed_is_the_answer():
    env = FakeEnvironment()
    leaf, view = make_leaf(env)
    leaf.on_message("root.a", request())
    leaf.on_message(ONE, reply(outcome=Outcome.FAILED))

    assert answers(env) == [(7, 0, "FAILED")]
    assert_free(leaf, view)


@pytest.mark.parametrize(("quantile", "expected_s"), [("90 %", 0.9), ("50 %", 0.5)])
def test_a_quantile_of_the_delay_is_known_once_enough_was_seen(quantile, expected_s):
    delay = HedgeDelay(Hedging(after_quantile=quantile))
    for i in range(FEWEST - 1):
        delay.on_end((37 * i % 100) / 100)
    assert delay.after_s() == float("inf")

    for i in range(FEWEST - 1, 1000):
        delay.on_end((37 * i % 100) / 100)

    assert delay.after_s() == pytest.approx(expected_s, abs=0.02)
