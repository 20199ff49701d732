"""A root that sends requests again: when it does, when it does not, and what it calls back."""

from __future__ import annotations

from array import array

import pytest

from testbed.roles.attempt_keys import AttemptKeys, PlainWorld, attempt_key
from testbed.roles.budget import SAVED, Budget
from testbed.roles.messages import Cancel, Outcome, Reply, Request
from testbed.roles.retry import RetryingRoot
from testbed.roles.root import Stream
from testbed.routing.cost import cost_function
from testbed.routing.policy import build_policy, policy_hooks
from testbed.routing.view import Target, View
from testbed.scenario.policy_words import RoundRobinPolicy
from testbed.scenario.resilience_words import Retries
from testbed.serving.rate_curve import RateCurve
from testbed.traffic.plan import RootPlan
from tests.roles.fake_environment import FakeEnvironment

LEAVES = {"us": ("us/leaf-1",), "eu": ("eu/leaf-1",)}


def make_plain(env, *args, **words):
    return RetryingRoot(PlainWorld(env), *args, **words)


def make_root(env, retries, instants=(1.0,), cancel=False, timeout_s=5.0, make=make_plain):
    view = View([Target(name, RateCurve(0.1, 0.01, 50), 2, i) for i, name in enumerate(LEAVES)])
    spec = RoundRobinPolicy(kind="round_robin")
    policy = build_policy(spec, view, seed=1, node="root.r", report_every_s=0.1, output_mean=8.0)
    cost = cost_function("in_flight", "profile", 8.0)
    stream = Stream("sand", view, policy, policy_hooks(policy), cost, timeout_s, 0.05)
    count = len(instants)
    plan = RootPlan(
        array("q", range(10, 10 + count)),
        array("d", instants),
        array("i", [0] * count),
        array("i", [0] * count),
        array("q", [48] * count),
        array("q", [8] * count),
    )
    root = make(env, "root.r", [stream], plan, LEAVES, 0.0, seed=1, retries=[retries], cancels=[cancel])
    role = AttemptKeys(root)
    role.start()
    return role, view


def reply(request_id, attempt=0, outcome=Outcome.COMPLETED):
    return Reply(request_id, attempt, int(outcome), 0.2, 0, 0)


def fire(env, root, name, at_s=None):
    env.at_s = env.timers.pop(name) if at_s is None else at_s
    root.on_timer(name)


def sendings(env):
    return [(target, *message[:2]) for target, message in env.sent if isinstance(message, Request)]


def outcomes(env):
    return [(row[0], row[1], Outcome(row[5]).name) for row in env.rows_of("dispatches")]


def test_a_request_that_failed_is_sent_again_where_the_policy_sends_it_now():
    env = FakeEnvironment()
    root, view = make_root(env, Retries())
    fire(env, root, "arrival")
    root.on_message("us/leaf-1", reply(10, outcome=Outcome.FAILED))
    root.on_message("eu/leaf-1", reply(10, attempt=1))

    assert sendings(env) == [("us/leaf-1", 10, 0), ("eu/leaf-1", 10, 1)]
    assert outcomes(env) == [(10, 0, "FAILED"), (10, 1, "COMPLETED")]
    assert {row[6] for row in env.rows_of("dispatches")} == {1.0}  # both count from the planned arrival
    assert root.gauges() == (1, 1, 0)
    assert [target.own_in_flight for target in view.targets] == [0, 0]
    assert root.is_idle()


def test_there_are_no_more_attempts_than_asked_for():
    env = FakeEnvironment()
    root, _ = make_root(env, Retries(attempts=2))
    fire(env, root, "arrival")
    root.on_message("us/leaf-1", reply(10, outcome=Outcome.SHED))
    root.on_message("eu/leaf-1", reply(10, attempt=1, outcome=Outcome.SHED))

    assert outcomes(env) == [(10, 0, "SHED"), (10, 1, "SHED")]
    assert root.gauges() == (1, 1, 0)


def test_an_outcome_that_is_not_named_is_final():
    env = FakeEnvironment()
    root, _ = make_root(env, Retries(on=("shed",)))
    fire(env, root, "arrival")
    root.on_message("us/leaf-1", reply(10, outcome=Outcome.FAILED))

    assert outcomes(env) == [(10, 0, "FAILED")]
    assert root.is_idle()


def test_an_attempt_has_a_timeout_of_its_own_and_its_late_reply_does_not_end_the_next_one():
    env = FakeEnvironment()
    root, view = make_root(env, Retries(attempt_timeout="1 s"))
    fire(env, root, "arrival")
    fire(env, root, "timeout:0")
    env.at_s = 2.1
    root.on_message("us/leaf-1", reply(10))

    assert sendings(env) == [("us/leaf-1", 10, 0), ("eu/leaf-1", 10, 1)]
    assert env.rows_of("late_replies") == [(10, 0, 2.1)]
    assert [target.own_in_flight for target in view.targets] == [0, 1]
    assert not root.is_idle()


def test_the_timeout_of_the_class_ends_all_attempts():
    env = FakeEnvironment()
    root, _ = make_root(env, Retries(attempts=9, attempt_timeout="2 s"), timeout_s=5.0)
    fire(env, root, "arrival")
    for _ in range(3):
        fire(env, root, "timeout:0")

    assert env.at_s == 6.0
    assert outcomes(env) == [(10, 0, "TIMED_OUT"), (10, 1, "TIMED_OUT"), (10, 2, "TIMED_OUT")]
    assert root.is_idle()


def test_the_deadline_of_a_retry_is_not_missed_behind_those_of_younger_requests():
    env = FakeEnvironment()
    root, _ = make_root(env, Retries(), instants=(1.0, 2.0))
    fire(env, root, "arrival")
    fire(env, root, "arrival")
    env.at_s = 3.0
    root.on_message("us/leaf-1", reply(10, outcome=Outcome.FAILED))

    fire(env, root, "timeout:0")

    assert env.at_s == 6.0
    assert outcomes(env)[-1] == (10, 1, "TIMED_OUT")
    assert env.timers["timeout:0"] == 7.0


def test_a_backoff_delays_the_retry_and_doubles():
    env = FakeEnvironment()
    root, _ = make_root(env, Retries(backoff="400 ms"))
    fire(env, root, "arrival")
    root.on_message("us/leaf-1", reply(10, outcome=Outcome.FAILED))
    assert root.gauges() == (1, 0, 1)
    assert not root.is_idle()
    fire(env, root, "again")
    first_s, started_s = env.at_s - 1.0, env.at_s
    root.on_message("eu/leaf-1", reply(10, attempt=1, outcome=Outcome.FAILED))
    fire(env, root, "again")

    assert 0.2 < first_s < 0.4
    assert 0.4 < env.at_s - started_s < 0.8
    assert sendings(env)[-1] == ("us/leaf-1", 10, 2)


def test_what_waits_for_its_backoff_at_the_end_is_unfinished():
    env = FakeEnvironment()
    root, _ = make_root(env, Retries(backoff="1 s"))
    fire(env, root, "arrival")
    root.on_message("us/leaf-1", reply(10, outcome=Outcome.FAILED))
    root.stop()

    assert outcomes(env) == [(10, 0, "FAILED"), (10, 1, "UNFINISHED")]


def test_a_budget_allows_a_share_of_first_sendings():
    env = FakeEnvironment()
    root, _ = make_root(env, Retries(budget="20 %"), instants=tuple(range(1, 21)))
    for request_id in range(10, 30):
        fire(env, root, "arrival")
        root.on_message(env.sent[-1][0], reply(request_id, outcome=Outcome.FAILED))
        target, request = env.sent[-1]
        if request.attempt:
            root.on_message(target, reply(request_id, attempt=1))

    assert [request_id for _, request_id, attempt in sendings(env) if attempt] == [14, 19, 24, 29]


def test_a_budget_saves_up_so_much_and_no_more():
    budget = Budget(0.5)
    for _ in range(1000):
        budget.on_first()

    assert [budget.take() for _ in range(int(SAVED) + 1)] == [True] * int(SAVED) + [False]


def test_an_attempt_whose_time_is_up_is_called_back_under_its_own_number():
    env = FakeEnvironment()
    root, _ = make_root(env, Retries(attempts=2, attempt_timeout="1 s"), cancel=True)
    fire(env, root, "arrival")
    fire(env, root, "timeout:0")
    fire(env, root, "timeout:0")

    calls = [(target, message) for target, message in env.sent if isinstance(message, Cancel)]
    assert calls == [("us/leaf-1", Cancel(10, 0)), ("eu/leaf-1", Cancel(10, 1))]


@pytest.mark.parametrize("request_id", [0, 7, 2**31])
def test_every_attempt_has_a_key_of_its_own(request_id):
    keys = [attempt_key(request_id, attempt) for attempt in range(4)]

    assert keys[0] == request_id
    assert len(set(keys)) == 4
    assert attempt_key(keys[2], 3) == keys[3]  # from the key of an earlier attempt as well
