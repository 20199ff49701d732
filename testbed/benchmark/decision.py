"""What one decision of a policy costs, for few and for many targets."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

from testbed.benchmark.figure import Figure
from testbed.roles.messages import Request
from testbed.routing.policy import build_policy
from testbed.routing.view import Target, View
from testbed.scenario.load import scenario_from_text
from testbed.serving.rate_curve import RateCurve

COUNTS = (3, 30, 300)
POLICIES = {
    "least_cost": "{kind: least_cost, cost: in_flight_per_capacity}",
    "two_choices": "{kind: two_choices, cost: in_flight}",
    "flow": "{kind: flow, step: 0.1 /s^2}",
    "weighted": "{kind: weighted}",
}
CURVE = RateCurve(alpha_s=0.1, beta_s=0.001, n_cap=200.0)
DECISIONS = 20_000


def costs(quick: bool) -> Iterator[Figure]:
    """Microseconds a decision, the best of three rounds."""
    decisions = DECISIONS // 10 if quick else DECISIONS
    for name, words in POLICIES.items():
        for count in COUNTS:
            yield Figure(
                f"a decision of {name} among {count} targets", _decision_us(words, count, decisions), "us"
            )


def _decision_us(words: str, count: int, decisions: int) -> float:
    text = (
        "name: d\nduration: 1 s\ncells: {a: {servers: 1, service: {slots: 1, fixed: 1 ms}}}\n"
        "roots: {r: {traffic: [{class: c, rate: 1 /s, policy: p}]}}\nclasses: {c: {}}\n"
        f"policies: {{p: {words}}}\n"
    )
    spec = scenario_from_text(text).arms["main"].policies["p"]
    view = View(tuple(Target(f"t{i}", CURVE, index=i) for i in range(count)))
    policy = build_policy(spec, view, seed=1, node="root.r", report_every_s=0.1, output_mean=8.0)
    request, rng = Request(1, 0, 0, 64, 8), random.Random(1)
    for i, target in enumerate(view.targets):
        target.in_flight = i % 7
    best_s = float("inf")
    for _ in range(3):
        began_s = time.perf_counter()
        for _ in range(decisions):
            policy.choose(view, request, rng)
        best_s = min(best_s, time.perf_counter() - began_s)
    return 1e6 * best_s / decisions
