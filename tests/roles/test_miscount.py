"""A balancer's counts of its own requests, as faults leave them."""

from __future__ import annotations

from testbed.roles.miscount import Miscount
from testbed.routing.belief import configure_view
from testbed.routing.view import Target, View
from testbed.scenario.policy_words import LeastCostPolicy
from testbed.serving.rate_curve import RateCurve


def two_targets(**words: str) -> View:
    """As a policy with these words sees them."""
    view = View([Target(name, RateCurve(0.01, 0.01, 4), index=i) for i, name in enumerate(("a", "b"))])
    configure_view(LeastCostPolicy(kind="least_cost", cost="in_flight", **words), view)
    return view


def test_a_reset_count_falls_below_nought_by_what_was_open():
    view, miscount = two_targets(view="own_counts"), Miscount(1)
    a, b = view.targets
    for request_id in range(5):
        a.on_sent(request_id, 0.0)
    b.on_sent(5, 0.0)

    miscount.reset(view.targets)

    assert (view.count(a), view.count(b), miscount.count) == (0, 0, -6)
    for request_id in range(5):
        a.on_answered(request_id)
    b.on_answered(5)
    assert (view.count(a), view.count(b)) == (-5, -1)
    a.on_sent(6, 1.0)
    assert view.count(a) == -4


def test_a_reset_forgets_what_no_report_has_seen():
    """Own requests on top of a report are gone, and not taken off again when they are over."""
    view, miscount = two_targets(own_counts="add"), Miscount(1)
    target = view.targets[0]
    target.on_sent(1, 0.0)

    miscount.reset(view.targets)
    target.on_answered(1)

    assert view.count(target) == 0


def test_a_second_reset_takes_a_count_below_nought_back_to_it():
    view, miscount = two_targets(view="own_counts"), Miscount(1)
    target = view.targets[0]
    target.on_sent(1, 0.0)
    miscount.reset(view.targets)
    target.on_answered(1)

    miscount.reset(view.targets)

    assert (view.count(target), miscount.count) == (0, 0)
