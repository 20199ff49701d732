"""Limits at the server: whom it sheds, and that what is due makes room first."""

from __future__ import annotations

import pytest

from testbed.roles.admission import LimitedServer
from testbed.roles.messages import Outcome, Request, Setting
from testbed.roles.schedule import Schedule
from testbed.roles.server_configuration import ServerConfiguration
from testbed.scenario.resilience_words import Limit
from testbed.serving.service import fixed_work
from testbed.serving.slots import Slots
from tests.roles.fake_environment import FakeEnvironment


def make_server(env, **limit):
    told = ServerConfiguration(
        service=Slots(slots=1, mean_s=0.5, draw=fixed_work, class_count=1),
        samples=Schedule(0.1, 0.1),
        reports=None,
        leaves=["us/leaf-1"],
        answers_probes=False,
    )
    server = LimitedServer(env, "us/server-1", told, limit=Limit(**limit))
    server.start()
    return server


def outcomes(env):
    return [(message.request_id, Outcome(message.outcome).name) for _, message in env.sent]


def give(server, *request_ids):
    for request_id in request_ids:
        server.on_message("us/leaf-1", Request(request_id, 0, 0, 48, 8))


@pytest.mark.parametrize(
    ("limit", "shed"),
    [({"in_flight": 2}, [3, 4]), ({"queued": 2}, [4]), ({"in_flight": 9, "queued": 1}, [3, 4])],
)
def test_a_request_beyond_the_limit_is_shed_at_once(limit, shed):
    env = FakeEnvironment()
    server = make_server(env, **limit)
    give(server, 1, 2, 3, 4)

    assert outcomes(env) == [(request_id, "SHED") for request_id in shed]
    assert server.gauges() == (4, len(shed), 4 - len(shed))


def test_a_limit_counts_those_that_wait_to_fail():
    """They are here; what fails at once is not."""
    env = FakeEnvironment()
    server = make_server(env, in_flight=2)
    server.on_message("", Setting("errors", 1.0))
    give(server, 1, 2, 3)
    assert outcomes(env) == [(1, "FAILED"), (2, "FAILED"), (3, "FAILED")]
    server.on_message("", Setting("error_after", 1.0))
    env.take_sent()

    give(server, 4, 5, 6)

    assert outcomes(env) == [(6, "SHED")]
    assert server.gauges() == (6, 4, 2)


def test_what_has_finished_makes_room_for_what_arrives_at_the_same_instant():
    env = FakeEnvironment()
    server = make_server(env, in_flight=1)
    give(server, 1)
    env.at_s = 0.5
    give(server, 2)

    assert outcomes(env) == [(1, "COMPLETED")]
    assert env.timers["step"] == 1.0


def test_a_limit_has_a_number():
    with pytest.raises(ValueError, match="one or more of in_flight, queued, tokens"):
        Limit()


def test_a_limit_on_tokens_counts_what_is_still_to_serve():
    """Requests of 48 and 8 tokens: the third one comes to 112 that are still to serve."""
    env = FakeEnvironment()
    server = make_server(env, tokens=112)
    give(server, 1, 2, 3)

    assert outcomes(env) == [(3, "SHED")]
    _, reply = env.sent[0]
    assert (reply.queued, reply.in_flight, reply.prompt_tokens, reply.output_tokens) == (1, 2, 96, 16)
