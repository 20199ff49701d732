"""The server alone: it answers when its service model says so, and tells the truth about itself."""

from __future__ import annotations

import math

import pytest

from testbed.roles.changes import Changes
from testbed.roles.messages import (
    Cancel,
    FirstToken,
    Outcome,
    Poll,
    Probe,
    ProbeReply,
    Reply,
    Report,
    Request,
    Setting,
)
from testbed.roles.schedule import Schedule
from testbed.roles.server import QUIET_SAMPLES, Server
from testbed.roles.server_configuration import ServerConfiguration
from testbed.serving.batch import Batch
from testbed.serving.profile import PROFILES
from testbed.serving.service import fixed_work
from testbed.serving.slots import Slots
from tests.roles.fake_environment import FakeEnvironment


def make_server(env, service=None, reports=None, probes=False, changes=None, first_tokens=None):
    service = service or Slots(slots=1, mean_s=0.5, draw=fixed_work, class_count=1)
    configuration = ServerConfiguration(
        service=service,
        samples=Schedule(0.1, 0.1),
        reports=reports,
        changes=changes,
        first_tokens=first_tokens,
        leaves=["us/leaf-1"],
        answers_probes=probes,
    )
    server = Server(env, "us/server-1", configuration)
    server.start()
    return server


def request(request_id, prompt=48, output=8):
    return Request(request_id, 0, 0, prompt, output)


def fire(env, server, name):
    env.at_s = env.timers.pop(name)
    server.on_timer(name)


def test_a_request_is_answered_at_the_instant_the_service_model_planned():
    env = FakeEnvironment()
    server = make_server(env)
    env.at_s = 1.0
    server.on_message("us/leaf-1", request(3))
    server.on_message("us/leaf-1", request(4))
    assert env.timers["step"] == 1.5

    fire(env, server, "step")

    assert env.sent == [("us/leaf-1", Reply(3, 0, int(Outcome.COMPLETED), 0.5, 0, 1, 48, 8))]
    assert env.rows_of("services") == [(3, 0, "us/server-1", 1.0, 1.0, 1.5, 1.5, 1.5, 0, 0)]
    assert env.timers["step"] == 2.0


def test_what_was_due_before_a_request_is_answered_before_it_is_taken():
    """A loop that is late must not let a newcomer delay what had finished."""
    env = FakeEnvironment()
    server = make_server(env)
    server.on_message("us/leaf-1", request(1))
    env.at_s = 0.7  # the step at 0.5 was due, but its timer has not fired yet
    server.on_message("us/leaf-1", request(2))

    assert [message.request_id for _, message in env.sent] == [1]
    (served,) = env.rows_of("services")
    assert (served[6], served[7]) == (0.5, 0.7)  # finished as planned, and answered as late as that
    assert env.timers["step"] == pytest.approx(1.2)


def test_a_request_that_never_fits_fails_at_once():
    env = FakeEnvironment()
    server = make_server(env, service=Batch(PROFILES["small"], 1))
    server.on_message("us/leaf-1", request(1, prompt=50_000))

    ((leaf, reply),) = env.sent
    assert (leaf, reply.outcome) == ("us/leaf-1", int(Outcome.FAILED))
    assert server.is_idle()


def test_a_slower_speed_moves_the_next_step():
    env = FakeEnvironment()
    server = make_server(env)
    server.on_message("us/leaf-1", request(1))
    env.at_s = 0.25
    server.on_message("", Setting("speed", 0.5))

    assert env.timers["step"] == pytest.approx(0.75)


def test_samples_are_the_truth():
    env = FakeEnvironment()
    server = make_server(env)
    for request_id in range(3):
        server.on_message("us/leaf-1", request(request_id))

    fire(env, server, "sample")

    (row,) = env.rows_of("samples")
    assert row[:5] == ("us/server-1", 0.1, 2, 1, (3,))
    assert row[9] == 3
    assert env.timers["sample"] == pytest.approx(0.2)


def test_an_idle_server_is_woken_for_many_samples_at_once_and_none_is_missing():
    """They are taken before the next request counts, at the instants that they would have had, and then on time again."""
    env = FakeEnvironment()
    server = make_server(env)

    fire(env, server, "sample")
    assert env.timers["sample"] == pytest.approx(0.1 + 0.1 * QUIET_SAMPLES)
    env.at_s = 0.55
    server.on_message("us/leaf-1", request(1))

    rows = env.rows_of("samples")
    assert [row[1] for row in rows] == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5])
    assert {(row[2], row[3], row[9]) for row in rows} == {(0, 0, 0)}
    assert env.timers["sample"] == pytest.approx(0.6)
    fire(env, server, "sample")
    assert env.rows_of("samples")[-1][2:4] == (0, 1)
    assert env.timers["sample"] == pytest.approx(0.7)


def test_an_idle_server_takes_the_samples_that_it_left_as_it_stops():
    env = FakeEnvironment()
    server = make_server(env)
    fire(env, server, "sample")

    env.at_s = 0.35
    server.stop()

    assert [row[1] for row in env.rows_of("samples")] == pytest.approx([0.1, 0.2, 0.3])


def test_reports_go_to_the_leaves_where_they_are_read():
    env = FakeEnvironment()
    server = make_server(env, reports=Schedule(0.1, 0.05))
    server.on_message("us/leaf-1", request(0))

    fire(env, server, "report")

    ((leaf, report),) = env.sent
    assert leaf == "us/leaf-1"
    assert isinstance(report, Report)
    assert (report.measured_at_s, report.queued, report.running) == (0.05, 0, 1)


def test_a_server_tells_the_leaf_of_first_tokens_where_it_counts_from_them():
    env = FakeEnvironment()
    service = Batch(PROFILES["small"], 1)
    service.first_tokens = []
    server = make_server(env, service=service, first_tokens=service.first_tokens)
    server.on_message("us/leaf-1", request(3, output=2))
    server.on_message("us/leaf-1", request(4, output=1))  # its first token is its last
    while "step" in env.timers:
        fire(env, server, "step")

    assert [
        (message.request_id, message.attempt) for _, message in env.sent if isinstance(message, FirstToken)
    ] == [(3, 0), (4, 0)]
    kinds = [(type(message).__name__, message.request_id) for _, message in env.sent]
    assert kinds == [("FirstToken", 3), ("FirstToken", 4), ("Reply", 4), ("Reply", 3)]
    first_s = next(row[5] for row in env.rows_of("services") if row[0] == 3)
    assert first_s < env.at_s


def test_a_server_that_tells_of_changes_is_silent_while_nothing_changes():
    env = FakeEnvironment()
    server = make_server(env, reports=Schedule(0.1, 0.05), changes=Changes(1))
    fire(env, server, "report")
    fire(env, server, "report")
    server.on_message("us/leaf-1", request(0))
    fire(env, server, "report")
    fire(env, server, "report")

    assert [(round(report.measured_at_s, 9), report.running) for _, report in env.sent] == [
        (0.05, 0),
        (0.25, 1),
    ]


def test_a_server_that_is_polled_reports_to_the_one_that_asks():
    env = FakeEnvironment()
    server = make_server(env)
    server.on_message("us/leaf-1", request(0))
    server.on_message("us/leaf-2", Poll(3, 0))

    ((leaf, report),) = env.sent
    assert (leaf, report.sequence, report.running) == ("us/leaf-2", 0, 1)


def test_a_probe_is_told_the_count_in_flight_and_the_latency_seen_at_it():
    env = FakeEnvironment()
    server = make_server(env, probes=True)
    server.on_message("us/leaf-1", request(0))
    fire(env, server, "step")
    env.take_sent()

    server.on_message("us/leaf-1", Probe(12, 0))

    assert env.sent == [("us/leaf-1", ProbeReply(12, 0, 0, 0.5, 0.5))]


def test_what_is_here_at_the_end_is_recorded_without_the_instants_it_never_reached():
    env = FakeEnvironment()
    server = make_server(env)
    server.on_message("us/leaf-1", request(0))
    server.on_message("us/leaf-1", request(1))
    server.stop()

    running, waiting = env.rows_of("services")
    assert running[4] == 0.0
    assert math.isnan(running[6])
    assert math.isnan(running[7])
    assert math.isnan(waiting[4])


def test_what_a_sample_has_seen_finish_is_answered_and_recorded_though_the_run_ends_before_the_next_step():
    """Else no row would tell of a request that the server's own counts, and the link to it, have."""
    env = FakeEnvironment()
    server = make_server(env)
    server.on_message("us/leaf-1", request(0))
    env.at_s = 0.5
    server.on_timer("sample")

    server.stop()

    (served,) = env.rows_of("services")
    assert (served[3], served[6], served[7]) == (0.0, 0.5, 0.5)
    assert [message.outcome for _, message in env.sent] == [int(Outcome.COMPLETED)]
    assert server.is_idle()


def make_queueing_server(env, leaves=("us/leaf-1", "us/leaf-2")):
    configuration = ServerConfiguration(
        service=Slots(slots=1, mean_s=0.5, draw=fixed_work, class_count=1),
        samples=Schedule(0.1, 0.1),
        reports=None,
        leaves=list(leaves),
        answers_probes=False,
        queues_when_idle=True,
    )
    server = Server(env, "us/server-1", configuration)
    server.start()
    return server


def told(env):
    """(leaf, requests in flight) of each report since the last look."""
    return [(to, each.queued + each.running) for to, each in env.take_sent() if isinstance(each, Report)]


def test_an_idle_server_stands_in_the_queue_of_one_leaf_and_joins_again_when_its_work_is_done():
    env = FakeEnvironment()
    server = make_queueing_server(env)
    ((leaf, in_flight),) = told(env)
    assert in_flight == 0

    server.on_message(leaf, request(1))
    server.on_message(leaf, request(2))
    assert told(env) == []  # the leaf knows: it has taken the server out of its queue
    fire(env, server, "step")
    assert told(env) == []  # one request is left
    fire(env, server, "step")

    assert [count for _, count in told(env)] == [0]
    assert "report" not in env.timers


def test_a_server_in_a_queue_that_another_leaf_finds_takes_its_word_back():
    env = FakeEnvironment()
    server = make_queueing_server(env)
    ((leaf, _),) = told(env)
    other = {"us/leaf-1": "us/leaf-2", "us/leaf-2": "us/leaf-1"}[leaf]

    server.on_message(other, request(1))

    assert told(env) == [(leaf, 1)]


def test_idle_servers_choose_every_leaf_alike():
    env = FakeEnvironment()
    server = make_queueing_server(env, leaves=["a", "b", "c", "d"])
    chosen = [leaf for leaf, _ in told(env)]
    for i in range(400):
        server.on_message(chosen[-1], request(i))
        fire(env, server, "step")
        chosen += [leaf for leaf, _ in told(env)]

    assert len(chosen) == 401
    assert all(abs(chosen.count(leaf) - 100) < 4 * math.sqrt(400 * 3 / 16) for leaf in "abcd")


def failing(server, after_s):
    """From now on every request fails after so long."""
    server.on_message("", Setting("errors", 1.0))
    server.on_message("", Setting("error_after", after_s))


def test_a_request_that_waits_to_fail_is_in_flight_for_everybody():
    """In probe replies, reports, samples, gauges and the replies of others, until it has failed."""
    env = FakeEnvironment()
    server = make_server(env, reports=Schedule(0.1, 0.05), probes=True)
    server.on_message("us/leaf-1", request(0))
    failing(server, 5.0)
    server.on_message("us/leaf-1", request(1))
    server.on_message("us/leaf-1", request(2))
    assert env.sent == []
    assert not server.is_idle()

    fire(env, server, "report")
    fire(env, server, "sample")
    server.on_message("us/leaf-1", Probe(12, 0))
    fire(env, server, "step")

    (_, report), (_, answer), (_, reply) = env.take_sent()
    assert (report.queued, report.running, report.by_class) == (0, 3, (3,))
    assert answer.in_flight == 3
    assert (reply.request_id, reply.in_flight) == (0, 2)
    ((_, _, queued, running, by_class, *_),) = env.rows_of("samples")
    assert (queued, running, by_class) == (0, 3, (3,))
    assert server.gauges() == (3, 1, 2)
    server.on_message("us/leaf-1", Cancel(1, 0))
    assert server.gauges() == (3, 1, 1)
    fire(env, server, "fail")
    ((_, failed),) = env.take_sent()
    assert (failed.request_id, failed.residence_s, failed.in_flight) == (2, 5.0, 0)
    assert server.gauges() == (3, 2, 0)
    assert server.is_idle()


def test_a_server_on_which_requests_wait_to_fail_takes_each_sample_on_time():
    """It is not idle; once they have failed it is."""
    env = FakeEnvironment()
    server = make_server(env)
    failing(server, 0.35)
    server.on_message("us/leaf-1", request(0))

    while "fail" in env.timers:
        fire(env, server, min(env.timers, key=env.timers.get))
    while len(env.rows_of("samples")) < 6:
        fire(env, server, "sample")

    assert [row[3] for row in env.rows_of("samples")[:6]] == [1, 1, 1, 0, 0, 0]


def test_a_request_that_fails_after_the_fault_has_healed_tells_how_long_it_stayed():
    env = FakeEnvironment()
    server = make_server(env)
    failing(server, 5.0)
    server.on_message("us/leaf-1", request(0))
    failing(server, 0.0)

    fire(env, server, "fail")

    ((_, reply),) = env.sent
    assert (env.at_s, reply.residence_s) == (5.0, 5.0)


def test_a_server_that_tells_of_changes_tells_of_those_that_wait_to_fail():
    env = FakeEnvironment()
    server = make_server(env, reports=Schedule(0.1, 0.05), changes=Changes(1))
    fire(env, server, "report")
    failing(server, 5.0)
    server.on_message("us/leaf-1", request(0))
    fire(env, server, "report")

    assert [report.running for _, report in env.sent] == [0, 1]


def test_a_server_stands_in_no_queue_of_idle_ones_while_a_request_waits_to_fail():
    """It joins again when that has failed, or was called back."""
    env = FakeEnvironment()
    server = make_queueing_server(env)
    failing(server, 5.0)
    ((leaf, _),) = told(env)
    other = {"us/leaf-1": "us/leaf-2", "us/leaf-2": "us/leaf-1"}[leaf]

    server.on_message(other, request(1))
    assert told(env) == [(leaf, 1)]
    fire(env, server, "fail")
    ((_, in_flight),) = told(env)
    assert in_flight == 0
    server.on_message("us/leaf-1", request(2))
    told(env)
    server.on_message("us/leaf-1", Cancel(2, 0))

    assert [count for _, count in told(env)] == [0]


def test_a_server_that_fails_at_once_stays_in_a_queue_of_idle_ones():
    """The leaf that gave it the request has taken it out, so it joins again."""
    env = FakeEnvironment()
    server = make_queueing_server(env)
    failing(server, 0.0)
    ((leaf, _),) = told(env)

    server.on_message(leaf, request(1))

    (reply,) = [message for _, message in env.sent if isinstance(message, Reply)]
    assert (reply.outcome, reply.residence_s) == (int(Outcome.FAILED), 0.0)
    assert [count for _, count in told(env)] == [0]
    assert "fail" not in env.timers
