"""What a run has around it: strangers of its processes' names, threads that a fork would not survive, output that nobody reads."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from testbed.record.run_folder import ArmFolder
from testbed.runtime.progress import Progress
from tests.live.echo_roles import LOUD_BYTES
from tests.live.echo_run import NODES, group_of, run_echo, start_launcher, wait_for
from tests.live.test_start_stop import assert_no_gap, noted

pytestmark = [pytest.mark.live, pytest.mark.untimed]

STRANGER = """
import sys
from testbed.runtime.parenthood import set_process_name
set_process_name(sys.argv[1])
print("here", flush=True)
sys.stdin.read()
"""


@contextmanager
def stranger(name: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that `ps` and `pkill` know by the name of a node, and that is none of ours."""
    command = [sys.executable, "-c", STRANGER, name]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"here\n"
            yield process
        finally:
            process.kill()


@contextmanager
def nursery_of_another() -> Iterator[subprocess.Popen[bytes]]:
    """The nursery of another launcher (this test), with the same command line and name as that of a run."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command = [sys.executable, "-m", "testbed.runtime.nursery", str(os.getpid())]
    with ours, theirs:
        process = subprocess.Popen(command, stdin=theirs.fileno(), start_new_session=True)
        try:
            wait_for("name of the nursery", lambda: comm_of(process.pid) == "nursery")
            yield process
        finally:
            process.kill()
            process.wait()


def comm_of(pid: int, thread: int | None = None) -> str:
    """What the kernel calls a process, or one of its threads."""
    place = f"/proc/{pid}/comm" if thread is None else f"/proc/{pid}/task/{thread}/comm"
    return Path(place).read_text().strip()


def threads_of(pid: int) -> list[str]:
    """The names of its threads, its own among them."""
    return sorted(comm_of(pid, int(each.name)) for each in Path(f"/proc/{pid}/task").iterdir())


def test_no_signal_of_a_run_reaches_a_stranger_of_the_same_name(tmp_path: Path) -> None:
    """Neither at the end of a run, nor when it is stopped, nor when its launcher is killed."""
    with stranger("a/server-1") as namesake, nursery_of_another() as other:
        run_echo(tmp_path / "whole")
        for number, name in ((signal.SIGINT, "stopped"), (signal.SIGKILL, "killed")):
            path = tmp_path / name
            path.mkdir()
            process = start_launcher(path, "echo", 300.0)
            wait_for("run", (path / "running").exists)
            nursery, servant = (noted(path)[node]["pid"] for node in ("nursery", "a/server-1"))
            assert comm_of(servant) == comm_of(namesake.pid)
            assert comm_of(nursery) == comm_of(other.pid)
            process.send_signal(number)
            process.wait(60.0)
            wait_for("end of the run's processes", lambda group=nursery: not group_of(group))

        assert namesake.poll() is None
        assert other.poll() is None


def test_the_process_that_forks_has_no_thread_and_no_context(tmp_path: Path) -> None:
    """A ZeroMQ context has threads of its own, which a fork leaves behind: nodes have theirs, the nursery never."""
    seen: dict[str, list[str]] = {}

    def look(progress: Progress) -> None:
        known = noted(tmp_path)
        seen.update({name: threads_of(known[name]["pid"]) for name in ("nursery", *NODES)})

    run_echo(tmp_path, on_progress=look)

    assert seen["nursery"] == ["nursery"]
    for node in NODES:
        assert [name for name in seen[node] if name.startswith("ZMQ")], seen[node]


def test_a_process_that_says_more_than_a_pipe_holds_is_not_held_up(tmp_path: Path) -> None:
    """Every node writes a megabyte to both of its outputs before, during and after the run."""
    outcome = run_echo(tmp_path, "loud")

    assert outcome.drained
    assert outcome.deaths == ()
    assert_no_gap(outcome)
    for node in NODES:
        assert ArmFolder(tmp_path).stderr(node).stat().st_size == 6 * LOUD_BYTES
