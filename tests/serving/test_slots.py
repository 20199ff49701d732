"""Slots by hand; their statistics are in tests/laws."""

import math

import pytest

from testbed.roles.messages import Request
from testbed.serving.service import fixed_work
from testbed.serving.slots import Slots
from tests.serving.service_play import Action, act, play, request


def slots(count: int = 1, mean_s: float = 2.0) -> Slots:
    """Slots whose every service takes `mean_s`."""
    return Slots(slots=count, mean_s=mean_s, draw=fixed_work, class_count=2)


def test_first_come_first_served() -> None:
    """One slot of 2 s: who comes while it is taken waits for his turn; tokens come when it is finished."""
    served = play(slots(), [Action(at_s, request(int(at_s))) for at_s in (0.0, 1.0, 5.0)]).served

    assert [one[1:6] for one in served] == [
        (0.0, 0.0, 2.0, 2.0, 0),
        (1.0, 2.0, 4.0, 4.0, 0),
        (5.0, 5.0, 7.0, 7.0, 0),
    ]


def test_each_slot_serves_one() -> None:
    """Three come at once to two slots."""
    server = slots(2)
    for identity in range(3):
        server.admit(request(identity, class_index=identity % 2), 1.0)
    assert (server.queued, server.running, server.by_class()) == (1, 2, (2, 1))

    served = server.advance(3.0)

    assert [one.finished_at_s for one in served] == [3.0, 3.0]
    assert (server.queued, server.running, server.by_class()) == (0, 1, (1, 0))
    assert server.next_event_s() == 5.0


def test_a_late_advance_gives_the_planned_instants() -> None:
    """Whoever waited started when the slot was free, not when the loop noticed."""
    actions = [Action(0.25 * identity, request(identity)) for identity in range(6)]
    late = slots()
    for action in actions:
        act(late, action)

    assert late.advance(100.0) == play(slots(), actions).served
    assert late.next_event_s() == math.inf


def test_speed_touches_the_remaining_work_at_once() -> None:
    """Half of the 2 s is done after 1 s; the other half takes 4 s at a quarter of the speed."""
    actions = [
        Action(0.0, request(0)),
        Action(1.0, speed=0.25),
        Action(9.0, request(1)),
        Action(10.0, speed=1.0),
    ]

    served = play(slots(), actions).served

    assert [one.finished_at_s for one in served] == [5.0, 11.75]


def test_a_cancelled_request_frees_its_slot_at_once() -> None:
    """Who waits starts there; one that waits can be cancelled too; nothing can be cancelled twice."""
    server = slots()
    for identity in range(3):
        server.admit(request(identity), 0.0)

    assert server.cancel(1, 0, 0.25)
    assert server.cancel(0, 0, 0.5)
    assert not server.cancel(0, 0, 0.75)
    (served,) = server.advance(10.0)

    assert (served.request.request_id, served.started_at_s, served.finished_at_s) == (2, 0.5, 2.5)
    assert not server.cancel(2, 0, 10.0)


def test_demand_is_a_multiple_of_the_mean() -> None:
    """As drawn for each request."""

    def draw(one: Request) -> float:
        return 1.5 + one.request_id

    server = Slots(slots=1, mean_s=2.0, draw=draw, class_count=1)

    assert [one.finished_at_s for one in play(server, [Action(0.0, request(0))]).served] == [3.0]


def test_busy_time_is_the_share_of_occupied_slots() -> None:
    """One of two slots for 2 s, both for another."""
    server = slots(2)
    server.admit(request(0), 0.0)
    assert server.busy_s(0.5) == 0.25
    server.admit(request(1), 1.0)

    assert server.busy_s(2.0) == 1.5
    assert server.busy_s(10.0) == 2.0


def test_requests_count_their_tokens_until_they_are_finished() -> None:
    """There are no steps by which tokens could be told apart."""
    server = slots()
    server.admit(request(0, prompt=10, output=3), 0.0)
    server.admit(request(1, prompt=20, output=5), 0.0)

    assert (server.prompt_tokens_left(1.0), server.output_tokens_left(1.0)) == (30, 8)
    assert (server.prompt_tokens_left(2.0), server.output_tokens_left(2.0)) == (20, 5)
    assert server.kv_fraction(2.0) == 0
    assert server.fits(request(3, prompt=10**9))


def test_rounding_never_ends_a_service_before_it_began() -> None:
    """A demand too small to be seen, at speeds that make the clock of work round both ways."""
    for speed in (0.1, 0.3, 3.0, 7.0):
        server = Slots(slots=1, mean_s=1e-30, draw=fixed_work, class_count=1, speed=speed)
        for identity in range(200):
            (served,) = play(server, [Action(0.1 + identity / 3, request(identity))]).served

            assert served.finished_at_s == pytest.approx(served.started_at_s)
            assert served.finished_at_s >= served.started_at_s
