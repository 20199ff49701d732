"""A leaf that calls requests back: from the server, from its own queues, once."""

from __future__ import annotations

import pytest

from testbed.roles.cancelling import CancellingLeaf
from testbed.roles.latency_model import LatencyModel
from testbed.roles.leaf_configuration import LeafConfiguration
from testbed.roles.messages import Cancel, Outcome, Reply, Request
from testbed.roles.schedule import Schedule
from testbed.routing.policy import build_policy, policy_hooks
from testbed.routing.view import Target, View
from testbed.scenario.policy_words import DEFAULT_LEAF_POLICY, LeastCostPolicy, PrequalPolicy
from testbed.serving.rate_curve import RateCurve
from tests.roles.fake_environment import FakeEnvironment

SERVER = "us/server-1"
HOLDING = LeastCostPolicy(
    kind="least_cost", unheard="ignored", stale="ignored", stale_after="1 s", when_none="hold", hold_queue=3
)
ASKING = PrequalPolicy(kind="prequal", mode="sync", probes_per_request=2.0)


def make_leaf(env, spec=DEFAULT_LEAF_POLICY, cancels=(True, False), decision_s=0.0):
    view = View(
        [
            Target(SERVER, RateCurve(0.1, 0.01, 50), 1, 0),
            Target("us/server-2", RateCurve(0.1, 0.01, 50), 1, 1),
        ]
    )
    policy = build_policy(spec, view, seed=1, node="us/leaf-1", report_every_s=0.1, output_mean=8.0)
    told = LeafConfiguration(
        view=view, policy=policy, hooks=policy_hooks(policy), roots=["root.a"],
        timeouts_s=[5.0, 2.0], reports=Schedule(0.1, 0.02), model=LatencyModel(0.0125, 0.00125, 0.5),
        has_peers=False, counts_steps=True, hold_queue=getattr(spec, "hold_queue", None) or 0,
        decision_s=decision_s,
    )  # fmt: skip
    leaf = CancellingLeaf(env, "us/leaf-1", told, cancels=list(cancels))
    leaf.start()
    return leaf, view


def request(request_id, class_index=0):
    return Request(request_id, 0, class_index, 48, 8)


def calls(env):
    return [(target, message) for target, message in env.sent if isinstance(message, Cancel)]


def test_a_call_of_the_root_goes_on_to_the_server_and_frees_every_count_without_a_reply():
    env = FakeEnvironment()
    leaf, view = make_leaf(env)
    leaf.on_message("root.a", request(7))
    env.take_sent()
    env.at_s = 0.5
    leaf.on_message("root.a", Cancel(7, 0))

    assert env.sent == [(SERVER, Cancel(7, 0))]
    assert view.targets[0].own_in_flight == 0
    assert leaf.gauges() == (1, 1, 0)
    assert env.rows_of("visits") == [(7, 0, "us/leaf-1", SERVER, int(Outcome.TIMED_OUT), 0.0, 0.5)]


def test_a_request_whose_time_is_up_at_the_leaf_is_called_back_where_its_class_says_so():
    env = FakeEnvironment()
    leaf, _ = make_leaf(env)
    leaf.on_message("root.a", request(1, class_index=0))
    leaf.on_message("root.a", request(2, class_index=1))
    for index in (1, 0):
        env.at_s = env.timers[f"timeout:{index}"]
        leaf.on_timer(f"timeout:{index}")

    assert calls(env) == [(SERVER, Cancel(1, 0))]


def test_a_reply_that_crossed_the_call_is_late_and_dropped():
    env = FakeEnvironment()
    leaf, _ = make_leaf(env)
    leaf.on_message("root.a", request(7))
    leaf.on_message("root.a", Cancel(7, 0))
    env.take_sent()
    leaf.on_message(SERVER, Reply(7, 0, int(Outcome.COMPLETED), 0.2, 0, 0))

    assert env.sent == []
    assert len(env.rows_of("visits")) == 1


def test_a_call_for_what_never_came_or_is_over_changes_nothing():
    env = FakeEnvironment()
    leaf, _ = make_leaf(env)
    leaf.on_message("root.a", Cancel(7, 0))

    assert env.sent == []
    assert leaf.gauges() == (0, 0, 0)


@pytest.mark.parametrize(("spec", "decision_s"), [(HOLDING, 0.0), (ASKING, 0.0), (DEFAULT_LEAF_POLICY, 0.5)])
def test_what_has_not_gone_to_a_server_yet_is_forgotten_here(spec, decision_s):
    """Held, waiting for answers to its probes, or for its decision."""
    env = FakeEnvironment()
    leaf, _ = make_leaf(env, spec, decision_s=decision_s)
    leaf.on_message("root.a", request(7))
    assert leaf.gauges() == (1, 0, 1)
    env.at_s = 0.25
    leaf.on_message("root.a", Cancel(7, 0))
    for name, at_s in list(env.timers.items()):
        if name in ("asked", "decide", "held"):
            env.at_s = at_s
            leaf.on_timer(name)

    assert leaf.gauges() == (1, 1, 0)
    assert not [message for _, message in env.sent if isinstance(message, Request | Cancel | Reply)]
    assert env.rows_of("visits") == [(7, 0, "us/leaf-1", "", int(Outcome.TIMED_OUT), 0.0, 0.25)]
