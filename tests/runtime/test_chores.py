"""When a live process does its chores: beats, rows, full tables of its log."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from testbed.record.log import read_log
from testbed.roles.environment import Environment
from testbed.roles.messages import Request
from testbed.runtime.chores import BEAT_S, PATIENCE_S, QUIET_S
from tests.runtime.fake_sockets import Hosted, pair_world

pytestmark = pytest.mark.interpreted

ROOT, LEAF = "root.r", "a/leaf-1"


def first_beat_s(folder: Path) -> float:
    """Of a leaf that nothing happens to."""
    folder.mkdir()
    hosted = Hosted(folder, LEAF, pair_world())
    hosted.run(2.0)
    return hosted.beats[0].at_s


def beats_beside(folder: Path, releases_s: list[float]) -> tuple[list[float], int]:
    """The instants of the beats of a leaf that is handed requests at these instants, and how often it waited or slept."""
    folder.mkdir()
    hosted = Hosted(folder, LEAF, pair_world())
    number = hosted.link(ROOT, LEAF, "request")
    requests = [Request(i, 0, 0, 1, 1) for i in range(len(releases_s))]
    hosted.come(0.001, (number, Request, releases_s, requests))
    told = hosted.run(2.0)
    assert [at_s for at_s, _ in told] == pytest.approx(releases_s)
    return [beat.at_s for beat in hosted.beats], len(hosted.sockets.waits) + len(hosted.sockets.sleeps)


def test_a_chore_waits_for_what_is_due_soon_without_waking_the_process(tmp_path: Path) -> None:
    alone_s = first_beat_s(tmp_path / "alone")
    soon_s = alone_s + QUIET_S / 2

    beats_s, waits = beats_beside(tmp_path / "soon", [soon_s])
    later_s, more_waits = beats_beside(tmp_path / "later", [alone_s + 2 * QUIET_S])

    assert beats_s[0] == pytest.approx(soon_s)
    assert later_s[0] == pytest.approx(alone_s)
    assert more_waits == waits + 1


def test_a_chore_waits_no_longer_than_its_patience(tmp_path: Path) -> None:
    """Requests follow each other at less than the quiet that a chore is to have."""
    alone_s = first_beat_s(tmp_path / "alone")
    releases_s = [alone_s + i * QUIET_S / 2 for i in range(-10, 100)]

    beats_s, _ = beats_beside(tmp_path / "busy", releases_s)

    assert beats_s[0] - alone_s == pytest.approx(PATIENCE_S, abs=QUIET_S / 2)


def test_a_full_table_waits_for_a_quiet_instant_too(tmp_path: Path) -> None:
    on_disk: list[int] = []

    def react(env: Environment, what: object) -> None:
        env.record("late_replies", (0, 0, 0.0))
        on_disk.append(len(read_log(hosted.path).rows("late_replies")))

    log = {"rows_per_chunk": 4, "most_chunks": 8}
    hosted = Hosted(tmp_path, LEAF, pair_world(), react=react, log=log)
    releases_s = [0.010 + i * QUIET_S / 2 for i in range(6)] + [0.1]
    requests = [Request(i, 0, 0, 1, 1) for i in range(len(releases_s))]
    hosted.come(0.001, (hosted.link(ROOT, LEAF, "request"), Request, releases_s, requests))

    hosted.run(0.2)

    assert on_disk == [0] * 6 + [6]


def test_chores_fall_ever_elsewhere_between_periods_that_people_write(tmp_path: Path) -> None:
    """In half a minute they meet every part of a period of 100, 50 or 20 ms, and none more than a fifth of the time."""
    hosted = Hosted(tmp_path, LEAF, pair_world(duration=40))
    hosted.run(35.0)
    beats_s = [beat.at_s for beat in hosted.beats]

    assert len(beats_s) > 30
    assert max(b - a for a, b in pairwise(beats_s)) < 1.1 * BEAT_S
    for period_s in (0.1, 0.05, 0.02):
        tenths = [int(10 * (at_s % period_s) / period_s) for at_s in beats_s]
        assert max(tenths.count(tenth) for tenth in range(10)) <= len(beats_s) / 5
