"""The KV memory that a server holds, as it follows from its report."""

from __future__ import annotations

import math
import random

from testbed.roles.messages import Report, Request
from testbed.routing.view import Target, View
from testbed.serving.batch import Batch
from testbed.serving.profile import PROFILES
from testbed.serving.rate_curve import RateCurve
from testbed.verification.kv_utilisation import KvUtilisation

CURVE = RateCurve(alpha_s=0.2, beta_s=0.01)
POLICY = KvUtilisation(prompt_tokens=100, output_tokens=3, step_tokens=250)


def batch_of(requests: int) -> Batch:
    batch = Batch(PROFILES["small"].with_limits(step_tokens=250), 1)
    for number in range(requests):
        batch.admit(Request(number, 0, 0, 100, 3), 0.0)
    return batch


def target_of(batch: Batch, now_s: float, index: int = 0) -> Target:
    left = batch.prompt_tokens_left(now_s), batch.output_tokens_left(now_s)
    counts = batch.queued, batch.running, batch.by_class()
    target = Target(f"server-{index}", CURVE, 1, index)
    report = Report(0, 0, now_s, *counts, *left, 0, 0.0, 1.0, math.nan, math.nan, 0.0)
    target.on_report(target.name, report, now_s)
    return target


def test_memory_is_taken_for_what_is_done_and_for_the_step_under_way():
    """Five prompts of 100, 250 tokens a step: two and a half of them at once, then 248 beside two that decode."""
    batch = batch_of(5)
    step_s = batch.next_event_s()

    assert POLICY.held_tokens(target_of(batch, 0.0)) == 250
    assert POLICY.held_tokens(target_of(batch, step_s)) == 250 + 2 + 248


def test_a_prompt_that_waits_for_the_next_step_is_not_seen():
    batch = batch_of(1)
    alone = POLICY.held_tokens(target_of(batch, 0.001))

    batch.admit(Request(9, 0, 0, 100, 3), 0.002)

    assert alone == 100
    assert POLICY.held_tokens(target_of(batch, 0.002)) == 100


def test_the_server_that_held_the_least_is_chosen_and_the_first_of_equals():
    view = View([target_of(batch_of(count), 0.0, i) for i, count in enumerate((2, 1, 1))])

    chosen = POLICY.choose(view, Request(0, 0, 0, 100, 3), random.Random(1))

    assert chosen is view.targets[1]
