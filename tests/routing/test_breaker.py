"""The circuit breaker: when a target is left out, for how long, and how it comes back."""

from __future__ import annotations

import pytest

from testbed.roles.messages import Outcome
from testbed.routing.breaker import BreakerView
from testbed.routing.greedy import RandomChoice
from testbed.routing.policy import policy_hooks
from testbed.routing.view import Target
from testbed.scenario.resilience_words import BreakerWords
from testbed.serving.rate_curve import RateCurve

GOOD, BAD = Outcome.COMPLETED, Outcome.FAILED


class Balancer:
    """A view of three targets, and a clock."""

    def __init__(self, **words):
        self.at_s = 0.0
        targets = [Target(name, RateCurve(0.1, 0.01, 50), 1, i) for i, name in enumerate("abc")]
        self.view = BreakerView(targets, None, BreakerWords(**words))
        self.hooks = self.view.watching(policy_hooks(RandomChoice()), lambda: self.at_s, lambda *note: None)

    def hear(self, name, *outcomes):
        for outcome in outcomes:
            self.hooks.on_reply(self.view.by_name[name], 0.1, outcome)

    def usable(self, at_s=None):
        self.at_s = self.view.now_s = self.at_s if at_s is None else at_s
        if self.at_s > self.view.turns_at_s:
            self.view.refresh()
        return "".join(target.name for target in self.view.allowed)


def test_so_many_bad_replies_in_a_row_leave_a_target_out():
    balancer = Balancer(in_a_row=3)
    balancer.hear("b", BAD, BAD, GOOD, BAD, BAD)
    assert balancer.usable() == "abc"
    balancer.hear("b", BAD)
    assert balancer.usable() == "ac"


def test_a_share_of_bad_replies_leaves_a_target_out_once_there_are_enough_of_them():
    balancer = Balancer(fraction="50 %", replies=4)
    balancer.hear("b", BAD, GOOD, BAD)
    assert balancer.usable() == "abc"
    balancer.hear("b", BAD)
    assert balancer.usable() == "ac"


def test_a_target_much_worse_than_the_others_is_left_out_and_not_where_all_are_bad():
    """Half of the replies are bad everywhere, as if what is asked for were at fault; then one target has none but bad ones."""
    balancer = Balancer(above_others="40 %", replies=4)
    for name in "abc":
        balancer.hear(name, BAD, GOOD, BAD, GOOD)
    assert balancer.usable() == "abc"
    balancer.hear("b", BAD, BAD, BAD)
    assert balancer.usable() == "abc"
    balancer.hear("b", BAD)
    assert balancer.usable() == "ac"


def test_a_target_is_not_compared_with_others_that_are_not_known_yet():
    balancer = Balancer(above_others="40 %", replies=4)
    balancer.hear("a", GOOD, GOOD, GOOD)
    balancer.hear("b", BAD, BAD, BAD, BAD)
    assert balancer.usable() == "abc"
    balancer.hear("a", GOOD)
    balancer.hear("b", BAD)
    assert balancer.usable() == "ac"


def test_a_target_that_is_out_does_not_make_the_others_look_good():
    """With b out for its failures, two bad replies of five at c are held against those of a alone."""
    balancer = Balancer(above_others="40 %", replies=5, out_for="9 s", most="70 %")
    for name, bad in (("a", 0), ("c", 0), ("b", 5)):
        balancer.hear(name, *[GOOD] * (5 - bad), *[BAD] * bad)
    assert balancer.usable() == "ac"
    balancer.hear("c", BAD)
    assert balancer.usable() == "ac"
    balancer.hear("c", BAD)
    assert balancer.usable() == "a"


def test_outcomes_that_do_not_count_are_good():
    balancer = Balancer(in_a_row=1, counts=("timed_out",))
    balancer.hear("b", BAD, Outcome.SHED)
    assert balancer.usable() == "abc"
    balancer.hear("b", Outcome.TIMED_OUT)
    assert balancer.usable() == "ac"


def test_half_open_a_target_is_tried_by_one_request_and_a_good_reply_closes_it():
    balancer = Balancer(in_a_row=1, out_for="2 s")
    balancer.hear("b", BAD)
    assert balancer.usable(1.9) == "ac"
    assert balancer.usable(2.1) == "abc"
    target = balancer.view.by_name["b"]
    target.on_sent(7, 2.1)
    assert balancer.usable(2.2) == "ac"
    target.on_answered(7)
    balancer.hear("b", GOOD)
    target.on_sent(8, 2.3)
    assert balancer.usable(2.3) == "abc"


def test_a_bad_trial_leaves_it_out_for_twice_as_long():
    balancer = Balancer(in_a_row=1, out_for="2 s")
    balancer.hear("b", BAD)
    assert balancer.usable(2.1) == "abc"
    balancer.hear("b", BAD)
    assert balancer.usable(6.0) == "ac"
    assert balancer.usable(6.2) == "abc"


def test_replies_to_what_was_sent_before_tell_an_open_circuit_nothing():
    balancer = Balancer(in_a_row=1, out_for="2 s")
    balancer.hear("b", BAD, GOOD, BAD)
    assert balancer.usable(1.9) == "ac"
    assert balancer.usable(2.1) == "abc"


def test_no_more_than_a_share_of_the_targets_is_out():
    balancer = Balancer(in_a_row=1, most="50 %")
    for name in "abc":
        balancer.hear(name, BAD)
    assert balancer.usable() == "bc"


def test_where_all_would_be_out_all_are_used():
    balancer = Balancer(in_a_row=1, most="100 %")
    for name in "abc":
        balancer.hear(name, BAD)
    assert balancer.usable() == "abc"


def test_a_breaker_has_something_to_open_at():
    with pytest.raises(ValueError, match="one or more of in_a_row, fraction, above_others"):
        BreakerWords()
