"""What links promise, and what senders and receivers make of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from testbed.roles.environment import Environment
from testbed.roles.messages import Reply, Request
from testbed.runtime.lookahead import MOST_HELD_S, MOST_UNREAD_S, TRANSPORT_S, Lookahead
from tests.runtime.fake_sockets import TEXT, Hosted, pair_world

pytestmark = pytest.mark.interpreted

ROOT, LEAF, SERVER = "root.r", "a/leaf-1", "a/server-1"
ALL_SLOW = TEXT + "  - {from: '*', to: '*', delay: 5 ms}\n"


def promises(links: str, faults: str = "") -> Callable[[str, str], tuple[float, float]]:
    """(held, unread) of the request path between two nodes, with further lines of links and faults."""
    world = pair_world(text=TEXT + links + faults)
    lookahead = Lookahead(world.scenario, world.topology)

    def of(source: str, target: str) -> tuple[float, float]:
        found = [
            each
            for each in world.topology.links
            if (each.source, each.target, each.path) == (source, target, "request")
        ]
        return lookahead.held_s(found), lookahead.unread_s(found)

    return of


def test_a_link_without_delay_promises_nothing() -> None:
    """Nor does one that is no slower than the transport."""
    of = promises("  - {from: '*/leaf-*', to: '*/server-*', delay: 0.5 ms}\n")

    assert of(LEAF, SERVER) == (0.0, 0.0)


def test_sender_and_receiver_share_what_the_transport_leaves() -> None:
    """Of 3 ms beyond the transport, two fifths and a half: together less than all."""
    of = promises("  - {from: '*/leaf-*', to: '*/server-*', delay: 3 ms}\n")

    held_s, unread_s = of(LEAF, SERVER)

    assert held_s == pytest.approx(0.4 * (0.003 - TRANSPORT_S))
    assert unread_s == pytest.approx((0.003 - TRANSPORT_S) / 2)


def test_long_delays_promise_no_more_than_the_bounds() -> None:
    """A process has to hear the launcher, and a pause must not catch much unsent."""
    of = promises("  - {from: root.*, to: cell.*, delay: 2 s}\n")

    assert of(ROOT, LEAF) == (MOST_HELD_S, MOST_UNREAD_S)


def test_jitter_counts_with_the_delay_that_hardly_a_message_undercuts() -> None:
    """Normal jitter reaches down to 0 once in a million here; uniform jitter has an end."""
    normal = promises("  - {from: root.*, to: cell.*, delay: 5 ms, jitter: {normal: 2 ms}}\n")
    uniform = promises("  - {from: root.*, to: cell.*, delay: 5 ms, jitter: {uniform: 2 ms}}\n")

    assert normal(ROOT, LEAF) == (0.0, 0.0)
    assert (
        promises("  - {from: root.*, to: cell.*, jitter: {normal: 2 ms}}\n")(ROOT, LEAF)[1] == MOST_UNREAD_S
    )
    assert uniform(ROOT, LEAF)[1] == pytest.approx((0.003 - TRANSPORT_S) / 2, rel=1e-3)


def test_a_link_that_a_fault_touches_promises_nothing() -> None:
    """The fault may take its delay away."""
    of = promises(
        "", "faults: [{at: 0.5 s, link: {from: root.*, to: cell.*, path: request}, set: {delay: 0 ms}}]\n"
    )

    assert of(ROOT, LEAF) == (0.0, 0.0)


def test_messages_of_several_passes_go_in_one_frame_while_their_links_leave_time(tmp_path: Path) -> None:
    """Two questions 0.5 ms apart over 20 ms: one frame, sent when no pass would come in time any more."""

    def on_start(env: Environment) -> None:
        env.set_timer("1", 0.0100)
        env.set_timer("2", 0.0105)
        env.set_timer("3", 0.0500)

    def react(env: Environment, what: object) -> None:
        env.send(LEAF, Request(int(str(what)), 0, 0, 1, 1))

    hosted = Hosted(tmp_path, ROOT, pair_world(dating="due"), on_start=on_start, react=react)

    hosted.run(0.1)

    releases = [section[1] for _, frame in hosted.sockets.sent for section in frame]
    assert releases == [pytest.approx([0.030, 0.0305]), pytest.approx([0.070])]


def test_a_busy_process_sleeps_through_frames_and_still_handles_them_in_time(tmp_path: Path) -> None:
    """Timers every millisecond: frames that come meanwhile wake nobody, and nothing in them is late."""

    def on_start(env: Environment) -> None:
        for i in range(50):
            env.set_timer(f"t{i}", 0.001 * i)

    hosted = Hosted(tmp_path, LEAF, pair_world(text=ALL_SLOW, dating="actual"), on_start=on_start)
    number = hosted.link(ROOT, LEAF, "request")
    came_s = [0.0102 + 0.003 * i for i in range(10)]
    for i, at_s in enumerate(came_s):
        hosted.come(at_s, (number, Request, [at_s + 0.004], [Request(i, 0, 0, 1, 1)]))

    told = hosted.run(0.060)

    handled_s = [at_s for at_s, what in told if isinstance(what, Request)]
    assert handled_s == pytest.approx([at_s + 0.004 for at_s in came_s])
    assert not set(came_s) & set(hosted.sockets.waits), "no wait ended with the coming of a frame"
    assert len(hosted.sockets.sleeps) > 30


def test_after_an_unforeseen_change_everything_goes_and_is_read_at_once(tmp_path: Path) -> None:
    """What a hand does to a running link may take away the delay that the scenario gave it."""

    def on_start(env: Environment) -> None:
        env.set_timer("1", 0.0100)
        env.set_timer("2", 0.0105)

    def react(env: Environment, what: object) -> None:
        env.send(LEAF, Request(int(str(what)), 0, 0, 1, 1))

    hosted = Hosted(tmp_path, ROOT, pair_world(dating="due"), on_start=on_start, react=react)
    hosted.host.forget_lookahead()

    hosted.run(0.1)

    assert len(hosted.sockets.sent) == 2


def test_replies_count_as_well(tmp_path: Path) -> None:
    """A link back without delay keeps its sender from gathering."""

    def on_start(env: Environment) -> None:
        env.set_timer("1", 0.0100)
        env.set_timer("2", 0.0102)

    def react(env: Environment, what: object) -> None:
        env.send(ROOT, Reply(int(str(what)), 0, 0, 0.0, 0, 0))

    hosted = Hosted(tmp_path, LEAF, pair_world(dating="due"), on_start=on_start, react=react)

    hosted.run(0.1)

    assert len(hosted.sockets.sent) == 2
