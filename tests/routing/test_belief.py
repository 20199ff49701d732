"""What own requests add to a report, and what old reports and none are taken for."""

from __future__ import annotations

import math
from typing import Any

import pytest

from testbed.routing.belief import configure_view
from testbed.routing.view import View
from testbed.scenario.policy_words import FlowPolicy, LeastCostPolicy, RandomPolicy, RoundRobinPolicy
from testbed.scenario.quantity import Step
from tests.routing.beliefs import report, view_of


def least_cost(**words: Any) -> LeastCostPolicy:
    return LeastCostPolicy(kind="least_cost", cost="in_flight", **words)


def configured(view: View, /, **words: object) -> View:
    configure_view(least_cost(**words), view)
    return view


def counts(view: View) -> list[float]:
    return [view.count(target) for target in view.targets]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ({}, 10),
        ({"own_counts": "overwrite"}, 10 + 3),  # 5, 6 and 7 were sent since, although 6 is over
        ({"own_counts": "add"}, 10 + 3),  # 4 was still on its way at the measurement; 5 and 7 came later
        ({"own_counts": "max"}, 10),
        ({"own_counts": "scaled"}, 10 + 4 * 3),
        ({"own_counts": "scaled", "peers": 2}, 10 + 2 * 3),
        ({"view": "own_counts"}, 6),
    ],
)
def test_a_belief_puts_the_report_and_own_requests_together(words: dict, expected: float) -> None:
    """Seven sends: three seen by the report, one travelling at its measurement, three since, of which one is over."""
    view = configured(view_of([0, 0]), **words)
    target = view.targets[0]
    target.peers = 4
    target.on_network(0.2)
    for request_id in (1, 2, 3):
        target.on_sent(request_id, 0.5)
    target.on_sent(4, 0.95)
    target.on_report("a", report(10, measured_at_s=1.0), 1.1)
    for request_id in (5, 6, 7):
        target.on_sent(request_id, 1.2)
    target.on_answered(6)

    assert view.count(target) == expected


def test_the_largest_of_report_and_own_requests_is_at_least_both() -> None:
    view = configured(view_of([2]), own_counts="max")
    for request_id in range(5):
        view.targets[0].on_sent(request_id, 0.0)

    assert view.count(view.targets[0]) == 5


def test_overwritten_counts_begin_anew_with_every_report() -> None:
    view = configured(view_of([0]), own_counts="overwrite")
    target = view.targets[0]
    target.on_sent(1, 1.0)
    assert view.count(target) == 1

    target.on_report(
        "a", report(0, measured_at_s=0.5), 1.1
    )  # measured before the send, and erases it all the same
    assert view.count(target) == 0


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ({"own_counts": "overwrite"}, 10 + 2),  # 3 and 5, although 5 is over
        ({"own_counts": "add"}, 10 + 1),  # 3
        ({"own_counts": "max"}, 10),
        ({"own_counts": "scaled"}, 10 + 4),
        ({"own_counts": "scaled", "peers": 2}, 10 + 2),
        ({"view": "own_counts"}, 2),  # 2 and 3
    ],
)
def test_own_requests_may_count_from_their_first_token(words: dict, expected: float) -> None:
    """Five sends: 1 has not begun; 2 began before the report was measured, 3 and 5 since; 4 was over before it began."""
    view = configured(view_of([0, 0]), counts_from="first_token", **words)
    target = view.targets[0]
    target.peers = 4
    for request_id in (1, 2, 3, 4, 5):
        target.on_sent(request_id, 0.5)
    target.on_first_token(2, 0.9)
    target.on_report("a", report(10, measured_at_s=1.0), 1.1)
    target.on_first_token(3, 1.2)
    target.on_answered(4)
    target.on_first_token(5, 1.3)
    target.on_answered(5)

    assert view.count(target) == expected
    assert target.own_in_flight == 3


def aged(view: View, ages_s: tuple[float, ...], now_s: float = 10.0) -> None:
    """New reports of these ages."""
    for target, age_s in zip(view.targets, ages_s, strict=True):
        target.on_report(target.name, report(int(target.in_flight), measured_at_s=now_s - age_s), now_s)
    view.now_s = now_s
    view.refresh()


@pytest.mark.parametrize(
    ("stale", "expected", "allowed"),
    [
        ("ignored", [5, 3, 7], "a"),
        ("full", [5, 30, 30], "abc"),
        ("empty", [5, 0, 0], "abc"),
    ],
)
def test_reports_older_than_the_limit_mean_what_the_words_say(
    stale: str, expected: list, allowed: str
) -> None:
    view = configured(view_of([5, 3, 7]), stale=stale, stale_after="2 s")

    aged(view, (1.0, 2.5, 6.0))

    assert counts(view) == expected
    assert "".join(target.name for target in view.allowed) == allowed


def test_full_is_the_cap_of_all_servers_or_what_was_reported_if_that_is_more() -> None:
    view = configured(view_of([10, 200], servers=[4, 4]), stale="full", stale_after="2 s")

    aged(view, (3.0, 3.0))

    assert counts(view) == [120, 200]


@pytest.mark.parametrize("stale", ["ignored", "full"])
@pytest.mark.parametrize(("when_none", "allowed"), [("any", "ab"), ("refuse", ""), ("hold", "")])
def test_when_no_report_is_fresh_enough_all_or_none_are_allowed(
    stale: str, when_none: str, allowed: str
) -> None:
    words = {"hold_queue": 3} if when_none == "hold" else {}
    view = configured(view_of([5, 3]), stale=stale, stale_after="2 s", when_none=when_none, **words)

    aged(view, (3.0, 4.0))

    assert "".join(target.name for target in view.allowed) == allowed


@pytest.mark.parametrize(
    ("unheard", "expected", "allowed"), [("empty", 0, "ab"), ("ignored", 0, "a"), ("full", 30, "ab")]
)
def test_a_target_never_heard_of_means_what_the_words_say(
    unheard: str, expected: float, allowed: str
) -> None:
    view = view_of([5, 0])
    view.targets[1].measured_at_s = math.nan
    configured(view, unheard=unheard)

    assert view.count(view.targets[1]) == expected
    assert "".join(target.name for target in view.allowed) == allowed


def test_the_view_says_when_a_report_will_turn_stale() -> None:
    view = configured(view_of([5, 3]), stale="ignored", stale_after="2 s")

    aged(view, (1.0, 1.5))

    assert view.turns_at_s == 10.5
    view.now_s = 10.6
    view.refresh()
    assert [target.name for target in view.allowed] == ["a"]
    assert view.turns_at_s == 11.0


def test_a_view_whose_targets_stay_usable_keeps_its_identity() -> None:
    """Policies notice by identity that the allowed targets have changed."""
    view = configured(view_of([5, 3]), stale="ignored", stale_after="2 s")
    before = view.allowed

    aged(view, (1.0, 1.5))

    assert view.allowed is before


def test_a_forbidden_target_stays_so_whatever_the_reports_are() -> None:
    view = configured(view_of([5, 3]), stale="ignored", stale_after="2 s")
    view.allow(["b"])

    aged(view, (0.1, 9.0))

    assert [target.name for target in view.allowed] == ["b"]  # the only one it may use, and any will do


def test_policies_that_compare_nothing_pass_over_old_reports_as_well() -> None:
    for words in (RandomPolicy(kind="random", stale="ignored", stale_after="2 s"),
                  RoundRobinPolicy(kind="round_robin", stale="ignored", stale_after="2 s")):  # fmt: skip
        view = view_of([5, 3])
        configure_view(words, view)
        aged(view, (3.0, 1.0))
        assert [target.name for target in view.allowed] == ["b"]


def test_flow_routing_believes_own_counts_where_its_words_say_so() -> None:
    view = view_of([5, 3])
    configure_view(FlowPolicy(kind="flow", step=Step(0.1, "/s^2"), own_counts="add"), view)
    view.targets[0].on_sent(1, 1.0)

    assert counts(view) == [6, 3]


def test_without_words_for_age_the_allowed_targets_never_change() -> None:
    view = configured(view_of([5, 3]))

    assert view.turns_at_s == math.inf
    assert view.limit is None
