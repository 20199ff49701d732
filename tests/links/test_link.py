"""The two halves of a link: draws by key, faults in any order; a heap of deadlines that never sleeps."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.links.link import DelayLine, LinkModel
from testbed.roles.messages import Message, Request
from testbed.scenario.link_words import Impairment, Jitter
from testbed.scenario.topology import Effect, Link

SEED = 11
NORMAL = Jitter.model_validate({"normal": "2 ms"})


def link(effect: Effect, source: str = "root.west", target: str = "us/leaf-1", path: str = "request") -> Link:
    return Link(0, source, target, path, effect)


def words(**keys: object) -> Impairment:
    return Impairment.model_validate(keys)


def request(request_id: int) -> Message:
    return Request(request_id, 0, 0, 1, 1)


# --- the sender's half --------------------------------------------------------------------------------------


def test_a_constant_delay_counts_from_the_sending_instant() -> None:
    model = LinkModel(SEED, link(Effect(0.020)))

    assert [model.draw(i, 0, i * 0.5) for i in range(4)] == [i * 0.5 + 0.020 for i in range(4)]


def test_draws_hang_on_the_key_alone() -> None:
    """Neither on the order of sending nor on what else is sent."""
    of = link(Effect(0.020, NORMAL, 0.1))
    forward, backward = LinkModel(SEED, of), LinkModel(SEED, of)

    drawn = {i: forward.draw(i, 0, 0.0) for i in range(200)}

    assert {i: backward.draw(i, 0, 0.0) for i in reversed(range(0, 200, 7))} == {
        i: drawn[i] for i in range(0, 200, 7)
    }


def test_links_paths_attempts_and_seeds_draw_apart() -> None:
    effect = Effect(0.020, NORMAL)
    first = LinkModel(SEED, link(effect)).draw(5, 0, 0.0)

    others = [
        LinkModel(SEED + 1, link(effect)).draw(5, 0, 0.0),
        LinkModel(SEED, link(effect, path="reply")).draw(5, 0, 0.0),
        LinkModel(SEED, link(effect, source="root.north")).draw(5, 0, 0.0),
        LinkModel(SEED, link(effect, target="us/leaf-2")).draw(5, 0, 0.0),
        LinkModel(SEED, link(effect)).draw(5, 1, 0.0),
        LinkModel(SEED, link(effect)).draw(6, 0, 0.0),
    ]
    assert len({first, *others}) == 7


def test_changing_the_loss_leaves_the_delays_as_they_were() -> None:
    clean, lossy = (
        LinkModel(SEED, link(Effect(0.020, NORMAL))),
        LinkModel(SEED, link(Effect(0.020, NORMAL, 0.3))),
    )

    pairs = [(clean.draw(i, 0, 0.0), lossy.draw(i, 0, 0.0)) for i in range(500)]

    kept = [pair for pair in pairs if pair[1] is not None]
    assert 250 < len(kept) < 450
    assert all(without == with_loss for without, with_loss in kept)


def test_loss_and_delay_are_independent() -> None:
    """Were both cut from one uniform number, the messages lost would be the fastest."""
    delays_s = LinkModel(SEED, link(Effect(0.020, NORMAL)))
    lossy = LinkModel(SEED, link(Effect(0.020, NORMAL, 0.5)))
    slow = [i for i in range(4000) if (delays_s.draw(i, 0, 0.0) or 0.0) > 0.020]

    lost = sum(lossy.draw(i, 0, 0.0) is None for i in slow)

    assert abs(lost - len(slow) / 2) < 4 * math.sqrt(len(slow)) / 2


def test_the_same_seed_gives_the_same_draws_in_interpreters_of_other_hash_seeds() -> None:
    """The seed flag of a well-known injector had no effect: names must not pass through hash()."""
    code = (
        "import json; from testbed.links.link import LinkModel; from testbed.scenario.link_words import Jitter;"
        "from testbed.scenario.topology import Effect, Link;"
        "jitter = Jitter.model_validate({'normal': '2 ms'});"
        "model = LinkModel(11, Link(0, 'root.west', 'us/leaf-1', 'request', Effect(0.02, jitter, 0.1)));"
        "print(json.dumps([model.draw(i, 0, 0.0) for i in range(300)]))"
    )
    root = Path(__file__).parents[2]

    told = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(root)},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for hash_seed in ("0", "4242")
    ]

    model = LinkModel(SEED, link(Effect(0.020, NORMAL, 0.1)))
    assert json.loads(told[0]) == json.loads(told[1]) == [model.draw(i, 0, 0.0) for i in range(300)]


def test_free_order_lets_jitter_reorder_and_kept_order_does_not() -> None:
    jitter = Jitter.model_validate({"uniform": "10 ms"})
    free = LinkModel(SEED, link(Effect(0.020, jitter)))
    kept = LinkModel(SEED, link(Effect(0.020, jitter, order="kept")))

    free_s = [free.draw(i, 0, i * 1e-3) or 0.0 for i in range(300)]
    kept_s = [kept.draw(i, 0, i * 1e-3) or 0.0 for i in range(300)]

    assert free_s != sorted(free_s)
    assert kept_s == sorted(kept_s)
    assert all(late >= early for late, early in zip(kept_s, free_s, strict=True))


def test_kept_order_holds_back_what_follows_a_healed_delay() -> None:
    """After 2 s of extra delay the next message waits behind those under way, if order is kept."""
    model = LinkModel(SEED, link(Effect(0.020, order="kept")))

    model.apply(0, words(delay="2 s"))
    assert model.draw(0, 0, 1.0) == 3.0
    model.heal(0)

    assert model.draw(1, 0, 1.5) == 3.0
    assert model.draw(2, 0, 4.0) == 4.020


def test_a_fault_at_time_zero_holds_for_the_first_message() -> None:
    model = LinkModel(SEED, link(Effect(0.020)))

    model.apply(0, words(delay="1 s"))

    assert model.draw(0, 0, 0.0) == 1.0


def test_a_healed_link_leaves_others_alone() -> None:
    one, other = (
        LinkModel(SEED, link(Effect(0.020))),
        LinkModel(SEED, link(Effect(0.020), target="eu/leaf-1")),
    )
    one.apply(0, words(delay="1 s"))
    other.apply(0, words(delay="1 s"))

    one.heal(0)

    assert one.draw(0, 0, 0.0) == 0.020
    assert other.draw(0, 0, 0.0) == 1.0


def test_healing_twice_or_what_never_held_is_harmless() -> None:
    model = LinkModel(SEED, link(Effect(0.020)))
    model.apply(1, words(loss="100 %"))

    model.heal(0)
    assert model.draw(0, 0, 0.0) is None
    model.heal(1)
    model.heal(1)

    assert model.draw(0, 0, 0.0) == 0.020


FAULTS = {
    0: words(delay="1 s"),
    1: words(loss="50 %", delay="2 s"),
    2: words(jitter={"normal": "5 ms"}),
    3: words(order="kept", loss="0 %"),
}


@given(st.permutations(list(FAULTS)), st.permutations(list(FAULTS)), st.sets(st.sampled_from(list(FAULTS))))
def test_faults_come_and_heal_in_any_order(applied: list[int], healed: list[int], left: set[int]) -> None:
    """The effect is that of the faults still at work in the order of their numbers; with none left, the base."""
    base = Effect(0.020, NORMAL, 0.1)
    model = LinkModel(SEED, link(base))

    for fault in applied:
        model.apply(fault, FAULTS[fault])
    for fault in healed:
        if fault not in left:
            model.heal(fault)

    expected = base
    for fault in sorted(left):
        expected = expected.changed(FAULTS[fault])
    assert model.effect == expected
    fresh = LinkModel(SEED, link(expected))
    assert [model.draw(i, 0, 0.0) for i in range(20)] == [fresh.draw(i, 0, 0.0) for i in range(20)]


# --- the receiver's half ------------------------------------------------------------------------------------


def test_messages_under_way_keep_their_release_when_the_link_changes() -> None:
    model, line = LinkModel(SEED, link(Effect(0.020))), DelayLine()
    release_at_s = model.draw(0, 0, 0.0)
    assert release_at_s is not None
    line.put(0, request(0), release_at_s)

    model.apply(0, words(delay="5 s"))
    line.put(0, request(1), model.draw(1, 0, 0.001) or 0.0)

    assert line.take_due(0.020) == [(0.020, 0, request(0))]
    assert line.next_release_s() == 5.001


def test_nothing_is_released_early() -> None:
    line = DelayLine()
    assert line.next_release_s() == math.inf
    line.put(3, request(0), 1.0)

    assert line.take_due(math.nextafter(1.0, 0.0)) == []
    assert line.next_release_s() == 1.0
    assert line.take_due(1.0) == [(1.0, 3, request(0))]
    assert line.take_due(9.0) == []


def test_equal_deadlines_keep_the_order_of_arrival() -> None:
    """Across links, sections and single messages, also when part of a section has been taken before."""
    line = DelayLine()
    line.put_section(1, [0.5, 1.0, 1.0], [request(0), request(1), request(2)])
    line.put(2, request(3), 1.0)
    line.put_section(3, [1.0, 1.0], [request(4), request(5)])
    assert line.take_due(0.5) == [(0.5, 1, request(0))]
    line.put(1, request(6), 1.0)

    assert [message[0] for _, _, message in line.take_due(1.0)] == [1, 2, 3, 4, 5, 6]


def test_a_section_that_jitter_left_unsorted_is_released_in_order() -> None:
    line = DelayLine()

    line.put_section(0, [0.3, 0.1, 0.2, 0.1], [request(i) for i in range(4)])

    assert line.next_release_s() == 0.1
    assert [message[0] for _, _, message in line.take_due(0.15)] == [1, 3]
    assert line.next_release_s() == 0.2
    assert [message[0] for _, _, message in line.take_due(0.3)] == [2, 0]


def test_an_empty_section_changes_nothing() -> None:
    line = DelayLine()

    line.put_section(0, [], [])

    assert line.next_release_s() == math.inf
    assert line.held() == {}


def test_a_line_of_20_ms_carries_100_messages_a_second_without_falling_behind() -> None:
    """A line that receives, sleeps and forwards carries one message per delay: 50/s here, and lags 1.3 s in the end."""
    line, lateness_s, arrivals_s = DelayLine(), [], [i * 0.010 for i in range(400)]
    pending = list(enumerate(arrivals_s))

    while pending or line.held():
        now_s = min(pending[0][1] if pending else math.inf, line.next_release_s())
        while pending and pending[0][1] <= now_s:
            i, at_s = pending.pop(0)
            line.put(0, request(i), at_s + 0.020)
        lateness_s += [now_s - release_at_s for release_at_s, _, _ in line.take_due(now_s)]

    assert lateness_s == [0.0] * 400


def test_thousands_under_way_have_no_limit() -> None:
    """One second of delay at 20,000 messages a second keeps 20,000 under way; some injectors drop beyond 1,000."""
    line = DelayLine()
    for i in range(20_000):
        line.put(i % 3, request(i), 1.0 + i * 5e-5)

    assert sum(line.held().values()) == 20_000
    assert [message[0] for _, _, message in line.take_due(3.0)] == list(range(20_000))


def test_held_counts_by_link_what_has_not_been_taken() -> None:
    line = DelayLine()
    line.put_section(4, [0.1, 0.2, 0.3], [request(i) for i in range(3)])
    line.put(7, request(3), 0.5)

    line.take_due(0.2)

    assert line.held() == {4: 1, 7: 1}


releases = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])
steps = st.one_of(
    st.tuples(st.just("section"), st.lists(releases, min_size=1, max_size=5)),
    st.tuples(st.just("take"), releases),
)


@given(st.lists(steps, max_size=20))
def test_a_delay_line_behaves_as_a_list_sorted_by_release_and_arrival(
    happenings: list[tuple[str, object]],
) -> None:
    line, waiting, number = DelayLine(), [], 0
    for what, value in happenings:
        if isinstance(value, list):
            messages = [request(number + i) for i in range(len(value))]
            if len(value) == 1:
                line.put(0, messages[0], value[0])
            else:
                line.put_section(0, list(value), messages)
            waiting += [
                (release_at_s, 0, message) for release_at_s, message in zip(value, messages, strict=True)
            ]
            number += len(value)
        else:
            assert what == "take"
            assert isinstance(value, float)
            due = sorted(
                (each for each in waiting if each[0] <= value), key=lambda each: (each[0], each[2][0])
            )
            assert line.take_due(value) == due
            waiting = [each for each in waiting if each[0] > value]
        assert line.next_release_s() == min((each[0] for each in waiting), default=math.inf)
        assert sum(line.held().values()) == len(waiting)


@pytest.mark.parametrize(
    "effect", [Effect(0.020), Effect(0.020, NORMAL), Effect(0.020, loss=0.5, order="kept")]
)
def test_release_is_never_before_sending(effect: Effect) -> None:
    model = LinkModel(SEED, link(effect))

    drawn = [(i, model.draw(i, 0, float(i))) for i in range(200)]

    assert all(release_at_s is None or release_at_s >= i for i, release_at_s in drawn)
