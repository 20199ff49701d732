"""A target that has come back: its share grows with time, from the least to that of the others."""

from __future__ import annotations

import random

import pytest

from testbed.roles.messages import Request
from testbed.routing.policy import build_policy
from testbed.routing.slow_start import SlowStart
from testbed.routing.view import Target, View
from testbed.scenario.policy_words import LeastCostPolicy, RandomPolicy
from testbed.scenario.resilience_words import SlowStartWords
from testbed.serving.rate_curve import RateCurve

WORDS = SlowStartWords(over="10 s", least="5 %")
EMPTIEST = LeastCostPolicy(kind="least_cost", view="own_counts", cost="in_flight")
EVEN = RandomPolicy(kind="random")


def make(spec, targets=4):
    view = View([Target(name, RateCurve(0.1, 0.01, 50), 1, i) for i, name in enumerate("abcdefg"[:targets])])
    policy = build_policy(spec, view, seed=1, node="us/leaf-1", report_every_s=0.1, output_mean=8.0)
    notes = []
    return SlowStart(policy, view, WORDS, 77, lambda *note: notes.append(note)), view, notes


def share_of(slow, view, name, at_s, requests=2000):
    """Share of the requests that a target gets at an instant; each is answered before the next one."""
    rng = random.Random(5)
    hits = 0
    for i in range(requests):
        view.now_s = at_s
        chosen = slow.choose(view, Request(i, 0, 0, 48, 8), rng)
        hits += chosen.name == name
    return hits / requests


def come_back(slow, view, name, at_s):
    view.now_s = at_s
    view.rotate(name, inside=False)
    slow.choose(view, Request(0, 0, 0, 48, 8), random.Random(1))
    view.rotate(name, inside=True)
    slow.choose(view, Request(0, 0, 0, 48, 8), random.Random(1))


def test_who_was_there_from_the_start_is_not_new():
    slow, view, notes = make(EVEN)

    assert share_of(slow, view, "a", 0.0) == pytest.approx(0.25, abs=0.04)
    assert notes == []


@pytest.mark.parametrize(("spec", "full"), [(EVEN, 0.25), (EMPTIEST, 1.0)])
def test_the_share_of_a_target_that_came_back_grows_steadily_to_that_of_the_policy(spec, full):
    slow, view, notes = make(spec)
    come_back(slow, view, "b", 100.0)
    for target in view.targets:
        target.own_in_flight = 0 if target.name == "b" else 3

    shares = [share_of(slow, view, "b", 100.0 + after_s) for after_s in (0.0, 2.0, 5.0, 8.0, 10.0)]

    expected = [part * full for part in (0.05, 0.2, 0.5, 0.8, 1.0)]
    assert shares == pytest.approx(expected, abs=0.04)
    assert shares == sorted(shares)
    assert notes == [("b", 100.0)]


def test_what_a_newcomer_does_not_get_goes_to_the_least_busy_of_the_others():
    slow, view, _ = make(EMPTIEST, targets=3)
    come_back(slow, view, "b", 100.0)
    view.by_name["a"].own_in_flight, view.by_name["c"].own_in_flight = 5, 2

    assert share_of(slow, view, "b", 100.0) == pytest.approx(0.05, abs=0.02)
    assert share_of(slow, view, "c", 100.0) == pytest.approx(0.95, abs=0.02)


def test_where_all_are_new_the_policy_chooses_alone():
    slow, view, _ = make(EVEN, targets=2)
    come_back(slow, view, "a", 100.0)
    come_back(slow, view, "b", 100.0)

    assert share_of(slow, view, "b", 100.0) == pytest.approx(0.5, abs=0.04)


def test_the_same_requests_are_turned_away_each_time():
    def chosen():
        slow, view, _ = make(EVEN)
        come_back(slow, view, "b", 100.0)
        rng = random.Random(5)
        return [slow.choose(view, Request(i, 0, 0, 48, 8), rng).name for i in range(100)]

    assert chosen() == chosen()
