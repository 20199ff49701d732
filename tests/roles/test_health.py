"""Active health checks: who is left out, when, and who comes back; and the answers of those who are checked."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from testbed.roles.health import AnsweringChecks, CheckingHealth
from testbed.roles.messages import Check, CheckReply, Reply, Rotation, Setting
from testbed.scenario.resilience_words import HealthChecks
from tests.roles.fake_environment import FakeEnvironment

ONE, TWO = "us/server-1", "us/server-2"


class Listener:
    """A role that keeps what it is told."""

    def __init__(self):
        self.heard = []

    def start(self):
        self.heard.append("start")

    def on_message(self, source, message):
        self.heard.append((source, message))

    def on_timer(self, name):
        self.heard.append(name)

    def stop(self, *, killed=False):
        self.heard.append("stop")

    def is_idle(self):
        return True

    def gauges(self):
        return (0, 0, 0)


def make_checker(env):
    listener = Listener()
    words = HealthChecks(every="1 s", timeout="300 ms", unhealthy_after=2, healthy_after=3)
    checker = CheckingHealth(listener, env, "us/leaf-1", [ONE, TWO], words, 0.5)
    checker.start()
    listener.heard.clear()
    return checker, listener


def check_round(env, checker, *answering, after_s=0.1):
    """One round, in which these answer so long after it began."""
    env.at_s = env.timers.pop("health")
    checker.on_timer("health")
    sequence = env.take_sent()[0][1].sequence
    answer_at_s, timeout_at_s = env.at_s + after_s, env.timers.pop("health:timeout")
    if answer_at_s < timeout_at_s:
        answer(env, checker, answer_at_s, sequence, answering)
    env.at_s = timeout_at_s
    checker.on_timer("health:timeout")
    if answer_at_s >= timeout_at_s:
        answer(env, checker, answer_at_s, sequence, answering)


def answer(env, checker, at_s, sequence, answering):
    env.at_s = at_s
    for target in answering:
        checker.on_message(target, CheckReply(sequence, 0))


def test_a_target_is_left_out_after_so_many_failures_in_a_row_and_used_after_so_many_answers():
    env = FakeEnvironment()
    checker, listener = make_checker(env)

    for answering in ([ONE, TWO], [TWO], [ONE, TWO], [TWO], [TWO]):
        check_round(env, checker, *answering)
    assert listener.heard == [("", Rotation(ONE, False, "health"))]
    assert env.at_s == pytest.approx(4.8)

    for answering in ([ONE, TWO], [ONE, TWO], [TWO], *[[ONE, TWO]] * 3):
        check_round(env, checker, *answering)
    assert listener.heard[1:] == [("", Rotation(ONE, True, "health"))]
    assert [row[3] for row in env.rows_of("rotations")] == [False, True]


def test_an_answer_after_the_timeout_is_none():
    env = FakeEnvironment()
    checker, listener = make_checker(env)

    for _ in range(2):
        check_round(env, checker, ONE, TWO, after_s=0.4)

    assert [message.target for _, message in listener.heard] == [ONE, TWO]


def test_all_else_is_the_balancer_s():
    env = FakeEnvironment()
    checker, listener = make_checker(env)
    reply = Reply(1, 0, 0, 0.1, 0, 0)
    checker.on_message(ONE, reply)
    checker.on_timer("report")

    assert listener.heard == [(ONE, reply), "report"]


def test_a_checked_node_answers_unless_it_is_absent():
    env = FakeEnvironment()
    listener = Listener()
    server = AnsweringChecks(listener, env)
    server.on_message("us/leaf-1", Check(1, 0))
    server.on_message("", Setting("absent", 1.0))
    server.on_message("us/leaf-1", Check(2, 0))
    server.on_message("", Setting("absent", 0.0))
    server.on_message("us/leaf-1", Check(3, 0))

    assert env.sent == [("us/leaf-1", CheckReply(1, 0)), ("us/leaf-1", CheckReply(3, 0))]
    assert [message.key for _, message in listener.heard] == ["absent", "absent"]


def test_a_check_that_outlasts_its_period_is_refused():
    with pytest.raises(ValidationError, match="timeout, 2 s, is above every, 1 s"):
        HealthChecks(every="1 s", timeout="2 s")
