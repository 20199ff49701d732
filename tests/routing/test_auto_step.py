"""What a root learns of its loop, and the step and the kind of routing that it makes of it."""

from __future__ import annotations

import math
import random
from typing import Literal

import pytest

from testbed.roles.messages import Report
from testbed.routing.auto_step import AutoStep
from testbed.routing.discrete_or_flow import decide
from testbed.routing.dlb import build_dlb
from testbed.routing.flow import build_flow
from testbed.routing.least_work import LeastWork
from testbed.routing.line_work import LineWork, WorkRates, work_of_mix
from testbed.routing.loop_estimate import LoopEstimate
from testbed.routing.step_rule import Loop, derive_step
from testbed.routing.view import Target, View
from testbed.scenario.policy_words import DlbPolicy, FlowPolicy
from testbed.scenario.quantity import Step
from testbed.serving.rate_curve import RateCurve
from tests.routing.beliefs import request

CURVE = RateCurve(0.1, 0.01)
EVERY_S = 0.1


def view_of_two() -> View:
    return View([Target("a", CURVE, 1, 0), Target("b", CURVE, 2, 1)])


def hear(
    view: View,
    now_s: float,
    *,
    rate: float = 40.0,
    late_s: float = 0.3,
    boulders: float = 0.0,
    speed: float = 1.0,
) -> None:
    """Reports measured `late_s` ago of cells that received this many requests a second each, some of them boulders."""
    view.now_s = now_s
    measured_at_s = now_s - late_s
    for target in view.targets:
        counts = (round(rate * measured_at_s), round(boulders * measured_at_s))
        target.on_report(
            target.name,
            Report(
                0,
                0,
                measured_at_s,
                0,
                4,
                (4, 0),
                400,
                40,
                sum(counts),
                0.0,
                speed,
                math.nan,
                math.nan,
                0.0,
                arrivals_by_class=counts,
            ),
            now_s,
        )


def auto_step(view: View, floor: float = 0.0, ceiling: float = math.inf) -> AutoStep:
    estimate = LoopEstimate(len(view.targets), EVERY_S)
    line = work_of_mix(view, 8.0)
    return AutoStep(
        estimate, line, cost="marginal", model="scaled", output_mean=8.0, floor=floor, ceiling=ceiling
    )


def listen(view: View, step: AutoStep, first: int, last: int, **words: float) -> float:
    value = math.nan
    for i in range(first, last):
        hear(view, 1.0 + i * EVERY_S, **words)
        value = step.at(view)
    return value


def test_rates_and_delays_are_those_of_the_reports_and_of_half_the_round_trip() -> None:
    view = view_of_two()
    estimate = LoopEstimate(2, EVERY_S, lambda target: target.arrivals_of(1))
    for target in view.targets:
        target.on_network(0.08)

    for i in range(60):
        hear(view, 1.0 + i * EVERY_S, rate=38.0, boulders=2.0)
        estimate.observe(view)

    rate_per_s, of_class = estimate.rates_per_s(view)
    assert rate_per_s == pytest.approx(80.0, rel=0.02)
    assert of_class == pytest.approx(4.0, rel=0.1)
    assert estimate.loop_delay_s(view.targets[0]) == pytest.approx(0.34)


def test_a_decision_that_takes_time_is_part_of_the_loop() -> None:
    view = view_of_two()
    estimate = LoopEstimate(2, EVERY_S, decision_s=0.05)

    hear(view, 1.0)
    estimate.observe(view)

    assert estimate.loop_delay_s(view.targets[0]) == pytest.approx(0.35)


def test_rates_of_forbidden_targets_do_not_count() -> None:
    view = view_of_two()
    estimate = LoopEstimate(2, EVERY_S)
    view.allow(["b"])
    for i in range(60):
        hear(view, 1.0 + i * EVERY_S)
        estimate.observe(view)

    assert estimate.rates_per_s(view)[0] == pytest.approx(40.0, rel=0.02)


def test_before_enough_is_known_the_step_is_the_floor() -> None:
    view = view_of_two()
    step = auto_step(view, floor=0.003)

    assert step.at(view) == 0.003
    assert listen(view, step, 0, 2) == 0.003
    assert step.news() is None


def test_the_step_is_the_safe_one_for_what_was_observed_and_is_told_once() -> None:
    view = view_of_two()
    step = auto_step(view)

    value = listen(view, step, 0, 80)

    expected = derive_step([Loop(k, CURVE, CURVE, None, 0.3) for k in (1, 2)], 80.0, "marginal")
    assert value == pytest.approx(
        expected.step, rel=0.15
    )  # derived anew only when something moves by a twentieth
    news = step.news()
    assert news is not None
    assert news.mode == "flow"
    assert news.step == value
    assert step.news() is None


def test_load_delay_and_a_slow_cell_make_the_step_smaller_as_they_come() -> None:
    view = view_of_two()
    step = auto_step(view)
    calm = listen(view, step, 0, 60)

    later = listen(view, step, 60, 160, late_s=3.0)
    assert later < calm

    slower = listen(view, step, 160, 400, late_s=3.0, speed=0.7)
    assert slower < 0.5 * later

    fuller = listen(view, step, 400, 500, late_s=3.0, speed=0.7, rate=60.0)
    assert fuller < 0.5 * slower


def test_the_step_keeps_within_floor_and_ceiling() -> None:
    view = view_of_two()
    assert listen(view, auto_step(view, floor=5.0), 0, 50) == 5.0
    assert listen(view, auto_step(view, ceiling=1e-4), 50, 100) == 1e-4


def test_an_update_with_an_auto_step_says_which_step_it_took() -> None:
    view = view_of_two()
    words = FlowPolicy(kind="flow", step="auto", step_floor=Step(0.2, "/s^2"), step_ceiling=Step(0.2, "/s^2"))
    flow = build_flow(words, view, EVERY_S, 8.0)

    update = flow.move(view, 0.1)

    assert update is not None
    assert update.step == 0.2


def test_few_decisions_within_a_loop_delay_are_placed_one_by_one() -> None:
    """n_T^2 <= 3 Lambda / a: with a = 3 /s and T = 2 s that is Lambda <= 1/4 per second."""
    assert decide(0.24, 2.0, 3.0).is_discrete
    assert not decide(0.26, 2.0, 3.0).is_discrete
    assert decide(0.24, 2.0, 3.0).decisions == pytest.approx(0.48)
    assert decide(0.25, 2.0, 3.0).most == pytest.approx(0.5)


def test_a_decision_is_held_until_it_is_clearly_wrong() -> None:
    assert decide(0.3, 2.0, 3.0, was_discrete=True).is_discrete
    assert not decide(0.4, 2.0, 3.0, was_discrete=True).is_discrete
    assert not decide(0.2, 2.0, 3.0, was_discrete=False).is_discrete
    assert decide(0.15, 2.0, 3.0, was_discrete=False).is_discrete


def boulder_line(view: View) -> LineWork:
    rates = WorkRates(prefill_s=1e-3, output_s=1e-3, context_s=1e-6, step_s=0.01)
    heavy = RateCurve(1.0, 0.6)
    return LineWork(1, 50.0, (heavy,) * 2, (None,) * 2, (rates,) * 2)


@pytest.mark.parametrize(
    ("mode", "boulders", "late_s", "expected"),
    [
        ("auto", 0.4, 0.3, True),
        ("auto", 30.0, 3.0, False),
        ("flow", 0.4, 0.3, False),
        ("discrete", 30.0, 3.0, True),
    ],
)
def test_dlb_places_rare_requests_one_by_one_and_lets_frequent_ones_flow(
    mode: Literal["auto", "discrete", "flow"], boulders: float, late_s: float, expected: bool
) -> None:
    view = view_of_two()
    dlb = build_dlb(DlbPolicy(kind="dlb", mode=mode), view, EVERY_S, 8.0, boulder_line(view))
    updates = []

    for i in range(100):
        hear(view, 4.0 + i * EVERY_S, boulders=boulders, late_s=late_s)
        updates.append(dlb.on_tick(view))
        dlb_news = dlb.tuning()
        assert dlb.choose(view, request(i), random.Random(i)) in view.allowed

    assert dlb.is_discrete == expected
    assert (updates[-1] is None) == expected
    assert dlb_news is None or dlb_news.mode == ("discrete" if expected else "flow")


def test_dlb_tells_the_numbers_behind_its_decision() -> None:
    view = view_of_two()
    dlb = build_dlb(DlbPolicy(kind="dlb"), view, EVERY_S, 8.0, boulder_line(view))
    told = []

    for i in range(100):
        hear(view, 1.0 + i * EVERY_S, boulders=0.4)
        dlb.on_tick(view)
        told += [news] if (news := dlb.tuning()) is not None else []

    last = told[-1]
    assert last.mode == "discrete"
    assert last.loop_delay_s == pytest.approx(0.3, rel=0.01)
    assert last.decisions == pytest.approx(last.class_rate_per_s * last.loop_delay_s)
    assert last.decisions_most == pytest.approx(math.sqrt(3 * last.class_rate_per_s / last.a_per_s))
    assert math.isnan(last.step)


def test_work_is_prefill_and_decode_with_its_context() -> None:
    """4 requests: 400 prompt and 40 output tokens left, a mean context of 100 + 5: 0.4 + 40 (0.001 + 105e-6)."""
    view = view_of_two()
    hear(view, 1.0)
    rates = WorkRates(prefill_s=1e-3, output_s=1e-3, context_s=1e-6)

    assert rates.outstanding_s(view.targets[0]) == pytest.approx(0.4 + 40 * 1.105e-3)
    assert rates.of_request_s(100, 10) == pytest.approx(0.1 + 10 * 1.105e-3)
    assert WorkRates(request_s=0.02).outstanding_s(view.targets[0]) == pytest.approx(0.08)


def test_work_is_shared_by_the_servers_of_a_target_and_own_sends_count_until_they_are_seen() -> None:
    """The same work: the cell of two servers is the cheaper, until the requests sent there make up the difference."""
    view = view_of_two()
    hear(view, 1.0)
    work = LeastWork(view, boulder_line(view))
    rng = random.Random(1)
    chosen = []

    for i in range(4):
        target = work.choose(view, request(i), rng)
        assert target is not None
        target.on_sent(i, 1.0)
        chosen.append(target.name)

    # work there: 0.444; each own send adds 0.048 + 50 (0.001 + 73e-6) = 0.102 to the one that it went to
    assert chosen == ["b", "b", "b", "b"]
    hear(view, 9.0)  # reports that know of them all
    assert work.choose(view, request(9), rng) is view.by_name["b"]
    assert view.by_name["b"].unseen == {}


def test_equal_work_goes_round() -> None:
    view = View([Target(name, CURVE, 1, i) for i, name in enumerate("ab")])
    work = LeastWork(view, boulder_line(view))

    names = [getattr(work.choose(view, request(i), random.Random(1)), "name", None) for i in range(4)]

    assert names == ["a", "b", "a", "b"]
    view.allow([])
    assert work.choose(view, request(), random.Random(1)) is None


def test_a_root_alone_spreads_what_it_sends_within_the_age_of_the_news() -> None:
    view = View([Target(name, CURVE, 1, i) for i, name in enumerate("ab")])
    hear(view, 1.0)
    work = LeastWork(view, boulder_line(view))

    for i in range(200):
        target = work.choose(view, request(i), random.Random(1))
        assert target is not None
        target.on_sent(i, 1.0)

    assert [target.own_in_flight for target in view.targets] == [100, 100]
