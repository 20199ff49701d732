from __future__ import annotations

import math

import pytest

from testbed.routing.view import NETWORK_WEIGHT, Target, View
from tests.routing.beliefs import CURVE, report, view_of


def test_a_target_of_which_nothing_is_known_is_idle_and_has_no_age() -> None:
    target = Target("us", CURVE, servers=3)

    assert target.in_flight == 0
    assert target.sequence == -1
    assert math.isnan(target.staleness_s(1.0))
    assert target.capacity_per_s == 3 * CURVE.capacity_per_s


def test_a_report_replaces_the_belief_and_its_age_counts_from_the_measurement() -> None:
    target = Target("us", CURVE)

    taken = target.on_report(
        "us/leaf-1", report(7, running=4, sequence=3, measured_at_s=1.0, speed=0.5, arrivals=90), 1.5
    )

    assert taken
    assert (target.queued, target.running, target.in_flight, target.arrivals) == (3, 4, 7, 90)
    assert (target.sequence, target.measured_at_s, target.received_at_s, target.speed) == (3, 1.0, 1.5, 0.5)
    assert target.staleness_s(2.25) == 1.25


def test_a_report_that_was_overtaken_is_not_taken() -> None:
    target = Target("us", CURVE)
    target.on_report("us/leaf-1", report(7, sequence=3, measured_at_s=1.0), 1.5)

    taken = target.on_report("us/leaf-1", report(2, sequence=2, measured_at_s=0.9), 1.6)

    assert not taken
    assert (target.in_flight, target.sequence, target.received_at_s) == (7, 3, 1.5)


def test_reports_of_several_leaves_are_summed_and_as_old_as_the_oldest() -> None:
    """A cell's count is the sum of its leaves' counts; a leaf that was never heard counts 0."""
    target = Target("us", CURVE)

    target.on_report("us/leaf-1", report(5, sequence=8, measured_at_s=1.0, speed=1.0, arrivals=10), 1.1)
    assert target.in_flight == 5
    target.on_report("us/leaf-2", report(3, sequence=2, measured_at_s=2.0, speed=0.5, arrivals=4), 2.1)

    assert (target.in_flight, target.arrivals) == (8, 14)
    assert (target.sequence, target.measured_at_s, target.received_at_s) == (2, 1.0, 2.1)
    assert target.speed == 0.75
    assert math.isnan(target.fitted_a_s)
    target.on_report("us/leaf-1", report(1, sequence=9, measured_at_s=3.0, fitted_a_s=0.2), 3.1)
    assert (target.in_flight, target.measured_at_s, target.fitted_a_s) == (4, 2.0, 0.2)


def test_own_sends_are_counted_until_answered() -> None:
    target = Target("us", CURVE)

    target.on_sent(1, 0.0)
    target.on_sent(2, 0.0)
    target.on_answered(1)

    assert target.own_in_flight == 1
    assert target.unseen == {}


def test_own_sends_are_unseen_by_a_report_until_one_measured_later_has_come() -> None:
    target = Target("us", CURVE)
    target.keeps_unseen = True
    for request_id, sent_at_s in ((1, 1.0), (2, 2.0), (3, 3.0), (4, 4.0)):
        target.on_sent(request_id, sent_at_s)
    target.on_answered(3)

    target.on_report("us/leaf-1", report(10, measured_at_s=2.0), 4.5)

    assert target.unseen == {4: 4.0}
    assert target.in_flight == 10
    assert target.own_in_flight == 3


def test_a_request_still_travelling_when_the_report_was_measured_is_not_in_it() -> None:
    target = Target("us", CURVE)
    target.keeps_unseen = True
    target.on_network(0.4)
    target.on_sent(1, 1.7)
    target.on_sent(2, 1.9)

    target.on_report("us/leaf-1", report(10, measured_at_s=2.0), 2.5)

    assert target.unseen == {2: 1.9}


def test_a_request_seen_by_a_report_may_be_answered_later() -> None:
    target = Target("us", CURVE)
    target.keeps_unseen = True
    target.on_sent(1, 1.0)
    target.on_report("us/leaf-1", report(1, measured_at_s=2.0), 2.5)

    target.on_answered(1)

    assert target.own_in_flight == 0


def test_the_first_round_trip_is_believed_and_later_ones_are_smoothed_in() -> None:
    target = Target("us", CURVE)

    target.on_network(0.04)
    assert target.network_s == 0.04
    target.on_network(0.08)
    assert target.network_s == pytest.approx(0.04 + 0.04 * NETWORK_WEIGHT)


def test_allowed_targets_keep_the_order_of_the_scenario_and_are_replaced_as_a_whole() -> None:
    view = view_of([0, 0, 0])
    before = view.allowed

    view.allow(["c", "a"])

    assert [target.name for target in view.allowed] == ["a", "c"]
    assert len(before) == 3
    assert [target.name for target in View(view.targets, ["b"]).allowed] == ["b"]
    with pytest.raises(KeyError):
        view.allow(["d"])
