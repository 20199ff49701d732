"""A live run of the echo roles, in this process or as a launcher of its own that a test may kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from testbed.errors import InterruptError
from testbed.record.outcome import RunOutcome
from testbed.record.run_folder import ArmFolder
from testbed.runtime.launch import run_live
from testbed.runtime.parenthood import start_ticks
from testbed.runtime.progress import Progress
from testbed.scenario.load import scenario_from_text
from testbed.scenario.topology import build_topology
from testbed.traffic.plan import build_plan
from tests.live.echo_roles import MARKS

WAIT_S = 60.0  # far above what any step needs, also on a busy host
NODES = ("root.r", "a/leaf-1", "a/server-1")
TEXT = """
name: echo
duration: {duration} s
drain: 5 s
seed: 1
cells: {{a: {{servers: 1, service: {{slots: 1, fixed: 1 ms}}}}}}
roots: {{r: {{traffic: [{{class: c, rate: 1 /s, policy: p}}]}}}}
classes: {{c: {{}}}}
policies: {{p: {{kind: random}}}}
links:
  - {{from: root.*, to: cell.*, path: request, delay: 20 ms}}
  - {{from: cell.*, to: root.*, path: reply, delay: 20 ms}}
live: {{transport: {transport}}}
"""


def run_echo(
    path: Path,
    factory: str = "echo",
    *,
    duration_s: float = 0.5,
    transport: str = "ipc",
    on_progress: Callable[[Progress], None] | None = None,
) -> RunOutcome:
    """Run the echo roles in a folder, which also holds the marks of the roles; `factory` of `echo_roles`, or with its module."""
    os.environ[MARKS] = str(path)
    folder = ArmFolder(path)
    folder.make()
    text = TEXT.format(duration=duration_s, transport=transport)
    folder.scenario.write_text(text)
    scenario = scenario_from_text(text).arms["main"]
    plan = build_plan(scenario)
    factory = factory if ":" in factory else f"tests.live.echo_roles:{factory}"
    return run_live(
        folder, scenario, build_topology(scenario), plan, on_progress=on_progress, factory=factory
    )


def start_launcher(
    path: Path, factory: str, duration_s: float, transport: str = "ipc"
) -> subprocess.Popen[bytes]:
    """The same in a process of its own: it marks the first progress with a file `running`, and saves the outcome."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.live.echo_run", str(path), factory, f"{duration_s}", transport]
    )


def wait_for(what: str, is_there: Callable[[], object], within_s: float = WAIT_S) -> None:
    """Look until it is there.

    Raises:
        AssertionError: it does not come.
    """
    until_s = time.monotonic() + within_s
    while not is_there():
        assert time.monotonic() < until_s, f"no {what} within {within_s} s"
        time.sleep(0.01)


def alive(pids: dict[int, int]) -> list[int]:
    """Those of the processes, by pid and start time, that still live."""
    return [pid for pid, started in pids.items() if start_ticks(pid) == started]


def group_of(leader: int) -> dict[int, int]:
    """The living processes of the group that this pid leads, with their start times."""
    found = {}
    for pid in [int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit()]:
        try:
            if os.getpgid(pid) == leader and (started := start_ticks(pid)) is not None:
                found[pid] = started
        except ProcessLookupError:
            continue
    return found


def main() -> None:
    """Arguments: folder, factory, duration in seconds, transport."""
    path = Path(sys.argv[1])
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job may have it ignored
    try:
        outcome = run_echo(
            path,
            sys.argv[2],
            duration_s=float(sys.argv[3]),
            transport=sys.argv[4],
            on_progress=lambda progress: (path / "running").touch(),
        )
    except InterruptError as error:
        sys.exit(f"interrupted: {error}")
    outcome.save(path / "outcome.json")


if __name__ == "__main__":
    main()
