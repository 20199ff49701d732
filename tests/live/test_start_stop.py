"""Start, stop and death of real processes; laws and orders only, no timings, so that a busy host passes too."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from testbed.errors import RunError
from testbed.record.log import read_log
from testbed.record.outcome import RunOutcome, load_outcome
from testbed.record.run_folder import ArmFolder
from testbed.runtime.progress import Progress
from testbed.runtime.run_lock import lock
from tests.live.echo_roles import STILLBORN
from tests.live.echo_run import NODES, WAIT_S, alive, group_of, run_echo, start_launcher, wait_for

pytestmark = [pytest.mark.live, pytest.mark.untimed]

GONE_WITHIN_S = 3.0
LONG_S = 300.0  # of a run that the test ends
LAUNCHES = 4  # at once, of five processes each


def noted(path: Path) -> dict[str, Any]:
    """Who is who, as the launcher wrote it; empty while it has not."""
    file = path / "processes.json"
    return json.loads(file.read_text()) if file.exists() else {}


def all_of(path: Path) -> dict[int, int]:
    """All processes of a run, with their start times: those in the nursery's group, and those that the launcher notes."""
    words = noted(path)
    named = {each["pid"]: each["start_ticks"] for each in words.values()}
    return group_of(words["nursery"]["pid"]) | named


@contextmanager
def launcher(
    path: Path, factory: str = "echo", duration_s: float = LONG_S, transport: str = "ipc"
) -> Iterator[subprocess.Popen[bytes]]:
    """A launcher in a process of its own, gone at the end whatever the test does."""
    path.mkdir()
    process = start_launcher(path, factory, duration_s, transport)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def assert_no_gap(outcome: RunOutcome) -> None:
    assert [line for line in outcome.ledger if line.gap] == []


@pytest.mark.parametrize("transport", ["ipc", "tcp"])
def test_a_run_starts_together_drains_and_closes_every_log(tmp_path: Path, transport: str) -> None:
    """Every question is answered, the ledger has a line without a gap for every link, and nothing is left over."""
    seen: list[Progress] = []

    outcome = run_echo(tmp_path, transport=transport, on_progress=seen.append)

    assert (outcome.engine, outcome.drained, outcome.interrupted, outcome.deaths) == ("live", True, False, ())
    assert_no_gap(outcome)
    carried = {(line.source, line.path): line.delivered for line in outcome.ledger}
    assert carried["root.r", "request"] == carried["a/leaf-1", "reply"] == 99
    logs = {node: read_log(ArmFolder(tmp_path).log(node)) for node in NODES}
    assert {node: log.problem for node, log in logs.items()} == dict.fromkeys(NODES)
    assert [log.header["node"] for log in logs.values()] == list(NODES)
    assert logs["root.r"].rows("late_replies")[0][0] == 99
    timed = {node: log.rows("timers") for node, log in logs.items()}
    assert {node: [row[0] for row in rows] for node, rows in timed.items()} == {
        node: [node] for node in NODES
    }
    assert seen
    assert not (tmp_path / "sockets").exists()
    assert group_of(noted(tmp_path)["nursery"]["pid"]) == {}


def test_the_counts_of_the_log_are_those_of_the_ledger(tmp_path: Path) -> None:
    """The rows of every second and the last one add up to what the ends of each link told the launcher."""
    outcome = run_echo(tmp_path, duration_s=1.5)

    folder = ArmFolder(tmp_path)
    sent = [row for node in NODES for row in read_log(folder.log(node)).rows("sent")]
    delivered = [row for node in NODES for row in read_log(folder.log(node)).rows("delivered")]
    for number, line in enumerate(outcome.ledger):
        assert sum(row[2] for row in sent if row[0] == number) == line.sent
        assert sum(row[2] for row in delivered if row[0] == number) == line.delivered
        assert sum(sum(row[6]) for row in delivered if row[0] == number) == line.delivered


def test_a_folder_too_deep_for_sockets_gets_them_elsewhere_and_leaves_nothing(tmp_path: Path) -> None:
    """The path of a socket has 107 bytes on Linux."""
    deep = tmp_path / ("x" * 90)

    outcome = run_echo(deep)

    assert outcome.drained
    assert not (deep / "sockets").exists()


def test_two_runs_never_share_a_folder(tmp_path: Path) -> None:
    """A second bind of the same path would succeed, and steal the traffic."""
    with lock(ArmFolder(tmp_path)), pytest.raises(RunError, match="another run is using this folder"):
        run_echo(tmp_path)


PHASES = {
    "nursery": ("echo", lambda path: "nursery" in noted(path)),
    "forking": ("echo", lambda path: "root.r" in noted(path)),
    "greeting": ("stuck_build", lambda path: (path / "building").exists()),
    "running": ("echo", lambda path: (path / "running").exists()),
    "stopping": ("stuck_stop", lambda path: (path / "stopping").exists()),
}


@pytest.mark.parametrize("phase", PHASES)
def test_no_process_outlives_a_killed_launcher(tmp_path: Path, phase: str) -> None:
    """SIGKILL leaves the launcher no last word, in whatever phase it comes."""
    factory, has_come = PHASES[phase]
    path = tmp_path / "arm"
    with launcher(path, factory, 0.5 if phase == "stopping" else LONG_S) as process:
        wait_for(phase, lambda: has_come(path))
        processes = all_of(path)
        assert noted(path)["host-watcher"]["pid"] in alive(processes)

        process.kill()
        process.wait()

        wait_for("end of all processes", lambda: not alive(processes), GONE_WITHIN_S)
        assert group_of(noted(path)["nursery"]["pid"]) == {}


def test_a_stopped_process_does_not_outlive_a_killed_launcher(tmp_path: Path) -> None:
    """A process under SIGSTOP hears no socket close, and ends all the same."""
    path = tmp_path / "arm"
    with launcher(path) as process:
        wait_for("run", (path / "running").exists)
        processes = all_of(path)
        os.kill(noted(path)["a/leaf-1"]["pid"], signal.SIGSTOP)

        process.kill()
        process.wait()

        wait_for("end of all processes", lambda: not alive(processes), GONE_WITHIN_S)
        assert not alive(processes)


def test_a_killed_node_is_named_and_the_others_keep_their_data(tmp_path: Path) -> None:
    """An unplanned death ends the run: with its name, how, when; the others close their logs."""
    path = tmp_path / "arm"
    with launcher(path) as process:
        wait_for("run", (path / "running").exists)
        os.kill(noted(path)["a/server-1"]["pid"], signal.SIGKILL)
        process.wait(WAIT_S)

    outcome = load_outcome(path / "outcome.json")
    assert [(death.node, death.how) for death in outcome.deaths] == [("a/server-1", "signal 9")]
    assert 0.0 < outcome.deaths[0].at_s <= outcome.ended_at_s + 1.0
    assert not outcome.drained
    assert_no_gap(outcome)
    logs = {node: read_log(ArmFolder(path).log(node)) for node in NODES}
    assert {node: log.complete for node, log in logs.items()} == {
        "root.r": True,
        "a/leaf-1": True,
        "a/server-1": False,
    }


def test_the_death_of_the_nursery_ends_the_run(tmp_path: Path) -> None:
    """All nodes die with it; the launcher says so and does not wait for them."""
    path = tmp_path / "arm"
    with launcher(path) as process:
        wait_for("run", (path / "running").exists)
        os.kill(noted(path)["nursery"]["pid"], signal.SIGKILL)
        process.wait(WAIT_S)

    outcome = load_outcome(path / "outcome.json")
    assert {death.node for death in outcome.deaths} == {"nursery", *NODES}


def test_a_role_that_fails_is_named_with_its_last_words(tmp_path: Path) -> None:
    """The traceback of the role's process is what its author needs."""
    outcome = run_echo(tmp_path, "failing_leaf", duration_s=LONG_S)

    assert [(death.node, death.how) for death in outcome.deaths] == [("a/leaf-1", "exit status 1")]
    assert "RuntimeError: this leaf has a bug" in outcome.deaths[0].stderr_tail
    assert read_log(ArmFolder(tmp_path).log("root.r")).complete


def test_a_node_that_cannot_start_fails_the_run_with_its_last_words(tmp_path: Path) -> None:
    """Not after the start timeout but at once."""
    with pytest.raises(
        RunError, match=r"(?s)a/server-1 ended before the start: exit status 1; .*no role for this"
    ):
        run_echo(tmp_path, "failing_build")

    assert group_of(noted(tmp_path)["nursery"]["pid"]) == {}


@pytest.mark.parametrize("fork", range(len(NODES)))
def test_a_node_that_is_killed_on_its_fork_fails_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fork: int
) -> None:
    """It never says a word, and is not waited for until the start timeout: its end is news."""
    monkeypatch.setenv(STILLBORN, f"{fork}")

    with pytest.raises(RunError, match=f"{NODES[fork]} ended before the start: signal 9"):
        run_echo(tmp_path, "tests.live.stillborn_roles:echo")

    assert not ArmFolder(tmp_path).log(NODES[fork]).exists()
    assert group_of(noted(tmp_path)["nursery"]["pid"]) == {}


def test_runs_that_are_launched_at_once_all_start(tmp_path: Path) -> None:
    """Each has a launcher of its own, and its processes find ports while those of the others do."""
    paths = [tmp_path / f"{number}" for number in range(LAUNCHES)]
    with ExitStack() as stack:
        processes = [stack.enter_context(launcher(path, "echo", 0.5, "tcp")) for path in paths]
        for process in processes:
            process.wait(WAIT_S)

    assert [process.returncode for process in processes] == [0] * LAUNCHES
    outcomes = [load_outcome(path / "outcome.json") for path in paths]
    assert {(outcome.drained, outcome.deaths) for outcome in outcomes} == {(True, ())}
    for outcome in outcomes:
        assert_no_gap(outcome)
    carried = [line.delivered for outcome in outcomes for line in outcome.ledger if line.path == "request"]
    assert sorted(carried) == [0] * LAUNCHES + [99] * LAUNCHES  # the leaf asks its server nothing


@pytest.mark.parametrize("transport", ["ipc", "tcp"])
def test_all_sockets_of_a_run_are_local_and_for_this_user_alone(tmp_path: Path, transport: str) -> None:
    """Those of the launcher and of every node: in a folder of mode 0700, or, where asked for, bound to 127.0.0.1."""
    inet: set[str] = set()
    files: set[Path] = set()
    modes: set[int] = set()

    def look(progress: Progress) -> None:
        mine = {os.getpid(), *group_of(noted(tmp_path)["nursery"]["pid"])}
        for each in psutil.net_connections("inet"):
            if each.pid in mine:
                inet.update(end.ip for end in (each.laddr, each.raddr) if end)
        for each in psutil.net_connections("unix"):
            if each.pid in mine and each.laddr:
                files.add(Path(each.laddr))
        modes.update(stat.S_IMODE(file.parent.stat().st_mode) for file in files)

    run_echo(tmp_path, transport=transport, on_progress=look)

    assert inet == ({"127.0.0.1"} if transport == "tcp" else set())
    assert {file.parent for file in files} == {tmp_path / "sockets"}
    assert len(files) > (len(NODES) if transport == "ipc" else 0)
    assert modes == {0o700}


def test_a_late_process_is_not_a_dead_one(tmp_path: Path) -> None:
    """A process that is stopped for a second misses its beats, and goes on: its pid lived."""
    stopped: list[float] = []

    def hold_up(progress: Progress) -> None:
        pid = noted(tmp_path)["a/leaf-1"]["pid"]
        if not stopped and progress.at_s > 0.1:
            os.kill(pid, signal.SIGSTOP)
            stopped.append(progress.at_s)
        elif stopped and progress.at_s > stopped[0] + 1.0:
            os.kill(pid, signal.SIGCONT)

    outcome = run_echo(tmp_path, duration_s=1.5, on_progress=hold_up)

    assert stopped
    assert outcome.deaths == ()
    assert outcome.drained
    assert_no_gap(outcome)


def test_ctrl_c_ends_the_run_early_and_keeps_the_data(tmp_path: Path) -> None:
    """The launcher alone takes the signal; the logs end with their marks and the ledger has no gap."""
    path = tmp_path / "arm"
    with launcher(path) as process:
        wait_for("run", (path / "running").exists)
        process.send_signal(signal.SIGINT)
        process.wait(WAIT_S)

    assert process.returncode == 0
    outcome = load_outcome(path / "outcome.json")
    assert outcome.interrupted
    assert outcome.deaths == ()
    assert_no_gap(outcome)
    assert len(outcome.ledger) == 5
    assert all(read_log(ArmFolder(path).log(node)).complete for node in NODES)


def test_a_second_ctrl_c_kills(tmp_path: Path) -> None:
    """A node that does not stop need not be waited for."""
    path = tmp_path / "arm"
    with launcher(path, "stuck_stop") as process:
        wait_for("run", (path / "running").exists)
        processes = group_of(noted(path)["nursery"]["pid"])
        process.send_signal(signal.SIGINT)
        wait_for("stop", (path / "stopping").exists)
        process.send_signal(signal.SIGINT)
        process.wait(WAIT_S)

    assert process.returncode == 1
    assert not alive(processes)


def test_ctrl_c_before_the_start_leaves_nothing(tmp_path: Path) -> None:
    """There is no data to keep yet."""
    path = tmp_path / "arm"
    with launcher(path, "stuck_build") as process:
        wait_for("start", (path / "building").exists)
        processes = group_of(noted(path)["nursery"]["pid"])
        process.send_signal(signal.SIGINT)
        process.wait(WAIT_S)

    assert process.returncode == 1
    assert not alive(processes)
    assert not (path / "outcome.json").exists()


def test_the_machine_is_watched_from_the_start_to_the_end(tmp_path: Path) -> None:
    """The watcher closes its log and is gone; its rows follow each other without a gap."""
    run_echo(tmp_path, duration_s=1.5)

    log = read_log(ArmFolder(tmp_path).host_log)
    assert log.problem is None
    rows = log.tables["host"]
    assert len(rows["at_s"]) >= 2
    begins = [at_s - span_s for at_s, span_s in zip(rows["at_s"], rows["span_s"], strict=True)]
    assert begins[1:] == pytest.approx(rows["at_s"][:-1])
    assert ArmFolder(tmp_path).stderr("host-watcher").read_text() == ""


def test_a_watcher_that_is_killed_costs_the_run_nothing_but_its_rows(tmp_path: Path) -> None:
    def kill_watcher(progress: Progress) -> None:
        for child in psutil.Process().children():
            if child.name() == "host-watcher":
                child.kill()

    outcome = run_echo(tmp_path, duration_s=1.5, on_progress=kill_watcher)

    assert (outcome.drained, outcome.deaths) == (True, ())
    assert_no_gap(outcome)
    folder = ArmFolder(tmp_path)
    assert not folder.host_log.exists() or read_log(folder.host_log).problem is not None
