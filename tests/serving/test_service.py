"""What holds for every service model, whatever happens to it."""

import math
import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.draw import key_base
from testbed.serving.batch import Batch
from testbed.serving.profile import PROFILES
from testbed.serving.service import ServiceModel, even_exponential_work, exponential_work, fixed_work
from testbed.serving.sharing import ProcessorSharing
from testbed.serving.slots import Slots
from tests.serving.service_play import Action, act, play, request

WORK = exponential_work(key_base(1, "work"))


def make_batch(scale: float) -> ServiceModel:
    """A small batch that fills its memory."""
    return Batch(PROFILES["small"].with_limits(kv_tokens=1000, max_sequences=6).scaled(scale), 2)


def make_slots(scale: float) -> ServiceModel:
    """Three slots with exponential service."""
    return Slots(slots=3, mean_s=0.4 * scale, draw=WORK, class_count=2)


def make_sharing(scale: float) -> ServiceModel:
    """A rate curve with exponential work."""
    return ProcessorSharing(capacity_per_s=10.0 / scale, half=3.0, draw=WORK, class_count=2)


MODELS = pytest.mark.parametrize("make", [make_batch, make_slots, make_sharing])


@st.composite
def actions_of_a_run(draw: st.DrawFn) -> list[Action]:
    """Random arrivals, cancellations and changes of speed, some at equal instants."""
    actions: list[Action] = []
    at_s, arrived = 0.0, 0
    for _ in range(draw(st.integers(1, 50))):
        at_s += draw(st.one_of(st.just(0.0), st.floats(0.0, 0.5), st.floats(0.0, 10.0)))
        kind = draw(st.integers(0, 9))
        if kind == 0 and arrived:
            actions.append(Action(at_s, cancelled=(draw(st.integers(0, arrived - 1)), 0)))
        elif kind == 1:
            actions.append(Action(at_s, speed=draw(st.floats(0.05, 5.0))))
        else:
            prompt, output = draw(st.integers(1, 400)), draw(st.integers(1, 200))
            actions.append(Action(at_s, request(arrived, prompt, output, arrived % 2)))
            arrived += 1
    return actions


@MODELS
@settings(max_examples=60, deadline=None)
@given(actions=actions_of_a_run(), events_first=st.booleans())
def test_every_request_is_served_or_cancelled_and_no_effect_comes_before_its_cause(
    make: Callable[[float], ServiceModel], actions: list[Action], events_first: bool
) -> None:
    """Conservation and causality; the counts agree at every instant, and the order at equal instants is nothing."""
    server = make(1.0)
    gone: set[int] = set()

    def watch(now_s: float) -> None:
        assert sum(server.by_class()) == server.queued + server.running
        assert server.next_event_s() >= now_s
        assert 0 <= server.busy_s(now_s) <= now_s * (1 + 1e-12)

    played = play(
        server, actions, watch=watch if events_first else lambda now_s: None, events_first=events_first
    )

    arrived = [action.request.request_id for action in actions if action.request is not None]
    gone.update(one.request.request_id for one in played.served)
    gone.update(identity for identity, _ in played.cancelled)
    assert len(played.served) + len(played.cancelled) == len(arrived)
    assert gone == set(arrived)
    assert (server.queued, server.running, server.by_class(), server.open()) == (0, 0, (0, 0), [])
    for one in played.served:
        assert one.at_server_s <= one.started_at_s <= one.first_token_at_s <= one.finished_at_s
    finished_at_s = [one.finished_at_s for one in played.served]
    assert finished_at_s == sorted(finished_at_s)
    assert played.served == play(make(1.0), actions, events_first=not events_first).served


@MODELS
def test_a_loop_that_is_always_late_changes_no_instant(make: Callable[[float], ServiceModel]) -> None:
    """Everything is handed out by one `advance` at the end, as if it had been called in time."""
    rng = random.Random(3)
    actions, at_s = [], 0.0
    for identity in range(300):
        at_s += rng.expovariate(4.0)
        actions.append(Action(at_s, request(identity, rng.randint(1, 300), rng.randint(1, 60))))
    late = make(1.0)
    for action in actions:
        act(late, action)

    assert late.advance(1e9) == play(make(1.0), actions).served


@MODELS
def test_doubled_times_double_every_instant_to_the_bit(make: Callable[[float], ServiceModel]) -> None:
    """Scaling by a power of two is exact, speeds included."""
    rng = random.Random(4)
    actions, at_s = [], 0.0
    for identity in range(500):
        at_s += rng.expovariate(5.0)
        if identity % 20 == 19:
            actions.append(Action(at_s, speed=rng.uniform(0.3, 2.0)))
        elif identity % 20 == 9:
            actions.append(Action(at_s, cancelled=(identity - 1, 0)))
        else:
            actions.append(Action(at_s, request(identity, rng.randint(1, 300), rng.randint(1, 60))))

    once = play(make(1.0), actions).served
    twice = play(make(2.0), [action._replace(at_s=2 * action.at_s) for action in actions]).served

    assert [one[1:5] for one in twice] == [tuple(2 * at_s for at_s in one[1:5]) for one in once]


@MODELS
def test_requests_still_there_show_no_end(make: Callable[[float], ServiceModel]) -> None:
    """In order of arrival, with NaN for what they have not reached."""
    server = make(1.0)
    for identity in range(9):
        server.admit(request(identity, prompt=100, output=20), 0.001 * identity)

    still = server.open()

    assert [one.request.request_id for one in still] == list(range(9))
    assert [one.at_server_s for one in still] == [0.001 * identity for identity in range(9)]
    assert all(math.isnan(one.finished_at_s) for one in still)


def test_work_hangs_on_the_request_alone() -> None:
    """The same for another attempt, for another base another; of mean 1."""
    again = exponential_work(key_base(1, "work"))
    other = exponential_work(key_base(2, "work"))
    first = request(17)

    assert WORK(first) == again(first._replace(attempt=1, prompt_tokens=9))
    assert WORK(first) != other(first)
    assert fixed_work(first) == 1.0
    mean = sum(WORK(request(identity)) for identity in range(40_000)) / 40_000
    assert mean == pytest.approx(1.0, abs=4 / math.sqrt(40_000))  # four standard errors


def test_even_work_has_the_whole_exponential_distribution_in_any_run_of_requests():
    """Runs of 200: means to a standard deviation of a hundredth or two, where chance has 0.07."""
    draw = even_exponential_work()
    works = [draw(request(0)) for _ in range(2000)]

    means = [sum(works[start : start + 200]) / 200 for start in range(0, 2000, 200)]
    assert (sum((mean - 1.0) ** 2 for mean in means) / len(means)) ** 0.5 < 0.02
    assert sum(works) / 2000 == pytest.approx(1.0, abs=0.002)
    assert sum(work**2 for work in works) / 2000 == pytest.approx(2.0, abs=0.02)


def test_servers_with_even_work_get_the_same_work_in_the_same_order():
    one, other = even_exponential_work(), even_exponential_work()

    assert [one(request(i)) for i in range(9)] == [other(request(i)) for i in range(20, 29)]
