from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.routing.flow import Flow, ReportedFlow, TimedFlow, Update, build_flow
from testbed.routing.view import View
from testbed.scenario.policy_words import DgdPolicy, FlowPolicy
from testbed.scenario.quantity import Step
from tests.routing.beliefs import report, request, view_of


def flow_of(view: View, **words: Any) -> Flow:
    words = {"step": Step(0.1, "/s^2"), "model": "profile", **words}
    return build_flow(FlowPolicy(kind="flow", **words), view, report_every_s=0.5, output_mean=8.0)


def test_one_move_is_a_projected_step_of_known_size() -> None:
    """Costs 0.1 and 0.4 s (idle; alpha doubled by 10 in flight): the difference of shares moves by step dt 0.3."""
    view = view_of([0, 10])
    flow = flow_of(view)
    assert isinstance(flow, TimedFlow)

    update = flow.on_tick(view)

    assert update is not None
    assert (update.interval_s, update.step) == (0.5, 0.1)
    assert update.before == [0.5, 0.5]
    assert update.costs == pytest.approx([0.1, 0.4])
    assert update.after == pytest.approx([0.5 + 0.0075, 0.5 - 0.0075])
    assert update.clipped == [False, False]
    assert flow.shares == update.after


def test_the_interval_may_differ_from_the_period_of_reports() -> None:
    view = view_of([0, 10])
    flow = flow_of(view, interval="2 s")
    assert isinstance(flow, TimedFlow)

    assert flow.tick_interval_s == 2.0
    update = flow.on_tick(view)
    assert update is not None
    assert update.interval_s == 2.0


def on_reports(view: View, instants: list[float], **words: Any) -> list[Update]:
    """The moves of a policy that follows reports, which come at these instants."""
    flow = flow_of(view, update="on_report", **words)
    assert isinstance(flow, ReportedFlow)
    assert not hasattr(flow, "on_tick")
    updates = []
    for now_s in instants:
        view.now_s = now_s
        update = flow.on_report(view, view.targets[0])
        assert update is not None
        updates.append(update)
    return updates


def test_on_report_each_move_stands_for_the_time_since_the_last() -> None:
    updates = on_reports(view_of([0, 10]), [3.0, 3.2, 4.0])

    assert [update.interval_s for update in updates] == pytest.approx([0.5, 0.2, 0.8])


def test_reports_at_one_instant_make_one_move_with_the_news_of_all() -> None:
    """Two cells report at once: the move for the whole period is made again, from the same shares, with both."""
    view = view_of([10, 10])
    flow = flow_of(view, update="on_report")
    assert isinstance(flow, ReportedFlow)
    a, b = view.targets
    at_once = flow_of(view_of([4, 16]))

    view.now_s = 3.0
    a.on_report("a", report(4, measured_at_s=1.0), 3.0)
    first = flow.on_report(view, a)
    b.on_report("b", report(16, measured_at_s=1.0), 3.0)
    second = flow.on_report(view, b)

    expected = at_once.move(view, 0.5)
    assert first is not None
    assert second is not None
    assert expected is not None
    assert (first.interval_s, second.interval_s) == (0.5, 0.5)
    assert second.before == first.after
    assert flow.shares == second.after == expected.after != first.after


def test_reports_that_come_almost_together_are_one_lot_too() -> None:
    """In a live run those of one instant are handled some time apart; the intervals of the lots fill the time."""
    updates = on_reports(view_of([0, 10]), [3.0, 3.001, 3.004, 3.5, 3.503, 3.9])

    assert [update.interval_s for update in updates] == pytest.approx(
        [0.5, 0.501, 0.504, 0.496, 0.499, 0.397]
    )


def test_the_start_may_be_even_by_capacity_or_given() -> None:
    view = view_of([0, 0, 0], servers=[4, 3, 2])
    view.allow(["a", "c"])

    assert flow_of(view).shares == [0.5, 0.0, 0.5]
    assert flow_of(view, start="capacity").shares == pytest.approx([2 / 3, 0, 1 / 3])
    assert flow_of(view, start={"a": 1.0, "b": 5.0, "c": 3.0}).shares == [0.25, 0.0, 0.75]


def test_a_cut_cost_is_told() -> None:
    view = view_of([0, 5000])
    flow = flow_of(view)

    update = flow.move(view, 0.1)

    assert update is not None
    assert update.clipped == [False, True]
    assert update.costs[1] == pytest.approx(10.0)


@settings(max_examples=50, deadline=None)
@given(
    st.integers(2, 8),
    st.integers(0, 10_000),
    st.sampled_from(["chance", "low_discrepancy"]),
    st.floats(0.001, 100),
)
def test_shares_stay_probabilities_and_forbidden_targets_at_exactly_zero(
    count: int, seed: int, sampling: str, step: float
) -> None:
    """Whatever the loads, the step, and the changes of what is allowed."""
    rng = random.Random(seed)
    view = view_of([0] * count)
    flow = flow_of(view, sampling=sampling, step=Step(step, "/s^2"))

    for i in range(60):
        if i % 7 == 0:
            view.allow(rng.sample(sorted(view.by_name), rng.randint(1, count)))
        target = rng.choice(view.targets)
        target.on_report(target.name, report(rng.randint(0, 400), measured_at_s=i), i)
        chosen = flow.choose(view, request(i), rng)
        update = flow.move(view, 0.1)

        assert chosen in view.allowed
        assert update is not None
        for shares in (update.before, update.after):
            assert sum(shares) == pytest.approx(1.0, abs=1e-12)
            assert all(shares[each.index] == 0.0 for each in view.targets if each not in view.allowed)
            assert min(shares) >= 0.0


def test_what_a_forbidden_target_had_goes_to_the_others_in_proportion() -> None:
    view = view_of([0, 0, 0])
    flow = flow_of(view, start={"a": 0.2, "b": 0.6, "c": 0.2})

    view.allow(["a", "b"])
    assert flow.choose(view, request(), random.Random(1)) is not None
    assert flow.shares == pytest.approx([0.25, 0.75, 0.0])

    view.allow(["c"])
    assert flow.choose(view, request(), random.Random(1)) is view.targets[2]
    assert flow.shares == [0.0, 0.0, 1.0]

    view.allow([])
    assert flow.choose(view, request(), random.Random(1)) is None
    assert flow.move(view, 0.1) is None

    view.allow(["a", "b"])
    assert flow.choose(view, request(), random.Random(1)) is not None
    assert flow.shares == [0.5, 0.5, 0.0]


def test_requests_are_dealt_by_the_shares() -> None:
    view = view_of([0, 0, 0])
    a, b, c = view.targets
    start = {"a": 0.5, "b": 0.3, "c": 0.2}
    rng = random.Random(5)

    by_chance = flow_of(view, start=start)
    counts = Counter(by_chance.choose(view, request(i), rng) for i in range(4000))
    assert abs(counts[a] - 2000) < 127  # 4 standard deviations
    assert abs(counts[c] - 800) < 102

    rounded = flow_of(view, start=start, sampling="low_discrepancy")
    counts = Counter(rounded.choose(view, request(i), rng) for i in range(4000))
    assert counts == {a: 2000, b: 1200, c: 800}


def test_with_fresh_reports_shares_settle_where_the_costs_are_equal() -> None:
    """The optimum of two cells of 1 and 3 servers: requests in flight per server are the same, so 1/4 and 3/4."""
    view = view_of([0, 0], servers=[1, 3])
    flow = flow_of(view, step=Step(0.5, "/s^2"))
    rate_per_s = 20.0

    for i in range(4000):
        for target in view.targets:
            rate = rate_per_s * flow.shares[target.index] / target.servers
            in_flight = min(target.curve.in_flight(min(rate, 60.0)), 200.0) * target.servers
            target.on_report(target.name, report(round(in_flight), measured_at_s=i), i)
        flow.move(view, 0.05)

    assert flow.shares == pytest.approx([0.25, 0.75], abs=0.03)  # in flight is a whole number in a report


def test_both_forms_come_to_the_same_shares_and_cut_the_same_targets() -> None:
    view = view_of([0, 10, 60])
    words = {"step": Step(0.5, "/s^2"), "start": {"a": 0.5, "b": 0.4, "c": 0.1}}
    flows = [flow_of(view, form=form, **words) for form in ("projection", "tangent_cone")]

    for _ in range(12):
        one, other = (flow.move(view, 0.1) for flow in flows)
        assert one is not None
        assert other is not None
        assert one.after == pytest.approx(other.after, abs=1e-12)

    assert one.after[2] == other.after[2] == 0.0


def test_an_update_moves_no_more_than_it_may() -> None:
    """Half the sum of the changes is the share of requests that go elsewhere than before."""
    view = view_of([0, 30, 30])
    free, capped = (flow_of(view, step=Step(0.5, "/s^2"), max_move=most) for most in ("100 %", "1 %"))

    before = capped.shares
    wanted, moved = free.move(view, 0.1), capped.move(view, 0.1)

    assert wanted is not None
    assert moved is not None
    assert sum(abs(new - old) for new, old in zip(moved.after, before, strict=True)) == pytest.approx(0.02)
    assert sum(abs(new - old) for new, old in zip(wanted.after, before, strict=True)) > 0.04
    assert sum(moved.after) == pytest.approx(1.0, abs=1e-12)
    # in the same direction, only less far
    ratios = [
        (new - old) / (far - old) for new, old, far in zip(moved.after, before, wanted.after, strict=True)
    ]
    assert ratios == pytest.approx([ratios[0]] * 3)


@pytest.mark.parametrize("form", ["projection", "tangent_cone"])
def test_every_allowed_target_keeps_the_share_that_is_left_to_exploration(form: str) -> None:
    view = view_of([0, 200, 0])
    view.allow(["a", "b"])
    flow = flow_of(view, step=Step(1.0, "/s^2"), explore="5 %", form=form)

    for _ in range(50):
        flow.move(view, 0.1)

    assert flow.shares == pytest.approx([0.95, 0.05, 0.0])
    view.allow(["a", "c"])
    flow.move(view, 0.0)
    assert flow.shares[1] == 0.0
    assert flow.shares[2] >= 0.05


def test_dgd_is_flow_by_marginal_cost_in_the_tangent_cone_form() -> None:
    words = DgdPolicy(kind="dgd", step=Step(0.1, "/s^2"))

    assert (words.cost, words.form) == ("marginal", "tangent_cone")
    view = view_of([0, 10])
    flow = build_flow(words, view, report_every_s=0.5, output_mean=8.0)
    assert isinstance(flow, TimedFlow)
    update = flow.on_tick(view)
    assert update is not None
    assert update.after == pytest.approx([0.5 + 0.0075, 0.5 - 0.0075])
