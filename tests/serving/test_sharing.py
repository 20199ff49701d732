"""Processor sharing by hand; its statistics are in tests/laws."""

import math

import pytest

from testbed.serving.service import fixed_work
from testbed.serving.sharing import ProcessorSharing
from tests.serving.service_play import Action, act, play, request


def shared(capacity_per_s: float = 1.0, half: float = 0.0) -> ProcessorSharing:
    """A shared server of fixed work."""
    return ProcessorSharing(capacity_per_s=capacity_per_s, half=half, draw=fixed_work, class_count=2)


def test_everybody_gets_the_same_share() -> None:
    """Alone for half a second, then two share: the first is finished at 1.5 s, the second at 2."""
    served = play(shared(), [Action(0.0, request(0)), Action(0.5, request(1))]).served

    assert [one[1:6] for one in served] == [(0.0, 0.0, 1.5, 1.5, 0), (0.5, 0.5, 2.0, 2.0, 0)]


def test_the_rate_follows_the_curve() -> None:
    """C n / (N0 + n): with C 8 and N0 4 one alone takes 5/8 s, four together 1 s."""
    for count, sojourn_s in ((1, 0.625), (4, 1.0), (12, 2.0)):
        actions = [Action(1.0, request(identity)) for identity in range(count)]
        served = play(shared(8.0, 4.0), actions).served

        assert [one.finished_at_s for one in served] == [1.0 + sojourn_s] * count
        assert [one.request.request_id for one in served] == list(range(count))


def test_speed_touches_the_remaining_work_at_once() -> None:
    """Half of the work is done after half a second, the rest at a quarter of the speed."""
    (served,) = play(shared(), [Action(0.0, request(0)), Action(0.5, speed=0.25)]).served

    assert served.finished_at_s == 2.5


def test_a_cancellation_speeds_up_the_others_at_once() -> None:
    """Two share for a second; then the other is alone with its remaining half."""
    server = shared()
    server.admit(request(0, class_index=1), 0.0)
    server.admit(request(1), 0.0)
    assert (server.queued, server.running, server.by_class()) == (0, 2, (1, 1))

    assert server.cancel(0, 0, 1.0)
    assert not server.cancel(0, 0, 1.0)

    assert server.next_event_s() == 1.5
    assert [one.request.request_id for one in server.advance(1.5)] == [1]
    assert not server.cancel(1, 0, 1.5)


def test_a_late_advance_gives_the_planned_instants() -> None:
    """The shares changed when they were due, not when the loop noticed."""
    actions = [Action(0.25 * identity, request(identity)) for identity in range(6)]
    late = shared()
    for action in actions:
        act(late, action)

    assert late.advance(100.0) == play(shared(), actions).served
    assert late.next_event_s() == math.inf


def test_busy_time_is_the_time_with_somebody_there() -> None:
    """Two busy periods; how many share does not matter."""
    server = shared()
    server.admit(request(0), 0.0)
    server.admit(request(1), 0.5)
    assert server.busy_s(1.75) == 1.75
    server.advance(10.0)
    server.admit(request(2), 10.0)

    assert server.busy_s(10.5) == 2.5
    assert server.busy_s(20.0) == 3.0


def test_requests_count_their_tokens_until_they_are_finished() -> None:
    """There are no steps by which tokens could be told apart."""
    server = shared()
    server.admit(request(0, prompt=10, output=3), 0.0)

    assert (server.prompt_tokens_left(0.5), server.output_tokens_left(0.5)) == (10, 3)
    assert (server.prompt_tokens_left(1.0), server.output_tokens_left(1.0)) == (0, 0)
    assert server.kv_fraction(0.5) == 0
    assert server.fits(request(3, prompt=10**9))


def test_progress_starts_again_with_every_busy_period() -> None:
    """A request alone takes the same time after a thousand others."""
    server = shared(capacity_per_s=3.0)
    (first,) = play(server, [Action(0.0, request(0))]).served
    for identity in range(1000):
        play(server, [Action(2.0 * identity + 10, request(identity))])
    (last,) = play(server, [Action(4096.0, request(0))]).served

    assert last.finished_at_s - 4096.0 == pytest.approx(first.finished_at_s, abs=1e-12)
