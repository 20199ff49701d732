"""The root alone: what it sends, counts and records."""

from __future__ import annotations

import math
from array import array

import pytest

from testbed.roles.messages import FirstToken, Outcome, Poll, Reply, Report, Request
from testbed.roles.poller import Polls
from testbed.roles.root import Root, Stream
from testbed.roles.schedule import Schedule
from testbed.routing.cost import cost_function
from testbed.routing.policy import build_policy, policy_hooks
from testbed.routing.view import Target, View
from testbed.scenario.policy_words import FlowPolicy, LeastCostPolicy
from testbed.scenario.quantity import Step
from testbed.serving.rate_curve import RateCurve
from testbed.traffic.plan import RootPlan
from tests.roles.fake_environment import FakeEnvironment

LEAVES = {"us": ("us/leaf-1", "us/leaf-2"), "eu": ("eu/leaf-1",)}


def make_root(
    env,
    spec=None,
    instants=(1.0, 2.0, 3.0),
    timeout_s=5.0,
    allowed=None,
    sampled=0.0,
    polls=(),
    leaf_draws=None,
):
    targets = [Target(name, RateCurve(0.1, 0.01, 50), 2, i) for i, name in enumerate(LEAVES)]
    view = View(targets, allowed)
    spec = spec or LeastCostPolicy(kind="least_cost", cost="in_flight")
    policy = build_policy(spec, view, seed=1, node="root.r", report_every_s=0.1, output_mean=8.0)
    hooks = policy_hooks(policy)
    cost = hooks.cost or cost_function("in_flight", "profile", 8.0)
    stream = Stream(
        "sand",
        view,
        policy,
        hooks,
        cost,
        timeout_s,
        0.05,
        getattr(spec, "hold_queue", None) or 0,
        getattr(spec, "decision_time", 0.0),
    )
    count = len(instants)
    plan = RootPlan(
        array("q", range(10, 10 + count)),
        array("d", instants),
        array("i", [0] * count),
        array("i", [0] * count),
        array("q", [48] * count),
        array("q", [8] * count),
    )
    return Root(env, "root.r", [stream], plan, LEAVES, sampled, polls, leaf_draws), view


def report(sequence, measured_at_s, queued, running):
    return Report(
        sequence, 0, measured_at_s, queued, running, (queued + running,), 0, 0, 0, 0.0, 1.0, 0.1, 0.01, 0.0
    )


def reply(request_id, residence_s=0.2, outcome=Outcome.COMPLETED):
    return Reply(request_id, 0, int(outcome), residence_s, 0, 0)


def arrive(env, root, at_s):
    env.at_s = at_s
    root.on_timer("arrival")


def test_a_request_goes_to_the_cell_that_the_reports_show_idlest_and_to_its_leaves_in_turn():
    env = FakeEnvironment()
    root, _ = make_root(env)
    root.start()
    root.on_message("eu/leaf-1", report(0, 0.0, 3, 2))
    root.on_message("us/leaf-1", report(0, 0.0, 0, 1))

    arrive(env, root, 1.0)
    arrive(env, root, 2.0)

    assert env.sent == [
        ("us/leaf-1", Request(10, 0, 0, 48, 8)),
        ("us/leaf-2", Request(11, 0, 0, 48, 8)),
    ]
    assert env.timers["arrival"] == 3.0


def test_a_leaf_may_be_drawn_by_the_request_instead_whatever_came_before():
    """Half of 400 requests each, and the same leaf for a request when others do not come."""
    leaves = {}
    for ids in (range(400), range(0, 400, 3)):
        env = FakeEnvironment()
        instants = tuple(1.0 + i for i in range(400))
        root, _ = make_root(env, instants=instants, allowed=["us"], leaf_draws={"us": 77})
        root.start()
        for i in ids:
            root._next = i  # the others do not arrive
            arrive(env, root, instants[i])
        leaves[ids] = {message.request_id: leaf for leaf, message in env.sent}

    every, third = leaves.values()
    assert abs(list(every.values()).count("us/leaf-1") - 200) < 4 * 10
    assert third == {request_id: every[request_id] for request_id in third}
    assert len(third) == 134


def test_a_reply_closes_the_request_and_measures_the_round_trip_without_the_time_in_the_cell():
    env = FakeEnvironment()
    root, view = make_root(env, instants=(1.0,))
    root.start()
    arrive(env, root, 1.0)

    env.at_s = 1.29
    root.on_message("us/leaf-1", reply(10, residence_s=0.25))

    assert view.targets[0].network_s == pytest.approx(0.04)
    assert view.targets[0].own_in_flight == 0
    assert root.is_idle()
    (row,) = env.rows_of("dispatches")
    assert row[:9] == (10, 0, "root.r", "us", "us/leaf-1", int(Outcome.COMPLETED), 1.0, 1.0, 1.29)


def test_the_row_of_a_request_tells_how_old_the_observation_was_when_it_was_used():
    env = FakeEnvironment()
    root, _ = make_root(env, instants=(1.0,))
    root.start()
    env.at_s = 0.8
    root.on_message("us/leaf-1", report(3, 0.3, 0, 0))
    arrive(env, root, 1.0)
    env.at_s = 1.2
    root.on_message("us/leaf-1", reply(10))

    (row,) = env.rows_of("dispatches")
    assert row[10] == pytest.approx(0.7)


def test_a_timeout_frees_the_counts_and_a_late_reply_is_counted_not_an_error():
    env = FakeEnvironment()
    root, view = make_root(env, instants=(1.0,), timeout_s=5.0)
    root.start()
    arrive(env, root, 1.0)
    assert env.timers["timeout:0"] == 6.0

    env.at_s = 6.0
    root.on_timer("timeout:0")
    env.at_s = 6.5
    root.on_message("us/leaf-1", reply(10))

    assert view.targets[0].own_in_flight == 0
    assert root.is_idle()
    (row,) = env.rows_of("dispatches")
    assert row[5] == int(Outcome.TIMED_OUT)
    assert math.isnan(row[8])
    assert env.rows_of("late_replies") == [(10, 0, 6.5)]


def test_a_timeout_takes_only_those_whose_time_is_up_and_waits_for_the_next():
    env = FakeEnvironment()
    root, view = make_root(env, instants=(1.0, 2.0, 3.0), timeout_s=5.0)
    root.start()
    for at_s in (1.0, 2.0, 3.0):
        arrive(env, root, at_s)

    env.at_s = 7.0
    root.on_timer("timeout:0")

    assert sum(target.own_in_flight for target in view.targets) == 1
    assert env.timers["timeout:0"] == 8.0


def test_a_reply_to_a_request_never_sent_tells_its_story():
    env = FakeEnvironment()
    root, _ = make_root(env)

    with pytest.raises(
        RuntimeError, match=r"root\.r: .*request_id=99.* from us/leaf-1 .*neither open nor timed out"
    ):
        root.on_message("us/leaf-1", reply(99))


def test_without_an_allowed_cell_the_outcome_is_no_target():
    env = FakeEnvironment()
    root, _ = make_root(env, instants=(1.0,), allowed=())
    root.start()

    arrive(env, root, 1.0)

    assert env.sent == []
    (row,) = env.rows_of("dispatches")
    assert row[5] == int(Outcome.NO_TARGET)
    assert root.is_idle()


HOLDING = LeastCostPolicy(
    kind="least_cost", cost="in_flight", stale="ignored", stale_after="1 s", unheard="ignored", when_none="hold",
    hold_queue=2,
)  # fmt: skip


def test_a_root_holds_requests_until_a_cell_reports_and_tells_how_long():
    env = FakeEnvironment()
    root, _ = make_root(env, spec=HOLDING, instants=(1.0, 2.0))
    root.start()
    arrive(env, root, 1.0)
    arrive(env, root, 2.0)
    assert (env.sent, root.gauges()) == ([], (2, 0, 2))

    env.at_s = 2.5
    root.on_message("eu/leaf-1", report(0, 2.4, 3, 2))

    assert env.sent == [("eu/leaf-1", Request(10, 0, 0, 48, 8)), ("eu/leaf-1", Request(11, 0, 0, 48, 8))]
    assert env.rows_of("holds") == [(10, 0, "root.r", 1.0, 2.5), (11, 0, "root.r", 2.0, 2.5)]
    assert env.timers["timeout:0"] == 6.0
    root.on_message("eu/leaf-1", reply(10))
    root.on_message("eu/leaf-1", reply(11))
    assert root.is_idle()
    assert [row[6:8] for row in env.rows_of("dispatches")] == [(1.0, 2.5), (2.0, 2.5)]


def test_a_root_sheds_what_its_queue_has_no_room_for_and_ends_what_waits_too_long():
    env = FakeEnvironment()
    root, _ = make_root(env, spec=HOLDING, timeout_s=5.0)
    root.start()
    for at_s in (1.0, 2.0, 3.0):
        arrive(env, root, at_s)
    env.at_s = env.timers["held:0"]
    root.on_timer("held:0")

    assert env.sent == []
    shed, timed_out = env.rows_of("dispatches")
    assert (shed[0], shed[3], shed[5]) == (12, "", int(Outcome.SHED))
    assert (timed_out[0], timed_out[4], timed_out[5], timed_out[6]) == (10, "", int(Outcome.TIMED_OUT), 1.0)
    assert math.isnan(timed_out[7])
    assert env.timers["held:0"] == 7.0


def test_a_cell_whose_reports_stop_is_left_out_until_it_reports_again():
    env = FakeEnvironment()
    spec = LeastCostPolicy(kind="least_cost", cost="in_flight", stale="ignored", stale_after="1 s")
    root, _ = make_root(env, spec=spec)
    root.start()
    root.on_message("us/leaf-1", report(0, 0.0, 0, 0))
    root.on_message("eu/leaf-1", report(0, 0.5, 9, 0))
    arrive(env, root, 1.0)
    root.on_message("eu/leaf-1", report(1, 1.5, 9, 0))
    arrive(env, root, 2.0)
    root.on_message("us/leaf-2", report(0, 2.9, 0, 0))
    root.on_message("us/leaf-1", report(1, 2.9, 0, 0))
    arrive(env, root, 3.0)

    assert [leaf.partition("/")[0] for leaf, _ in env.sent] == ["us", "eu", "us"]


def test_a_decision_is_recorded_as_it_was_believed():
    env = FakeEnvironment()
    spec = LeastCostPolicy(kind="least_cost", cost="in_flight", own_counts="add")
    root, _ = make_root(env, spec=spec, instants=(1.0, 2.0), sampled=1.0)
    root.start()
    arrive(env, root, 1.0)
    arrive(env, root, 2.0)

    assert [row[7] for row in env.rows_of("decisions")] == [0.0, 0.0, 1.0, 0.0]


SLOW = LeastCostPolicy(kind="least_cost", cost="in_flight", own_counts="add", decision_time="100 ms")


def test_a_root_sends_when_its_decision_takes_effect_and_records_the_view_it_was_made_on():
    env = FakeEnvironment()
    root, view = make_root(env, spec=SLOW, instants=(1.0, 1.05))
    root.start()
    env.at_s = 0.9
    root.on_message("us/leaf-1", report(0, 0.8, 0, 0))
    arrive(env, root, 1.0)
    arrive(env, root, 1.05)
    env.at_s = 1.08
    root.on_message("us/leaf-1", report(1, 1.0, 0, 50))
    assert (env.sent, view.targets[0].own_in_flight) == ([], 0)

    for due_s in (1.1, 1.15):
        env.at_s = env.timers.pop("decide:0")
        assert env.at_s == pytest.approx(due_s)
        root.on_timer("decide:0")

    assert env.sent == [("us/leaf-1", Request(10, 0, 0, 48, 8)), ("eu/leaf-1", Request(11, 0, 0, 48, 8))]
    env.at_s = 1.4
    root.on_message("us/leaf-1", reply(10, residence_s=0.25))
    (row,) = env.rows_of("dispatches")
    assert row[6:9] == (1.0, pytest.approx(1.1), 1.4)
    assert row[10] == pytest.approx(0.2)  # the report of 0.8 s was used at 1.0 s
    assert view.targets[0].network_s == pytest.approx(0.05)
    assert [row[3:] for row in env.rows_of("holds")] == [(1.0, 1.1), (1.05, pytest.approx(1.15))]


def test_a_request_whose_client_goes_before_the_decision_is_never_sent():
    env = FakeEnvironment()
    root, view = make_root(
        env, spec=SLOW.model_copy(update={"decision_time": 6.0}), instants=(1.0,), timeout_s=5.0
    )
    root.start()
    arrive(env, root, 1.0)
    env.at_s = 6.0
    root.on_timer("timeout:0")
    env.at_s = 7.0
    root.on_timer("decide:0")

    assert env.sent == []
    assert view.targets[0].own_in_flight == 0
    (row,) = env.rows_of("dispatches")
    assert (row[3], row[5]) == ("", int(Outcome.TIMED_OUT))
    assert root.is_idle()


def test_a_root_may_count_its_requests_from_their_first_token():
    env = FakeEnvironment()
    spec = LeastCostPolicy(kind="least_cost", cost="in_flight", view="own_counts", counts_from="first_token")
    root, view = make_root(env, spec=spec)
    root.start()
    arrive(env, root, 1.0)
    assert [view.count(target) for target in view.targets] == [0, 0]
    root.on_message("us/leaf-1", FirstToken(10, 0))
    root.on_message("us/leaf-1", FirstToken(99, 0))  # of one that has timed out

    assert [view.count(target) for target in view.targets] == [1, 0]
    root.on_message("us/leaf-1", reply(10))
    assert [view.count(target) for target in view.targets] == [0, 0]


def test_a_root_polls_the_leaves_of_each_group_by_a_timer_of_its_own():
    env = FakeEnvironment()
    groups = (Polls(LEAVES["us"], Schedule(1.0, 0.0), False), Polls(LEAVES["eu"], Schedule(5.0, 2.0), True))
    root, view = make_root(env, polls=groups)
    root.start()
    assert (env.timers["poll:0"], env.timers["poll:1"]) == (0.0, 2.0)
    root.on_timer("poll:0")

    assert env.sent == [("us/leaf-1", Poll(0, 0)), ("us/leaf-2", Poll(1, 0))]
    root.on_message("us/leaf-1", report(0, 0.1, 2, 2))
    assert view.targets[0].in_flight == 4


def test_what_is_held_at_the_end_is_unfinished_and_was_never_sent():
    env = FakeEnvironment()
    root, _ = make_root(env, spec=HOLDING, instants=(1.0,))
    root.start()
    arrive(env, root, 1.0)
    root.stop()

    (row,) = env.rows_of("dispatches")
    assert (row[5], row[6]) == (int(Outcome.UNFINISHED), 1.0)
    assert math.isnan(row[7])
    assert not root.is_idle()


def test_what_is_open_at_the_end_is_unfinished():
    env = FakeEnvironment()
    root, _ = make_root(env, instants=(1.0, 2.0))
    root.start()
    arrive(env, root, 1.0)

    root.stop()

    assert [row[5] for row in env.rows_of("dispatches")] == [int(Outcome.UNFINISHED)]
    assert not root.is_idle()


def test_a_report_overtaken_by_a_newer_one_is_recorded_but_not_believed():
    env = FakeEnvironment()
    root, view = make_root(env)
    root.on_message("us/leaf-1", report(5, 0.5, 9, 0))
    root.on_message("us/leaf-1", report(4, 0.4, 1, 0))

    assert view.targets[0].in_flight == 9
    assert [row[3] for row in env.rows_of("observations")] == [5, 4]


def test_every_update_of_the_shares_is_recorded_with_step_interval_and_what_was_believed():
    env = FakeEnvironment()
    flow = FlowPolicy(kind="flow", cost="marginal", model="profile", step=Step(0.5, "/s^2"), interval="0.1 s")
    root, _ = make_root(env, spec=flow)
    root.start()
    env.at_s = 0.02
    root.on_message("us/leaf-1", report(0, 0.01, 0, 60))
    assert env.timers["tick:0"] == 0.05

    env.at_s = 0.05
    root.on_timer("tick:0")

    assert env.timers["tick:0"] == pytest.approx(0.15)
    us, eu = env.rows_of("updates")
    assert (us[1], us[3], us[5], us[6], us[7], us[8], us[9]) == ("sand", "us", 0.5, 0.1, 0.05, 0, 0.01)
    assert us[11] == 60.0
    assert us[16] < us[15] == 0.5
    assert us[16] + eu[16] == pytest.approx(1.0)
    assert us[17] is True


def test_sampled_decisions_record_every_candidate():
    env = FakeEnvironment()
    root, _ = make_root(env, instants=(1.0,), sampled=1.0)
    root.start()
    arrive(env, root, 1.0)

    rows = env.rows_of("decisions")

    assert [(row[2], row[10]) for row in rows] == [("us", True), ("eu", False)]
