"""The flow of the theory: the policy of the testbed, but for the cut of its cost."""

from __future__ import annotations

import math

import pytest

from testbed.roles.messages import Report
from testbed.routing.cost import CEILING
from testbed.routing.view import Target, View
from testbed.serving.rate_curve import RateCurve
from testbed.verification.uncut_flow import UncutFlow

CURVE = RateCurve(alpha_s=0.2, beta_s=0.01)


def report(in_flight: int) -> Report:
    return Report(0, 0, 0.0, 0, in_flight, (in_flight,), 0, 0, 0, 0.0, 1.0, math.nan, math.nan, 0.0)


def view_of(*in_flight: int) -> View:
    targets = [Target(name, CURVE, 1, i) for i, name in enumerate("ab")]
    for target, count in zip(targets, in_flight, strict=True):
        target.on_report(target.name, report(count), 0.0)
    return View(targets)


def test_a_full_target_costs_more_than_the_cut_of_the_testbed():
    """400 in flight: (alpha + beta n)^2 / alpha = 88.2 s, and 20 s where it is cut at 100 alpha."""
    view = view_of(400, 0)
    policy = UncutFlow(step_per_s2=1e-3, interval_s=0.1)

    update = policy.on_report(view, view.targets[0])

    assert update is not None
    assert update.costs == pytest.approx([88.2, 0.2])
    assert update.costs[0] > CEILING * CURVE.alpha_s
    assert update.after[0] == pytest.approx(0.5 - 1e-3 * 0.1 * (88.2 - 0.2) / 2)
