from __future__ import annotations

import math
import random
from collections import Counter

from testbed.routing.logit import Logit
from testbed.routing.view import Target, View
from tests.routing.beliefs import request, view_of


def counts_of(policy: Logit, view: View, draws: int) -> Counter[str]:
    rng = random.Random(5)
    counts: Counter[str] = Counter()
    for i in range(draws):
        target = policy.choose(view, request(i), rng)
        assert target is not None
        counts[target.name] += 1
    return counts


def cost_s(target: Target) -> float:
    return 0.1 * target.in_flight


def test_a_gap_of_one_temperature_makes_a_target_e_times_less_likely() -> None:
    view = view_of([10, 12, 14])  # costs 1.0, 1.2 and 1.4 s
    weights = {"a": 1.0, "b": math.exp(-1), "c": math.exp(-2)}

    counts = counts_of(Logit(cost_s, 0.2), view, 20_000)

    for name, weight in weights.items():
        expected = weight / sum(weights.values())
        sd = math.sqrt(20_000 * expected * (1 - expected))
        assert abs(counts[name] - 20_000 * expected) < 4 * sd


def test_cold_it_is_greedy_and_hot_it_is_chance() -> None:
    view = view_of([10, 12, 14_000])

    assert counts_of(Logit(cost_s, 1e-6), view, 100) == {"a": 100}
    counts = counts_of(Logit(cost_s, 1e9), view, 3_000)
    assert all(abs(counts[name] - 1_000) < 4 * math.sqrt(3_000 * 2 / 9) for name in "abc")
