from __future__ import annotations

import random
from collections import Counter

from testbed.routing.policy import Policy
from testbed.routing.static_optimal import build_static_optimal
from testbed.routing.view import View
from testbed.scenario.policy_words import StaticOptimalPolicy
from tests.routing.beliefs import request, view_of


def dealt(policy: Policy, view: View, rng: random.Random) -> Counter[str]:
    """How many of a hundred requests each target gets."""
    chosen = [policy.choose(view, request(i), rng) for i in range(100)]
    return Counter(target.name for target in chosen if target is not None)


def test_requests_are_dealt_by_the_shares_that_were_solved_for() -> None:
    view = view_of([9, 0, 4])
    spec = StaticOptimalPolicy(kind="static_optimal", draw="low_discrepancy")
    policy = build_static_optimal(spec, view, 1, "root.west:0", [0.5, 0.3, 0.2])
    rng = random.Random(1)

    counts = dealt(policy, view, rng)
    assert counts == {"a": 50, "b": 30, "c": 20}

    view.allow(["b", "c"])
    counts = dealt(policy, view, rng)
    assert abs(counts["b"] - 60) <= 1
    assert counts["a"] == 0
