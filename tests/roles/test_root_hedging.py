"""A root that sends second copies: when it does, who wins, and what becomes of the others."""

from __future__ import annotations

import pytest

from testbed.roles.attempt_keys import AttemptKeys, PlainWorld
from testbed.roles.messages import Cancel, Outcome
from testbed.roles.root_hedging import HedgingRoot
from testbed.scenario.resilience_words import Hedging, Retries
from tests.roles.fake_environment import FakeEnvironment
from tests.roles.test_retry import fire, make_root, outcomes, reply, sendings


def hedging_root(env, hedging, retries=None, instants=(1.0,), **words):
    def make(env, *args, **rest):
        return HedgingRoot(PlainWorld(env), *args, hedging=[hedging], **rest)

    return make_root(env, retries, instants, make=make, **words)


def test_a_second_copy_goes_to_another_cell_and_the_first_answer_wins():
    env = FakeEnvironment()
    root, view = hedging_root(env, Hedging(after="500 ms", budget=None))
    fire(env, root, "arrival")
    fire(env, root, "hedge")

    assert env.at_s == 1.5
    assert sendings(env) == [("us/leaf-1", 10, 0), ("eu/leaf-1", 10, 1)]
    root.on_message("eu/leaf-1", reply(10, attempt=1))

    assert outcomes(env) == [(10, 1, "COMPLETED"), (10, 0, "CANCELLED")]
    assert env.sent[-1] == ("us/leaf-1", Cancel(10, 0, int(Outcome.CANCELLED)))
    assert [target.own_in_flight for target in view.targets] == [0, 0]
    assert root.gauges() == (1, 1, 0)
    assert root.is_idle()
    assert env.rows_of("resendings") == [(10, 1, "root.r", "hedge", 1.5)]


def test_an_answer_in_time_leaves_no_copy_to_be_sent():
    env = FakeEnvironment()
    root, _ = hedging_root(env, Hedging(after="500 ms", budget=None))
    fire(env, root, "arrival")
    env.at_s = 1.2
    root.on_message("us/leaf-1", reply(10))
    fire(env, root, "hedge")

    assert sendings(env) == [("us/leaf-1", 10, 0)]


def test_an_answer_that_crosses_the_call_is_late():
    env = FakeEnvironment()
    root, _ = hedging_root(env, Hedging(after="500 ms", budget=None))
    fire(env, root, "arrival")
    fire(env, root, "hedge")
    root.on_message("eu/leaf-1", reply(10, attempt=1))
    root.on_message("us/leaf-1", reply(10))

    assert env.rows_of("late_replies") == [(10, 0, 1.5)]


def test_a_copy_that_fails_ends_nothing_while_another_one_is_open():
    env = FakeEnvironment()
    root, _ = hedging_root(env, Hedging(after="500 ms", budget=None), Retries())
    fire(env, root, "arrival")
    fire(env, root, "hedge")
    root.on_message("eu/leaf-1", reply(10, attempt=1, outcome=Outcome.FAILED))
    assert root.gauges() == (1, 0, 1)

    root.on_message("us/leaf-1", reply(10, outcome=Outcome.FAILED))

    # the third sending is a retry, which all the attempts that the words allow have led to
    assert [sending[1:] for sending in sendings(env)] == [(10, 0), (10, 1), (10, 2)]
    assert root.gauges() == (1, 0, 1)


def test_both_copies_end_at_the_timeout_as_one_request():
    env = FakeEnvironment()
    root, view = hedging_root(env, Hedging(after="500 ms", budget=None), timeout_s=2.0)
    fire(env, root, "arrival")
    fire(env, root, "hedge")
    fire(env, root, "timeout:0")

    assert env.at_s == 3.0
    assert outcomes(env) == [(10, 0, "TIMED_OUT"), (10, 1, "TIMED_OUT")]
    assert root.gauges() == (1, 1, 0)
    assert [target.own_in_flight for target in view.targets] == [0, 0]


def test_there_is_no_copy_where_all_cells_have_one():
    env = FakeEnvironment()
    root, _ = hedging_root(env, Hedging(after="500 ms", copies=3, budget=None))
    fire(env, root, "arrival")
    fire(env, root, "hedge")
    fire(env, root, "hedge")

    assert len(sendings(env)) == 2


def test_the_budget_holds_copies_to_a_share_of_first_sendings():
    env = FakeEnvironment()
    root, _ = hedging_root(
        env, Hedging(after="500 ms", budget="25 %"), instants=[1.0 + 0.1 * i for i in range(12)]
    )
    for _ in range(12):
        fire(env, root, "arrival")
    env.at_s = 3.0
    root.on_timer("hedge")

    copies = [sending for sending in sendings(env) if sending[2]]
    assert len(copies) == 3


@pytest.mark.parametrize("outcome", [Outcome.COMPLETED, Outcome.TIMED_OUT])
def test_requests_of_a_class_without_hedging_are_sent_once(outcome):
    env = FakeEnvironment()
    root, _ = hedging_root(env, None)
    fire(env, root, "arrival")
    root.on_message("us/leaf-1", reply(10, outcome=outcome))

    assert "hedge" not in env.timers
    assert root.gauges() == (1, 1, 0)
    assert isinstance(root, AttemptKeys)
