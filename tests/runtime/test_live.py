"""The loop of a live process, with fake sockets and a clock that moves only while it waits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from testbed.record.log import LogWriter, read_log
from testbed.roles.environment import Environment
from testbed.roles.messages import Cancel, Reply, Request
from testbed.runtime import accounts
from testbed.runtime.live import MOST_EMPTY_PASSES, Host
from testbed.runtime.wire import Start
from tests.runtime.fake_sockets import TEXT, DeadError, FakeSockets, Hosted, ToldRole, pair_world

pytestmark = pytest.mark.interpreted

ROOT, LEAF, SERVER = "root.r", "a/leaf-1", "a/server-1"


def request(number: int) -> Request:
    return Request(number, 0, 0, 1, 1)


def reply(number: int) -> Reply:
    return Reply(number, 0, 0, 0.0, 0, 0)


def hosted_leaf(folder: Path, **given: Any) -> Hosted:
    role = {key: given.pop(key) for key in ("on_start", "react") if key in given}
    return Hosted(folder, LEAF, pair_world(**given), **role)


def test_messages_and_timers_are_handled_in_the_order_in_which_they_are_due(tmp_path: Path) -> None:
    """A message that came first but is released later waits; equal instants put the message first."""

    def on_start(env: Environment) -> None:
        env.set_timer("at 30", 0.030)
        env.set_timer("at 20", 0.020)

    hosted = hosted_leaf(tmp_path, on_start=on_start)
    number = hosted.link(ROOT, LEAF, "request")
    hosted.come(0.001, (number, Request, [0.025, 0.030], [request(1), request(2)]))
    hosted.come(0.002, (number, Request, [0.010], [request(3)]))

    told = hosted.run(0.1)

    assert [what for _, what in told] == [request(3), "at 20", request(1), request(2), "at 30"]
    assert [at_s for at_s, _ in told] == pytest.approx([0.010, 0.020, 0.025, 0.030, 0.030])


def test_a_timer_set_by_a_handler_fires_before_later_messages_of_the_same_pass(tmp_path: Path) -> None:
    """The pass is late and finds two messages due: a timer due between them is not passed over."""

    def react(env: Environment, what: object) -> None:
        if what == request(1):
            env.set_timer("between", 0.011)

    hosted = hosted_leaf(tmp_path, react=react, dating="due")
    number = hosted.link(ROOT, LEAF, "request")
    hosted.come(0.050, (number, Request, [0.010, 0.012], [request(1), request(2)]))

    told = hosted.run(0.1)

    assert told == [(0.010, request(1)), (0.011, "between"), (0.012, request(2))]


@pytest.mark.parametrize(
    ("dating", "expected_s"), [("due", [0.010, 0.030, 0.030]), ("actual", [0.010, 0.030, 0.040])]
)
def test_now_is_the_clock_or_what_was_due_and_never_goes_back(
    tmp_path: Path, dating: str, expected_s: list[float]
) -> None:
    """Story: a message that reaches the process 20 ms after its release, behind one that was released later."""
    hosted = hosted_leaf(tmp_path, dating=dating)
    number = hosted.link(ROOT, LEAF, "request")
    hosted.come(0.001, (number, Request, [0.010, 0.030], [request(1), request(2)]))
    hosted.come(0.040, (number, Request, [0.020], [request(3)]))

    told = hosted.run(0.1)

    assert [what for _, what in told] == [request(1), request(2), request(3)]
    assert [at_s for at_s, _ in told] == pytest.approx(expected_s)


def test_a_message_that_comes_after_its_release_is_an_inversion_and_is_late(tmp_path: Path) -> None:
    """Lateness is the instant of handling less that of release, in either dating; every message is counted once."""
    hosted = hosted_leaf(tmp_path, dating="due")
    number = hosted.link(ROOT, LEAF, "request")
    hosted.come(0.001, (number, Request, [0.010, 0.030], [request(1), request(2)]))
    hosted.come(0.040, (number, Request, [0.020], [request(3)]))

    hosted.run(0.1)
    hosted.host.close()

    row = next(row for row in read_log(hosted.path).rows("delivered") if row[0] == number)
    assert row[2:4] == (3, 1)
    assert row[4] == pytest.approx(0.020)
    assert row[5] == pytest.approx(0.020)
    assert sum(row[6]) == 3


def test_a_pass_sends_one_frame_to_each_peer_with_a_section_for_each_run_of_a_kind(tmp_path: Path) -> None:
    """Two answers and two questions of one pass: two frames; a cancellation stays behind the request before it."""

    def react(env: Environment, what: object) -> None:
        if what == request(1):
            env.send(SERVER, request(1))
            env.send(ROOT, reply(1))
            env.send(SERVER, Cancel(1, 0))
            env.send(SERVER, request(2))
            env.send(ROOT, reply(2))

    hosted = hosted_leaf(tmp_path, react=react)
    hosted.come(0.001, (hosted.link(ROOT, LEAF, "request"), Request, [0.010], [request(1)]))

    hosted.run(0.1)

    assert [peer for peer, _ in hosted.sockets.sent] == [SERVER, ROOT]
    sections = {peer: [messages for _, _, messages in frame] for peer, frame in hosted.sockets.sent}
    assert sections == {SERVER: [[request(1)], [Cancel(1, 0)], [request(2)]], ROOT: [[reply(1), reply(2)]]}


def test_links_count_from_what_now_says(tmp_path: Path) -> None:
    """With `dating: due` the release of an answer is the due instant of its cause plus the delay, to the bit."""

    def on_start(env: Environment) -> None:
        env.set_timer("ask", 0.25)

    def react(env: Environment, what: object) -> None:
        env.send(LEAF, request(1))

    hosted = Hosted(tmp_path, ROOT, pair_world(dating="due"), on_start=on_start, react=react)

    hosted.run(0.5)

    assert hosted.sockets.sent == [
        (LEAF, [(hosted.link(ROOT, LEAF, "request"), [0.25 + 0.020], [request(1)])])
    ]


def test_a_message_without_a_link_is_an_error_that_names_its_ends(tmp_path: Path) -> None:
    """A root has no link to a server."""
    hosted = Hosted(tmp_path, ROOT, pair_world())

    with pytest.raises(RuntimeError, match=r"root\.r: no link carries Cancel.* to a/server-1"):
        hosted.role.env.send(SERVER, Cancel(1, 0))


def test_a_replaced_or_cancelled_timer_does_not_fire(tmp_path: Path) -> None:
    """The last setting of a name holds."""

    def on_start(env: Environment) -> None:
        env.set_timer("a", 0.010)
        env.set_timer("a", 0.030)
        env.set_timer("b", 0.020)
        env.cancel_timer("b")

    hosted = hosted_leaf(tmp_path, on_start=on_start, dating="due")

    assert hosted.run(0.1) == [(0.030, "a")]


FAULTS = """
faults:
  - {at: 0 s, for: 0.5 s, link: {from: root.*, to: cell.*, path: request}, set: {delay: 100 ms}}
"""


def test_a_fault_at_time_0_holds_for_the_first_message_and_heals_at_its_instant(tmp_path: Path) -> None:
    """The message at 0.5 s, the very instant of healing, has the scenario's delay again."""

    def on_start(env: Environment) -> None:
        env.send(LEAF, request(0))
        env.set_timer("ask", 0.5)

    def react(env: Environment, what: object) -> None:
        env.send(LEAF, request(1))

    world = pair_world(text=TEXT + FAULTS, dating="due")
    hosted = Hosted(tmp_path, ROOT, world, on_start=on_start, react=react)

    hosted.run(0.9)
    hosted.host.close()

    releases = [
        release for _, frame in hosted.sockets.sent for _, releases, _ in frame for release in releases
    ]
    assert releases == [0.1, 0.520]
    assert [row[:4] for row in read_log(hosted.path).rows("applied")] == [
        (0, ROOT, False, 0.0),
        (0, ROOT, True, 0.5),
    ]


STOPPED = """
faults:
  - {at: 0.1 s, leaf: a/leaf-1, set: {pause: true}}
  - {at: 0.2 s, for: 0.1 s, leaf: a/leaf-1, set: {gauge_offset: 1}}
  - {at: 0.4 s, leaf: a/leaf-1, set: {leak: 10 %}}
  - {at: 0.9 s, leaf: a/leaf-1, set: {leak: 20 %}}
"""


def test_a_process_that_is_stopped_until_the_run_ends_makes_what_fell_due_meanwhile(tmp_path: Path) -> None:
    """It goes on, hears that the run is over, and says of each fault when it was made; not of one that is yet to come."""
    hosted = hosted_leaf(tmp_path, text=TEXT + STOPPED)
    hosted.woken_at_s = 0.8

    hosted.host.run(Start(0.0), hosted.beats.append, {})
    hosted.host.stop()
    hosted.host.close()

    assert [(fault, healed, at_s) for fault, _, healed, _, at_s in read_log(hosted.path).rows("applied")] == [
        (0, False, 0.1),
        (1, False, 0.8),
        (1, True, 0.8),
        (2, False, 0.8),
        (2, True, 0.8),
        (0, True, 0.8),
    ]


KILLED = """
faults:
  - {at: 0.1 s, leaf: a/leaf-1, set: {kill: true}}
"""


def test_what_is_due_after_a_death_is_still_held_however_late_the_pass(tmp_path: Path) -> None:
    """A pass at 0.5 s finds a message before the death at 0.1 s, one at that instant and one after it."""

    def react(env: Environment, what: object) -> None:
        if what == request(0):
            hosted.sockets.now_s = 0.5  # it took so long

    hosted = hosted_leaf(tmp_path, text=TEXT + KILLED, react=react)
    number = hosted.link(ROOT, LEAF, "request")
    hosted.come(0.01, (number, Request, [0.05, 0.09, 0.1, 0.11], [request(i) for i in range(4)]))

    with pytest.raises(DeadError):
        hosted.run(0.9)

    assert [what for _, what in hosted.role.told] == [request(0), request(1), request(2)]
    assert hosted.host.received_ledger().received[number] == (3, 1)


def test_the_ledger_accounts_for_every_message_received(tmp_path: Path) -> None:
    """Delivered and still held make up what came, also what comes while the process settles."""
    hosted = hosted_leaf(tmp_path)
    number = hosted.link(ROOT, LEAF, "request")
    hosted.come(0.001, (number, Request, [0.010, 5.0], [request(1), request(2)]))
    hosted.come(0.150, (number, Request, [0.120], [request(3)]))

    hosted.run(0.1)
    hosted.host.stop()
    hosted.host.settle({number: 3}, hosted.sockets.now_s + 2.0)

    assert hosted.role.stopped
    assert hosted.host.received_ledger().received[number] == (1, 2)
    assert hosted.sockets.now_s == pytest.approx(0.150)


def test_settling_ends_when_what_is_missing_does_not_come(tmp_path: Path) -> None:
    """A message that was lost on the way is waited for no longer than agreed."""
    hosted = hosted_leaf(tmp_path)
    hosted.run(0.1)

    hosted.host.settle({hosted.link(ROOT, LEAF, "request"): 1}, hosted.sockets.now_s + 2.0)

    assert hosted.sockets.now_s == pytest.approx(2.1)


def test_a_loop_that_turns_for_nothing_is_found(tmp_path: Path) -> None:
    """A pass that delivers nothing, fires nothing and does not wait is a bug: here the wait comes back at once."""
    hosted = hosted_leaf(tmp_path)
    hosted.sockets.stuck = True

    with pytest.raises(RuntimeError, match=f"{MOST_EMPTY_PASSES + 1} passes in a row"):
        hosted.run(0.1)


def test_spaced_passes_never_begin_sooner_than_the_spacing(tmp_path: Path) -> None:
    """Timers 0.1 ms apart with a spacing of 1 ms: ten of them to a pass, each at most 1 ms late."""
    instants_s = [0.010 + i * 1e-4 for i in range(100)]

    def on_start(env: Environment) -> None:
        for i, at_s in enumerate(instants_s):
            env.set_timer(f"{i}", at_s)

    world = pair_world()
    live = world.scenario.live.model_copy(update={"pass_spacing": 0.001})
    hosted = Hosted(tmp_path, LEAF, pair_world(live=live), on_start=on_start)

    told = hosted.run(0.1)

    late_s = [at_s - due_s for (at_s, _), due_s in zip(told, instants_s, strict=True)]
    assert min(late_s) >= -1e-9
    assert max(late_s) <= 0.001 + 1e-9
    assert len({at_s for at_s, _ in told}) <= 12


def test_a_full_table_of_the_log_is_written_once_the_pass_has_sent_its_frames(tmp_path: Path) -> None:
    """Rows that make a chunk full in the middle of a pass are not on disk before its frame has gone."""
    on_disk: list[int] = []

    def react(env: Environment, what: object) -> None:
        if what == request(1):
            for number in range(5):
                env.record("late_replies", (number, 0, 0.0))
            env.send(ROOT, reply(1))
        on_disk.append(len(read_log(hosted.path).rows("late_replies")))

    log = {"rows_per_chunk": 4, "most_chunks": 2}
    hosted = Hosted(tmp_path, LEAF, pair_world(), react=react, log=log)
    hosted.sockets.on_send = lambda: on_disk.append(len(read_log(hosted.path).rows("late_replies")))
    number = hosted.link(ROOT, LEAF, "request")
    hosted.come(0.001, (number, Request, [0.010, 0.020], [request(1), request(2)]))

    hosted.run(0.1)

    assert on_disk == [0, 0, 5]


def rows_of_links(folder: Path, most_at_once: int, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, list[int]]:
    """Counts per link of two seconds in which a leaf takes and passes on a request each 50 ms, and passes per row."""
    monkeypatch.setattr(accounts, "MOST_AT_ONCE", most_at_once)
    folder.mkdir()

    def react(env: Environment, what: object) -> None:
        env.send(SERVER, what)
        env.send(ROOT, reply(what[0]))

    hosted = Hosted(folder, LEAF, pair_world(duration=2.5), react=react)
    number = hosted.link(ROOT, LEAF, "request")
    for i in range(40):
        hosted.come(0.05 * i, (number, Request, [0.05 * i + 0.02], [request(i)]))
    hosted.run(2.2)
    hosted.host.close()

    log = read_log(hosted.path)
    totals: dict[tuple[str, int], int] = {}
    for table in ("sent", "delivered"):
        for link, _, count, *_ in log.rows(table):
            totals[table, link] = totals.get((table, link), 0) + count
    return totals, [row[9] for row in log.rows("processes")]


def test_rows_of_many_links_are_written_over_several_passes_and_tell_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    together, passes = rows_of_links(tmp_path / "together", 32, monkeypatch)
    spread, more_passes = rows_of_links(tmp_path / "spread", 1, monkeypatch)

    assert spread == together
    assert sorted(count for count in spread.values() if count) == [40, 40, 40]
    assert len(more_passes) == len(passes)
    assert sum(more_passes) > sum(passes) + len(passes)


def test_beats_tell_gauges_and_lateness(tmp_path: Path) -> None:
    """The worst of two messages, 0 and 20 ms late, stands in the beat, at most 5 % too high."""
    hosted = hosted_leaf(tmp_path)
    number = hosted.link(ROOT, LEAF, "request")
    hosted.come(0.001, (number, Request, [0.010], [request(1)]))
    hosted.come(0.040, (number, Request, [0.020], [request(2)]))

    hosted.run(1.0)

    beat = hosted.beats[0]
    assert (beat.node, beat.gauges, beat.idle) == (LEAF, {LEAF: (2, 0, 0)}, False)
    assert 0.020 <= beat.lateness_max_s <= 0.021


def test_roles_in_one_process_keep_their_link(tmp_path: Path) -> None:
    """What one sends to another skips the sockets and waits for its release all the same."""
    world = pair_world(dating="due")
    sockets = FakeSockets({SERVER: SERVER})
    roles: dict[str, ToldRole] = {}

    def react(env: Environment, what: object) -> None:
        if what == "ask":
            env.send(LEAF, request(1))
        else:
            host.end()

    def make(name: str, world: Any, env: Environment) -> ToldRole:
        roles[name] = ToldRole(env, lambda env: env.set_timer("ask", 0.1) if name == ROOT else None, react)
        return roles[name]

    host = Host("group", world, sockets, lambda: None, sockets.clock)
    for node in (ROOT, LEAF):
        host.add(node, LogWriter(tmp_path / f"{len(roles)}{node[-1]}.log", {}))
    host.build(make)

    host.run(Start(0.0), lambda beat: None, {})

    assert sockets.sent == []
    assert roles[LEAF].told == [(0.1 + 0.020, request(1))]
