"""The leaf alone: whom it gives a request, what it counts, and what it reports."""

from __future__ import annotations

import math

import pytest

from testbed.roles.changes import Changes
from testbed.roles.latency_model import LatencyModel
from testbed.roles.leaf import Leaf
from testbed.roles.leaf_configuration import LeafConfiguration
from testbed.roles.messages import FirstToken, Outcome, Poll, Probe, ProbeReply, Reply, Report, Request
from testbed.roles.poller import Polls
from testbed.roles.schedule import Schedule
from testbed.routing.policy import build_policy, policy_hooks
from testbed.routing.view import Target, View
from testbed.scenario.policy_words import (
    DEFAULT_LEAF_POLICY,
    LeastCostPolicy,
    LeastLatencyPolicy,
    PrequalPolicy,
)
from testbed.serving.rate_curve import RateCurve
from tests.roles.fake_environment import FakeEnvironment

SERVERS = ("us/server-1", "us/server-2")


class Notebook(LatencyModel):
    """A latency model that writes down what it is told."""

    def __init__(self):
        super().__init__(0.0125, 0.00125, 0.5)
        self.learned = []

    def on_completion(self, in_flight, steps, sojourn_s):
        self.learned.append((in_flight, steps, sojourn_s))


def make_leaf(env, spec=DEFAULT_LEAF_POLICY, has_peers=False, timeouts_s=(5.0, 2.0), model=None, **words):
    view = View([Target(name, RateCurve(0.1, 0.01, 50), 1, i) for i, name in enumerate(SERVERS)])
    policy = build_policy(spec, view, seed=1, node="us/leaf-1", report_every_s=0.1, output_mean=8.0)
    told = LeafConfiguration(
        view=view,
        policy=policy,
        hooks=policy_hooks(policy),
        roots=["root.a", "root.b"],
        timeouts_s=list(timeouts_s),
        reports=words.pop("reports", Schedule(0.1, 0.02)),
        model=model or LatencyModel(0.0125, 0.00125, 0.5),
        has_peers=has_peers,
        counts_steps=True,
        hold_queue=getattr(spec, "hold_queue", None) or 0,
        decision_s=getattr(spec, "decision_time", 0.0),
        **words,
    )
    leaf = Leaf(env, "us/leaf-1", told)
    leaf.start()
    return leaf, view


def request(request_id, class_index=0, prompt=48, output=8):
    return Request(request_id, 0, class_index, prompt, output)


def done(request_id, queued=0, in_flight=0, outcome=Outcome.COMPLETED):
    return Reply(request_id, 0, int(outcome), 0.2, queued, in_flight)


def test_requests_go_to_the_server_with_fewest_in_flight():
    env = FakeEnvironment()
    leaf, _ = make_leaf(env)
    for request_id in range(3):
        leaf.on_message("root.a", request(request_id))
    leaf.on_message("us/server-2", done(1))
    leaf.on_message("root.a", request(3))

    targets = [target for target, message in env.sent if isinstance(message, Request)]

    assert targets == ["us/server-1", "us/server-2", "us/server-1", "us/server-2"]


def test_a_reply_goes_back_to_the_root_that_asked_with_the_time_spent_in_the_cell():
    env = FakeEnvironment()
    leaf, _ = make_leaf(env)
    env.at_s = 1.0
    leaf.on_message("root.b", request(7))
    env.at_s = 1.25
    leaf.on_message("us/server-1", done(7))

    assert env.sent[-1] == ("root.b", Reply(7, 0, int(Outcome.COMPLETED), 0.25, 0, 0))
    assert env.rows_of("visits") == [(7, 0, "us/leaf-1", "us/server-1", int(Outcome.COMPLETED), 1.0, 1.25)]


def test_tokens_outstanding_are_what_the_servers_told_and_what_was_sent_since():
    """The reply to one request says that of the other, at the same server, 6 prompt and 7 output tokens are left."""
    env = FakeEnvironment()
    leaf, view = make_leaf(env)
    view.allow([SERVERS[0]])
    leaf.on_message("root.a", request(0, prompt=40, output=9))
    leaf.on_message("root.a", request(1, prompt=2, output=3))

    leaf.on_message(SERVERS[0], Reply(1, 0, int(Outcome.COMPLETED), 0.2, 0, 1, 6, 7))
    leaf.on_message("root.a", request(2, prompt=30, output=4))
    env.take_sent()
    leaf.on_timer("report")

    (_, report), _ = env.sent
    assert (report.prompt_tokens, report.output_tokens) == (36, 11)
    assert report.arrivals_by_class == (3, 0)


def test_a_report_goes_to_every_root_with_the_instant_of_measurement_and_the_counts():
    env = FakeEnvironment()
    leaf, _ = make_leaf(env)
    leaf.on_message("root.a", request(0, prompt=40, output=5))
    leaf.on_message("root.a", request(1, class_index=1, prompt=2, output=3))
    env.take_sent()

    env.at_s = 0.02
    leaf.on_timer("report")

    (first, one), (second, other) = env.sent
    assert (first, second) == ("root.a", "root.b")
    assert one is other
    assert isinstance(one, Report)
    assert (one.sequence, one.measured_at_s, one.queued, one.running) == (0, 0.02, 0, 2)
    assert (one.by_class, one.prompt_tokens, one.output_tokens, one.arrivals) == ((1, 1), 42, 8, 2)
    assert one.speed == 1.0
    assert env.timers["report"] == pytest.approx(0.12)


def test_a_report_takes_as_waiting_the_share_that_the_servers_last_told():
    env = FakeEnvironment()
    leaf, _ = make_leaf(env)
    for request_id in range(9):
        leaf.on_message("root.a", request(request_id))
    env.at_s = 0.5
    leaf.on_message("us/server-1", done(0, queued=3, in_flight=4))
    env.take_sent()

    leaf.on_timer("report")

    report = env.sent[0][1]
    assert (report.queued, report.running) == (3, 5)


def test_a_policy_that_follows_replies_hears_of_those_that_came_and_of_those_that_were_given_up():
    env = FakeEnvironment()
    spec = LeastLatencyPolicy(kind="least_latency", weight=1.0, explore="0 %")
    leaf, view = make_leaf(env, spec)
    leaf.on_message("root.a", request(1))
    leaf.on_message("root.a", request(2, class_index=1))
    env.at_s = 0.5
    leaf.on_message("us/server-1", done(1))
    env.at_s = 2.0
    leaf.on_timer("timeout:1")
    env.take_sent()

    leaf.on_message("root.a", request(3))

    assert [target for target, _ in env.sent] == ["us/server-1"]  # 0.5 s against the 2 s of a failure
    assert all(target.own_in_flight == int(target.name == "us/server-1") for target in view.targets)


def test_a_timeout_per_class_frees_every_count_and_tells_the_root():
    env = FakeEnvironment()
    leaf, view = make_leaf(env)
    leaf.on_message("root.a", request(0, class_index=0))
    leaf.on_message("root.a", request(1, class_index=1))
    assert env.timers["timeout:1"] == 2.0

    env.at_s = 2.0
    leaf.on_timer("timeout:1")
    env.at_s = 2.1
    leaf.on_message("us/server-2", done(1))  # late: no error, no second answer

    answers = [message for _, message in env.sent if isinstance(message, Reply)]
    assert [(each.request_id, each.outcome) for each in answers] == [(1, int(Outcome.TIMED_OUT))]
    assert [target.own_in_flight for target in view.targets] == [1, 0]
    assert leaf.gauges() == (2, 1, 1)


def test_errors_show_in_the_error_fraction():
    env = FakeEnvironment()
    leaf, _ = make_leaf(env)
    for request_id in range(200):
        leaf.on_message("root.a", request(request_id))
        server = env.sent[-1][0]
        leaf.on_message(server, done(request_id, outcome=Outcome.FAILED))
    env.take_sent()

    leaf.on_timer("report")

    assert env.sent[0][1].error_fraction == pytest.approx(1 - 0.99**200)


def test_a_reply_that_nobody_waits_for_tells_its_story():
    env = FakeEnvironment()
    leaf, _ = make_leaf(env)
    with pytest.raises(
        RuntimeError, match=r"us/leaf-1: .*request_id=5.* from us/server-1 at 0\.000000 s, .*neither open"
    ):
        leaf.on_message("us/server-1", done(5))


@pytest.mark.interpreted
def test_the_speed_is_learned_from_occupancy_averaged_over_each_stay():
    """Request 0 stays 3 s, alone for one of them; request 1 is never alone: 5/3 and 2, whatever they found."""
    env = FakeEnvironment()
    notebook = Notebook()
    leaf, view = make_leaf(env, model=notebook)
    view.allow(["us/server-1"])
    leaf.on_message("root.a", request(0))
    env.at_s = 1.0
    leaf.on_message("root.a", request(1))
    env.at_s = 3.0
    leaf.on_message("us/server-1", done(1, in_flight=1))
    leaf.on_message("us/server-1", done(0))

    assert notebook.learned == [(2.0, 8, 2.0), (pytest.approx(5 / 3), 8, 3.0)]


@pytest.mark.interpreted
def test_the_others_requests_count_for_the_speed_where_leaves_share_servers():
    env = FakeEnvironment()
    notebook = Notebook()
    leaf, view = make_leaf(env, has_peers=True, model=notebook)
    view.allow(["us/server-1"])
    leaf.on_message("root.a", request(0))
    env.at_s = 1.0
    leaf.on_message("us/server-1", done(0, in_flight=6))  # six of other leaves are there
    leaf.on_message("root.a", request(1))
    env.at_s = 2.0
    leaf.on_message("us/server-1", done(1, in_flight=6))

    assert [n for n, _, _ in notebook.learned] == [1.0, 7.0]


def test_prequal_probes_after_each_choice_and_takes_the_answers():
    env = FakeEnvironment()
    leaf, _ = make_leaf(env, spec=PrequalPolicy(kind="prequal", pool=2, probes_per_request=2.0))
    leaf.on_message("root.a", request(0))
    probes = [(target, message) for target, message in env.take_sent() if isinstance(message, Probe)]
    assert sorted(target for target, _ in probes) == list(SERVERS)

    for target, probe in probes:
        busy = 9 if target == "us/server-1" else 0
        leaf.on_message(target, ProbeReply(probe.probe_id, 0, busy, 0.1 + busy, 0.0))
    leaf.on_message("root.a", request(1))

    assert [target for target, message in env.sent if isinstance(message, Request)] == ["us/server-2"]


HOLDING = LeastCostPolicy(
    kind="least_cost", cost="in_flight", stale="full", stale_after="1 s", when_none="hold", hold_queue=2
)


def told(measured_at_s, running):
    return Report(0, 0, measured_at_s, 0, running, (running,), 0, 0, 0, 0.0, 1.0, math.nan, math.nan, 0.0)


def leaf_with_stale_reports(env, spec=HOLDING, **words):
    leaf, view = make_leaf(env, spec=spec, **words)
    for server in SERVERS:
        leaf.on_message(server, told(0.0, 4))
    env.at_s = 1.5
    return leaf, view


def test_what_no_server_will_do_for_is_held_and_counts_as_waiting_in_the_cell():
    env = FakeEnvironment()
    leaf, _ = leaf_with_stale_reports(env)
    leaf.on_message("root.a", request(0, class_index=1, prompt=40, output=5))

    assert env.take_sent() == []
    leaf.on_timer("report")
    report = env.sent[0][1]
    assert (report.queued, report.running, report.by_class) == (1, 0, (0, 1))
    assert (report.prompt_tokens, report.output_tokens) == (40, 5)
    assert not leaf.is_idle()


def test_a_fresh_report_releases_what_is_held_in_order_of_arrival():
    env = FakeEnvironment()
    leaf, view = leaf_with_stale_reports(env)
    leaf.on_message("root.a", request(0))
    leaf.on_message("root.b", request(1))

    env.at_s = 1.7
    leaf.on_message("us/server-2", told(1.6, 9))

    assert env.sent == [("us/server-2", request(0)), ("us/server-2", request(1))]
    assert "held" not in env.timers
    env.at_s = 2.0
    leaf.on_message("us/server-2", done(1))
    assert env.sent[-1] == ("root.b", Reply(1, 0, int(Outcome.COMPLETED), 0.5, 0, 1))
    assert [target.own_in_flight for target in view.targets] == [0, 1]


def test_newcomers_wait_behind_the_held_and_beyond_the_bound_they_are_shed():
    env = FakeEnvironment()
    leaf, _ = leaf_with_stale_reports(env)
    for request_id in range(3):
        leaf.on_message("root.a", request(request_id))

    assert env.sent == [("root.a", Reply(2, 0, int(Outcome.SHED), 0.0, 2, 2))]
    assert env.rows_of("visits") == [(2, 0, "us/leaf-1", "", int(Outcome.SHED), 1.5, 1.5)]


def test_the_held_go_back_when_their_time_is_up():
    env = FakeEnvironment()
    leaf, _ = leaf_with_stale_reports(env)
    leaf.on_message("root.a", request(0, class_index=0))
    leaf.on_message("root.a", request(1, class_index=1))
    assert env.timers["held"] == 3.5  # the second class waits 2 s, the first 5 s

    env.at_s = 3.5
    leaf.on_timer("held")

    assert env.sent == [("root.a", Reply(1, 0, int(Outcome.TIMED_OUT), 2.0, 1, 1))]
    assert env.timers["held"] == 6.5
    env.at_s = 6.5
    leaf.on_timer("held")
    assert leaf.is_idle()


def test_with_refuse_what_no_server_will_do_for_goes_back_at_once():
    env = FakeEnvironment()
    spec = HOLDING.model_copy(update={"when_none": "refuse", "hold_queue": None})
    leaf, _ = leaf_with_stale_reports(env, spec)
    leaf.on_message("root.a", request(0))

    assert env.sent == [("root.a", Reply(0, 0, int(Outcome.NO_TARGET), 0.0, 0, 0))]


def test_a_report_that_turns_stale_is_noticed_without_news():
    env = FakeEnvironment()
    spec = LeastCostPolicy(kind="least_cost", cost="in_flight", stale="ignored", stale_after="1 s")
    leaf, _ = make_leaf(env, spec=spec)
    leaf.on_message("us/server-1", told(0.0, 0))
    leaf.on_message("us/server-2", told(0.5, 9))
    env.at_s = 1.0
    leaf.on_message("root.a", request(0))
    env.at_s = 1.01
    leaf.on_message("root.a", request(1))

    assert [server for server, _ in env.sent] == ["us/server-1", "us/server-2"]


SLOW = LeastCostPolicy(kind="least_cost", cost="in_flight", own_counts="add", decision_time="10 ms")


def test_a_decision_is_made_on_the_view_of_its_beginning_and_counts_from_its_end():
    env = FakeEnvironment()
    leaf, view = make_leaf(env, spec=SLOW)
    for request_id, at_s in enumerate((0.0, 0.004, 0.011)):
        env.at_s = at_s
        leaf.on_message("root.a", request(request_id))
        if request_id == 1:
            assert (env.take_sent(), [target.own_in_flight for target in view.targets]) == ([], [0, 0])
            env.at_s = env.timers.pop("decide")
            assert env.at_s == 0.010
            leaf.on_timer("decide")
            assert env.take_sent() == [("us/server-1", request(0))]
            assert env.timers["decide"] == 0.014

    env.at_s = 0.021
    leaf.on_timer("decide")

    # the first two took turns on an even view; the third saw the first one counted
    assert env.take_sent() == [("us/server-2", request(1)), ("us/server-2", request(2))]
    env.at_s = 0.221
    leaf.on_message("us/server-1", done(0))
    assert env.rows_of("visits") == [(0, 0, "us/leaf-1", "us/server-1", int(Outcome.COMPLETED), 0.0, 0.221)]


def test_a_request_whose_time_is_up_before_its_decision_goes_back_unsent():
    env = FakeEnvironment()
    leaf, view = make_leaf(env, spec=SLOW.model_copy(update={"decision_time": 3.0}))
    leaf.on_message("root.a", request(0, class_index=1))
    env.at_s = 2.0
    leaf.on_timer("timeout:1")
    env.at_s = 3.0
    leaf.on_timer("decide")

    assert env.sent == [("root.a", Reply(0, 0, int(Outcome.TIMED_OUT), 2.0, 0, 0))]
    assert [target.own_in_flight for target in view.targets] == [0, 0]
    assert leaf.is_idle()


def test_first_tokens_make_requests_count_and_are_passed_on_to_the_root_that_asked():
    env = FakeEnvironment()
    spec = DEFAULT_LEAF_POLICY.model_copy(update={"counts_from": "first_token"})
    leaf, view = make_leaf(env, spec=spec, passes_first_tokens=True)
    for request_id in range(2):
        leaf.on_message("root.b", request(request_id))
    env.take_sent()
    leaf.on_message("us/server-1", FirstToken(0, 0))
    leaf.on_message("us/server-1", FirstToken(9, 0))  # of one that has timed out

    assert env.sent == [("root.b", FirstToken(0, 0))]
    assert [view.count(target) for target in view.targets] == [1, 0]
    assert sum(target.own_in_flight for target in view.targets) == 2


def test_a_leaf_that_tells_of_changes_is_silent_while_nothing_changes():
    env = FakeEnvironment()
    leaf, _ = make_leaf(env, changes=Changes(2))
    told = []
    for step, arrivals in enumerate((0, 0, 1, 1, 0)):
        for number in range(arrivals):
            leaf.on_message("root.a", request(10 * step + number))
        env.take_sent()
        env.at_s = env.timers["report"]
        leaf.on_timer("report")
        told.append([target for target, message in env.take_sent() if isinstance(message, Report)])

    assert told == [["root.a", "root.b"], [], [], ["root.a", "root.b"], []]


def test_a_leaf_that_is_polled_reports_to_the_one_that_asks_and_never_unasked():
    env = FakeEnvironment()
    leaf, _ = make_leaf(env, reports=None)
    assert "report" not in env.timers
    env.at_s = 0.3
    leaf.on_message("root.b", Poll(7, 0))

    ((target, message),) = env.sent
    assert (target, message.sequence, message.measured_at_s) == ("root.b", 0, 0.3)


def test_a_leaf_polls_its_servers_and_believes_their_answers():
    env = FakeEnvironment()
    spec = LeastCostPolicy(kind="least_cost", cost="in_flight")
    leaf, view = make_leaf(env, spec=spec, polls=Polls(SERVERS, Schedule(0.5, 0.1), in_series=True))
    env.at_s = env.timers["poll"]
    leaf.on_timer("poll")
    assert env.take_sent() == [("us/server-1", Poll(0, 0))]
    leaf.on_message("us/server-1", told(0.1, 3))

    assert env.take_sent() == [("us/server-2", Poll(1, 0))]
    assert view.targets[0].in_flight == 3
    assert env.timers["poll"] == 0.6


def test_what_is_held_at_the_end_is_unfinished():
    env = FakeEnvironment()
    leaf, _ = leaf_with_stale_reports(env)
    leaf.on_message("root.a", request(0))
    leaf.stop()

    (row,) = env.rows_of("visits")
    assert row[3:6] == ("", int(Outcome.UNFINISHED), 1.5)
    assert math.isnan(row[6])


def test_what_is_open_at_the_end_is_unfinished():
    env = FakeEnvironment()
    leaf, _ = make_leaf(env)
    leaf.on_message("root.a", request(0))
    leaf.stop()

    (row,) = env.rows_of("visits")
    assert row[4] == int(Outcome.UNFINISHED)
    assert math.isnan(row[6])


SYNC = PrequalPolicy(kind="prequal", mode="sync", probes_per_request=2.0, probe_timeout="3 ms")


def probes_of(env):
    return [(target, message) for target, message in env.take_sent() if isinstance(message, Probe)]


def test_a_request_waits_until_enough_servers_have_answered():
    """Two are asked and one answer is enough; the other comes too late to matter."""
    env = FakeEnvironment()
    leaf, _ = make_leaf(env, spec=SYNC)
    env.at_s = 1.0
    leaf.on_message("root.a", request(7, class_index=1))
    (one, first), (other, second) = probes_of(env)
    assert {one, other} == set(SERVERS)
    assert leaf.gauges() == (1, 0, 1)
    assert not leaf.is_idle()

    env.at_s = 1.001
    leaf.on_message(other, ProbeReply(second.probe_id, 0, 3, 0.1, 1.0))
    assert env.take_sent() == [(other, request(7, class_index=1))]
    leaf.on_message(one, ProbeReply(first.probe_id, 0, 0, 0.1, 1.0))
    assert env.take_sent() == []

    env.at_s = 1.25
    leaf.on_message(other, done(7))
    assert env.sent[-1] == ("root.a", Reply(7, 0, int(Outcome.COMPLETED), 0.25, 0, 0))
    assert env.rows_of("visits")[0][5:] == (1.0, 1.25)
    assert leaf.is_idle()


def test_a_request_that_waits_for_answers_counts_as_waiting_in_its_class():
    env = FakeEnvironment()
    leaf, _ = make_leaf(env, spec=SYNC)
    leaf.on_message("root.a", request(0, class_index=1))
    env.take_sent()

    leaf.on_timer("report")

    report = env.sent[0][1]
    assert (report.queued, report.running, report.by_class) == (1, 0, (0, 1))
    assert (report.prompt_tokens, report.output_tokens) == (48, 8)


def test_a_request_goes_on_without_answers_when_the_time_is_up():
    env = FakeEnvironment()
    leaf, _ = make_leaf(env, spec=SYNC)
    leaf.on_message("root.a", request(0))
    env.at_s = 0.002
    leaf.on_message("root.a", request(1))
    env.take_sent()
    assert env.timers["asked"] == 0.003

    env.at_s = 0.003
    leaf.on_timer("asked")
    assert [message.request_id for _, message in env.take_sent() if isinstance(message, Request)] == [0]
    assert env.timers["asked"] == pytest.approx(0.005)
    env.at_s = 0.005
    leaf.on_timer("asked")

    assert [message.request_id for _, message in env.sent if isinstance(message, Request)] == [1]


def test_the_timeout_of_a_request_that_waits_for_answers_runs_from_its_arrival():
    env = FakeEnvironment()
    leaf, _ = make_leaf(env, spec=SYNC)
    leaf.on_message("root.a", request(0))
    env.at_s = 0.003
    leaf.on_timer("asked")
    assert env.timers["timeout:0"] == 5.0

    env.at_s = 5.0
    leaf.on_timer("timeout:0")

    assert env.sent[-1][1].outcome == int(Outcome.TIMED_OUT)
    assert leaf.is_idle()


def test_a_request_that_waits_for_answers_at_the_end_is_unfinished_at_no_server():
    env = FakeEnvironment()
    leaf, _ = make_leaf(env, spec=SYNC)
    leaf.on_message("root.a", request(0))
    leaf.stop()

    (row,) = env.rows_of("visits")
    assert row[3:5] == ("", int(Outcome.UNFINISHED))


def test_an_idle_leaf_probes_unasked_and_a_busy_one_does_not():
    env = FakeEnvironment()
    spec = PrequalPolicy(kind="prequal", probes_per_request=2.0, idle_probe_after="200 ms")
    leaf, _ = make_leaf(env, spec=spec)
    assert env.timers["idle"] == 0.2
    env.at_s = 0.15
    leaf.on_message("root.a", request(0))
    env.take_sent()

    env.at_s = 0.2
    leaf.on_timer("idle")
    assert probes_of(env) == []
    assert env.timers["idle"] == pytest.approx(0.35)
    env.at_s = 0.35
    leaf.on_timer("idle")

    assert sorted(target for target, _ in probes_of(env)) == list(SERVERS)
    assert env.timers["idle"] == pytest.approx(0.55)


def test_a_policy_hears_of_a_request_that_was_given_up():
    env = FakeEnvironment()
    leaf, _ = make_leaf(env, spec=PrequalPolicy(kind="prequal"))
    heard = []
    leaf._hooks = leaf._hooks._replace(on_reply=lambda *words: heard.append(words[1:]))
    leaf.on_message("root.a", request(0, class_index=1))
    env.at_s = 2.0
    leaf.on_timer("timeout:1")

    assert heard == [(2.0, Outcome.TIMED_OUT)]
