"""Asking for reports: whom, when, and what a silent one does to the others."""

from __future__ import annotations

from testbed.roles.messages import Poll
from testbed.roles.poller import Poller, Polls
from testbed.roles.schedule import Schedule
from tests.roles.fake_environment import FakeEnvironment

REPORTERS = ("us/server-1", "us/server-2", "us/server-3")


def make_poller(env: FakeEnvironment, in_series: bool) -> Poller:
    poller = Poller(env, "poll", Polls(REPORTERS, Schedule(0.1, 0.04), in_series))
    poller.start()
    return poller


def fire(env: FakeEnvironment, poller: Poller) -> list[str]:
    """The next period begins; who is asked."""
    env.at_s = env.timers.pop("poll")
    poller.on_timer()
    return asked(env)


def asked(env: FakeEnvironment) -> list[str]:
    sent = env.take_sent()
    assert all(isinstance(message, Poll) for _, message in sent)
    return [reporter for reporter, _ in sent]


def test_in_parallel_all_are_asked_every_period_whether_they_answer_or_not() -> None:
    env = FakeEnvironment()
    poller = make_poller(env, in_series=False)
    assert env.timers["poll"] == 0.04

    assert fire(env, poller) == list(REPORTERS)
    poller.on_report("us/server-2")
    assert asked(env) == []
    assert fire(env, poller) == list(REPORTERS)
    assert env.at_s == 0.14


def test_every_question_has_an_identity_of_its_own() -> None:
    env = FakeEnvironment()
    poller = make_poller(env, in_series=False)
    poller.on_timer()
    poller.on_timer()

    keys = [(reporter, message[:2]) for reporter, message in env.sent]
    assert len(set(keys)) == 6


def test_in_series_the_next_is_asked_when_the_last_has_answered() -> None:
    env = FakeEnvironment()
    poller = make_poller(env, in_series=True)

    assert fire(env, poller) == ["us/server-1"]
    poller.on_report("us/server-1")
    assert asked(env) == ["us/server-2"]
    poller.on_report("us/server-1")  # not the one that is waited for
    assert asked(env) == []
    poller.on_report("us/server-2")
    poller.on_report("us/server-3")
    assert asked(env) == ["us/server-3"]
    assert fire(env, poller) == ["us/server-1"]


def test_a_silent_one_holds_the_others_up_until_the_next_period() -> None:
    env = FakeEnvironment()
    poller = make_poller(env, in_series=True)

    assert fire(env, poller) == ["us/server-1"]
    assert fire(env, poller) == ["us/server-2"]
    poller.on_report("us/server-1")  # it comes after all, and is nobody's turn any more
    assert asked(env) == []
    poller.on_report("us/server-2")
    assert asked(env) == ["us/server-3"]
