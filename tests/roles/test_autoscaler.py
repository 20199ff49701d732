"""An autoscaler: what it wants, when it acts, and which servers it takes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from testbed.roles.autoscaler import Autoscaler, ReportTap, wanted_servers
from testbed.roles.messages import Report, Rotation
from testbed.scenario.resilience_words import AutoscalerWords
from testbed.scenario.schema import Cell
from testbed.serving.rate_curve import RateCurve
from tests.roles.fake_environment import FakeEnvironment
from tests.roles.test_health import Listener

SERVERS = [f"us/server-{i}" for i in range(1, 9)]


def make(env, **words):
    tap, leaf = ReportTap(env), Listener()
    words = AutoscalerWords(**{"in_flight": 4.0, "every": "1 s", "start": 2, **words})
    scaler = Autoscaler(leaf, tap, "us", "us/leaf-1", SERVERS, words, RateCurve(0.1, 0.01, 50), 0.5)
    scaler.start()
    return scaler, tap, leaf


def look(env, scaler, tap, in_flight, queued=0):
    """One look, with so many requests in flight as last reported."""
    report = Report(
        0, 0, env.at_s, queued, in_flight - queued, (in_flight,), 0, 0, 0, 0.0, 1.0, 0.1, 0.1, 0.0
    )
    tap.send("root.a", report)
    at_s = env.timers.pop("scale")
    while env.timers.get("scale:ready", at_s + 1) <= at_s:
        env.at_s = env.timers.pop("scale:ready")
        scaler.on_timer("scale:ready")
    env.at_s = at_s
    scaler.on_timer("scale")


def in_use(leaf):
    inside = set(SERVERS)
    for each in leaf.heard[1:]:
        assert isinstance(each[1], Rotation)
        (inside.add if each[1].inside else inside.discard)(each[1].target)
    return len(inside)


def counts(env):
    """(wanted, in use, starting) at each look."""
    return [row[4:] for row in env.rows_of("scalings")]


def test_it_begins_with_the_servers_of_the_start():
    env = FakeEnvironment()
    _, _, leaf = make(env, start=3)

    assert leaf.heard[0] == "start"
    assert [each[1] for each in leaf.heard[1:]] == [Rotation(name, False, "scaling") for name in SERVERS[3:]]


def test_servers_change_by_the_ratio_of_measurement_and_target():
    env = FakeEnvironment()
    scaler, tap, leaf = make(env)
    look(env, scaler, tap, 20)  # 10 a server against 4
    assert in_use(leaf) == 5
    look(env, scaler, tap, 9)  # 1.8 a server
    assert in_use(leaf) == 3
    assert env.rows_of("scalings")[0][:4] == ("us", 0.5, 0.5, 10.0)


@pytest.mark.parametrize(
    ("target", "expected"),
    [({"queued": 2.0, "in_flight": None}, 6), ({"utilisation": "50 %", "in_flight": None}, 2)],
)
def test_the_measure_is_that_of_the_target(target, expected):
    """12 queued on 2 servers; at 8 a server the curve is at 8 / (0.1 + 0.08) of 1 / 0.012 a second, 53 %."""
    env = FakeEnvironment()
    scaler, tap, leaf = make(env, **target)
    look(env, scaler, tap, 16, queued=12)

    assert in_use(leaf) == expected


def test_a_measurement_is_acted_upon_when_it_is_as_old_as_the_reaction():
    env = FakeEnvironment()
    scaler, tap, _ = make(env, reaction="2 s")
    for in_flight in (16, 8, 8, 8):
        look(env, scaler, tap, in_flight)

    assert counts(env) == [(2, 2, 0), (2, 2, 0), (4, 4, 0), (4, 4, 0)]


def test_a_server_starts_up_before_it_is_used_and_is_given_back_first():
    env = FakeEnvironment()
    scaler, tap, leaf = make(env, start_up="2500 ms")
    look(env, scaler, tap, 16)  # wants 4
    look(env, scaler, tap, 5)  # 2.5 a server of 4 there: wants 3
    assert counts(env) == [(4, 2, 2), (3, 2, 1)]
    look(env, scaler, tap, 8)
    look(env, scaler, tap, 12)

    assert counts(env)[2:] == [(3, 2, 1), (3, 3, 0)]
    assert in_use(leaf) == 3


def test_after_a_change_there_is_none_for_the_cooldown():
    env = FakeEnvironment()
    scaler, tap, _ = make(env, cooldown="3 s")
    for in_flight in (16, 64, 64, 64):
        look(env, scaler, tap, in_flight)

    assert [row[1] for row in counts(env)] == [4, 4, 4, 8]


def test_it_goes_down_only_to_the_most_that_was_wanted_of_late():
    env = FakeEnvironment()
    scaler, tap, _ = make(env, start=6, down_after="2 s")
    for in_flight in (24, 20, 8, 8, 8, 8):
        look(env, scaler, tap, in_flight)

    assert [row[1] for row in counts(env)] == [6, 6, 6, 5, 2, 2]


@given(
    servers=st.integers(1, 40),
    measured=st.floats(0, 1e4),
    target=st.floats(0.1, 100),
    tolerance=st.integers(0, 50),
)
def test_what_is_wanted_lies_within_the_bounds_and_never_falls_as_load_rises(
    servers, measured, target, tolerance
):
    words = AutoscalerWords(in_flight=target, min=2, tolerance=f"{tolerance} %")
    inside = min(max(servers, 2), 30)
    wanted = wanted_servers(inside, measured, words, 30)

    assert 2 <= wanted <= 30
    assert wanted <= wanted_servers(inside, 2 * measured + 1, words, 30)
    assert wanted_servers(inside, target, words, 30) == inside


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({}, "one of in_flight, queued, utilisation"),
        ({"in_flight": 4.0, "queued": 1.0}, "in_flight and queued are given"),
        ({"in_flight": 4.0, "min": 5, "max": 4}, "max, 4, is below min, 5"),
        ({"in_flight": 4.0, "min": 5, "start": 4}, "start, 4, is not between min, 5, and max"),
    ],
)
def test_words_that_do_not_fit_are_refused(words, message):
    with pytest.raises(ValidationError, match=message):
        AutoscalerWords(**words)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"autoscaler": {"in_flight": 4.0, "max": 9}}, "numbers up to that of the servers"),
        ({"autoscaler": {"in_flight": 4.0}, "leaf": {"count": 2}}, "an autoscaler does not go with 2 leaves"),
    ],
)
def test_a_cell_that_does_not_fit_its_autoscaler_is_refused(words, message):
    with pytest.raises(ValidationError, match=message):
        Cell(servers=8, service={"slots": 1, "fixed": "1 s"}, **words)
