"""Faults ordered by hand while real processes run: each is answered, takes hold, and is in the records."""

from __future__ import annotations

import json
import os
import random
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from testbed.analysis.summary import summarize_arm
from testbed.console.control import order
from testbed.errors import UsageError
from testbed.experiment import run_arm, with_orders
from testbed.record.outcome import load_outcome
from testbed.record.read import read_tables
from testbed.record.run_folder import ArmFolder
from testbed.runtime.hand import NOTE
from testbed.scenario.load import load_scenario, scenario_from_text
from testbed.scenario.topology import build_topology
from testbed.traffic.plan import build_plan
from testbed.traffic.surge import LEAD_S
from tests.laws.test_node_faults import (
    PROFILE,
    RATE_PER_S,
    assert_books_balance,
    assert_no_fault_is_silent,
    fault_rows,
    words,
)
from tests.laws.virtual_run import VirtualRun

pytestmark = pytest.mark.live

CHECKOUT = Path(__file__).parents[2]
COMMANDS = int(os.environ.get("COMMANDS", "40"))  # one of each kind at least; 200 before a release
STILL_OPEN_S = (
    5.0  # who was planned longer before the end has been answered or given up, at the timeout of 0.5 s
)
PACE_S = 0.1  # between two commands: some are to be at work together, and the dead to come back
SHOWN_S = 20.0  # until the status shows what was ordered: far above what a birth takes, also on a busy host
LONG_S = 120.0  # of a run that is stopped when all is ordered
Say = Callable[..., list[str]]


def run_with(
    path: Path,
    commands: Callable[[Say, ArmFolder], None],
    duration_s: float,
    took_s: list[float] | None = None,
    stops: bool = False,
    **changes: Any,
) -> VirtualRun:
    """A run of eight processes, unless changed, in which a thread orders things as soon as it has begun.

    How long each answer takes is added to `took_s`. With `stops` the run is stopped when all is ordered, as by Ctrl-C: how
    long answers and births take is the host's to say.
    """
    folder = ArmFolder(path / "main")
    given = {**words(duration=f"{duration_s} s", drain="3 s"), **changes}
    scenario = scenario_from_text(yaml.safe_dump(given, sort_keys=False)).arms["main"]
    failures: list[BaseException] = []
    begun = threading.Event()

    def say(action: str, *keys: str, lasts: str | None = None, may: bool = False, **target: str) -> list[str]:
        begun_s = time.monotonic()
        done, said = order(
            folder.path, action, keys, {each.strip("_"): whom for each, whom in target.items()}, lasts
        )
        if took_s is not None:
            took_s.append(time.monotonic() - begun_s)
        assert done or (may and "is dead already" in said[0]), said
        return said

    def order_all() -> None:
        try:
            assert begun.wait(30.0)
            commands(say, folder)
        except BaseException as error:
            failures.append(error)
        if stops and (folder.path / NOTE).exists():
            os.kill(os.getpid(), signal.SIGINT)  # which the launcher takes, as long as there is a run

    class Begun:
        def show(self, progress: Any) -> None:
            begun.set()

    class Display:
        def __enter__(self) -> Begun:
            return Begun()

        def __exit__(self, *error: object) -> None:
            pass

    thread = threading.Thread(target=order_all)
    thread.start()
    outcome = run_arm(folder, scenario, "live", lambda *of_arm: Display())
    thread.join()
    assert failures == []
    return VirtualRun(
        with_orders(scenario, outcome), read_tables(folder.tables), load_outcome(folder.outcome), folder
    )


def await_status(say: Say, is_shown: Callable[[str], bool]) -> None:
    """Ask how the run fares until it shows something."""
    until_s = time.monotonic() + SHOWN_S
    while not is_shown("\n".join(said := say("status"))):
        assert time.monotonic() < until_s, said
        time.sleep(0.1)


def test_what_is_ordered_takes_hold_and_is_in_the_records(tmp_path: Path) -> None:
    """Late news, a server killed and restarted, another stopped and woken, a wrong word that changes nothing."""
    wait = threading.Event().wait

    def commands(say: Say, folder: ArmFolder) -> None:
        note = folder.path / NOTE
        assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
        assert stat.S_IMODE(Path(note.read_text().removeprefix("ipc://")).parent.stat().st_mode) == 0o700
        say("set", "delay=1s", from_="cell.a", to="root.*", path="observation")
        with pytest.raises(UsageError, match="dealy: unknown key"):
            say("set", "dealy=1s", from_="cell.a", to="root.*")
        with pytest.raises(UsageError, match="matches no server"):
            say("kill", server="a/server-9")
        say("kill", server="a/server-1")
        say("pause", server="b/server-1", lasts="300 ms")
        await_status(say, lambda shown: "dead: a/server-1" in shown)
        wait(0.3)  # which it is sent requests in
        say("restart", server="a/server-1")
        say("speed", "0.5", server="b/server-2", lasts="300 ms")
        await_status(say, lambda shown: "dead" not in shown)
        say("heal", "0")
        assert say("heal", "0") == ["nothing to heal"]
        wait(1.5)  # the last of the late news comes, and requests to the server that is back

    run = run_with(tmp_path, commands, LONG_S, stops=True)

    assert run.outcome.deaths == ()
    assert run.outcome.log_problems == ()
    assert_books_balance(run)
    late, killed, paused, slow = fault_rows(run)
    for fault in (late, killed, paused, slow):
        assert fault["nodes_applied"] == fault["nodes_expected"]
        assert fault["nodes_healed"] == fault["nodes_expected"]
    seen = run.tables["observations"]
    transit_s = seen["received_at_s"] - seen["measured_at_s"]
    during = (seen["cell"] == "a") & (seen["measured_at_s"] > late["applied_at_s"])
    during &= seen["measured_at_s"] < late["heal_planned_at_s"]
    assert during.sum() > 0
    assert (transit_s[during] > 0.999).all()
    assert (transit_s[seen["cell"] == "b"] < 0.9).all()
    services = run.tables["requests"]
    there = (services["server"] == "a/server-1") & (services["at_server_s"] > killed["applied_at_s"])
    assert (services["at_server_s"][there] >= killed["heal_planned_at_s"]).all()
    assert there.sum() > 0
    again = load_scenario(run.folder.scenario).arms["main"]
    assert again.faults == run.scenario.faults
    assert not (run.folder.path / NOTE).exists()


@dataclass(frozen=True)
class TwentyProcesses:
    """What came of a run of twenty processes.

    Attributes:
        run: its records.
        reached: how many processes of nodes there were.
        shell: what `testbed control` printed where it was called as a command.
        kinds: of the random orders.
        took_s: how long the answer to each order took.
    """

    run: VirtualRun
    reached: int
    shell: tuple[str, ...]
    kinds: tuple[str, ...]
    took_s: tuple[float, ...]


@pytest.fixture(scope="module")
def twenty(tmp_path_factory: pytest.TempPathFactory) -> TwentyProcesses:
    """Two links are changed and healed, the first from a shell; then come random orders of every kind, one after the other."""
    cell = words()["cells"]["a"]
    gpus = {"servers": 5, "profile": PROFILE, "leaf": cell["leaf"]}
    cells = {"a": {**cell, "servers": 4}, "b": {**cell, "servers": 4}, PREFILLS: gpus}
    classes = {"c": {**words()["classes"]["c"], "prompt_tokens": 64, "output_tokens": 2}}
    roots = {name: words()["roots"]["west"] for name in ("west", "east", "north", "south")}
    wait = threading.Event().wait
    reached: list[int] = []
    shell: list[str] = []
    kinds: list[str] = []
    took_s: list[float] = []

    def commands(say: Say, folder: ArmFolder) -> None:
        reached.append(sum(name not in ("launcher", "nursery", "host-watcher") for name in known(folder)))
        late = ["--from", "cell.a", "--to", "root.*", "--path", "observation", "delay=700ms"]
        shell.append(control_command(folder, "set", *late))
        say("set", "delay=300 ms", from_="root.west", to="cell.b", path="request")
        shell.append(control_command(folder, "status"))
        wait(0.8)
        say("heal")
        random_orders = RandomOrders(say)
        for _ in range(COMMANDS):
            kinds.append(random_orders.give())
            wait(PACE_S)
        say("heal")
        wait(0.5)

    path = tmp_path_factory.mktemp("twenty")
    changes = {"cells": cells, "roots": roots, "classes": classes}
    run = run_with(path, commands, 30.0 + 2.0 * COMMANDS, took_s, stops=True, **changes)
    return TwentyProcesses(run, reached[0], tuple(shell), tuple(kinds), tuple(took_s))


def control_command(folder: ArmFolder, *arguments: str) -> str:
    """What the command prints."""
    done = subprocess.run(
        [sys.executable, "-m", "testbed", "control", str(folder.path), *arguments],
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


LINKS = (
    {"from_": "cell.*", "to": "root.*", "path": "observation"},
    {"from_": "root.*", "to": "cell.b", "path": "request"},
    {"from_": "cell.a", "to": "root.*", "path": "reply"},
    {"from_": "c/leaf-1", "to": "c/server-*"},
)
OF_LINKS = (
    ("delay=150 ms",),
    ("delay=+50 ms",),
    ("delay=x3",),
    ("jitter={exponential: 4 ms}", "correlation=0.5"),
    ("jitter={uniform: 2 ms}", "order=kept"),
    ("loss=50 %",),
    ("loss=20 %", "loss_burst=3"),
    ("reorder={fraction: 20 %, late: 30 ms}",),
    ("rate=100 /s", "queue=5"),
    ("bandwidth=20 kB/s", "queue=5"),
    ("flap={period: 200 ms, down: 40 %}",),
    ("cut=true",),
)
OF_NODES: dict[str, tuple[tuple[str, ...], ...]] = {
    "server": (("speed=0.2",), ("errors=30 %", "error_after=20 ms"), ("drain=true",), ("absent=true",)),
    "cell": (("prefill=x4",), ("drain=true",), ("leak=50 %",), ("telemetry=silent",)),
    "leaf": (
        ("gauge_factor=2", "gauge_offset=3"), ("clock_skew=-50 ms", "clock_drift=1 %"), ("reset_counts=true",),
    ),
    "root": (("leak=50 %",), ("reset_counts=true",), ("burst=5",)),
}  # fmt: skip
PREFILLS = "c"  # the cell whose servers prefill
PROCESSES = (("server", "a/server-1"), ("server", "b/server-3"), ("leaf", "a/leaf-1"), ("root", "west"))


def key(keys: Sequence[str]) -> str:
    """The first key that these set."""
    return keys[0].partition("=")[0]


ALL_KINDS = {
    *(key(keys) for keys in (*OF_LINKS, *chain(*OF_NODES.values()))),
    *("pause", "kill", "restart", "resume", "freeze", "spike", "heal", "heal by number"),
}
IN_A_ROUND = (  # eleven have an action of their own
    len(OF_LINKS) + sum(map(len, OF_NODES.values())) + 11
)


class RandomOrders:
    """Orders of every kind in random order, then again in another; most are at work together with those before them."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._rng = random.Random(5)
        self._left: list[tuple[str, Callable[[], list[str]]]] = []
        self._numbers: list[str] = []  # of what may be healed

    def give(self) -> str:
        """Give the next one; its kind."""
        if not self._left:
            self._left = self._round()
            assert len(self._left) == IN_A_ROUND
            self._rng.shuffle(self._left)
        kind, one = self._left.pop()
        number = one()[0].partition(":")[0]
        if number.isdecimal() and kind not in ("burst", "spike"):
            self._numbers.append(number)
        return kind

    def _round(self) -> list[tuple[str, Callable[[], list[str]]]]:
        rng, say = self._rng, self._say
        found: list[tuple[str, Callable[[], list[str]]]] = []
        for keys in OF_LINKS:
            link = rng.choice(LINKS)
            found.append((key(keys), partial(say, "set", *keys, lasts="400 ms", **link)))
        for kind, each in OF_NODES.items():
            for keys in each:
                lasts = None if key(keys) in ("reset_counts", "burst") else "400 ms"
                whom = {kind: PREFILLS if key(keys) == "prefill" else one_of(kind, rng)}
                found.append((key(keys), partial(say, "set", *keys, lasts=lasts, **whom)))
        for action in ("pause", "kill", "restart", "resume", "freeze"):
            kind, name = rng.choice(PROCESSES[:3] if action == "freeze" else PROCESSES)
            lasts = {"pause": "200 ms", "kill": "300 ms", "freeze": "400 ms"}.get(action)
            found.append((action, partial(say, action, may=True, lasts=lasts, **{kind: name})))
        found.append(("speed", partial(say, "speed", "0.5", cell=rng.choice("abc"))))
        found.append(("spike", partial(say, "spike", "x2", root="*", lasts="200 ms")))
        found.append(("heal", partial(say, "heal")))
        found += [("heal by number", self._heal_one)] * 3
        return found

    def _heal_one(self) -> list[str]:
        return self._say("heal", *[self._rng.choice(self._numbers)] if self._numbers else ())


def one_of(kind: str, rng: random.Random) -> str:
    """A node of a kind, or some of them."""
    names = {
        "server": ("a/server-2", "b/server-*", "*/server-1"),
        "cell": ("a", "b", "c"),
        "leaf": ("a/leaf-1", "*/leaf-1"),
        "root": ("west", "*"),
    }
    return rng.choice(names[kind])


def test_of_a_cell_that_was_killed_each_process_comes_back_by_itself(tmp_path: Path) -> None:
    """One server alone, later the rest of the cell, of which the living server is killed and restarted."""

    def commands(say: Say, folder: ArmFolder) -> None:
        assert len(say("kill", cell="a")) == 3
        await_status(say, lambda shown: "dead: a/leaf-1, a/server-1, a/server-2" in shown)
        say("restart", server="a/server-1")
        await_status(say, lambda shown: "dead: a/leaf-1, a/server-2" in shown)
        assert len(say("restart", cell="a")) == 3
        await_status(say, lambda shown: "dead" not in shown)

    run = run_with(tmp_path, commands, LONG_S, stops=True)

    assert run.outcome.deaths == ()
    assert run.outcome.log_problems == ()
    assert_books_balance(run)
    assert_no_fault_is_silent(run)
    assert [fault["target"] for fault in fault_rows(run)] == [
        "leaf a/leaf-1",
        "server a/server-1",
        "server a/server-2",
        "server a/server-1",
    ]


def test_in_a_run_of_twenty_processes_the_next_message_shows_what_was_ordered(
    twenty: TwentyProcesses,
) -> None:
    """News of one cell and requests to another, from the first that was sent after the order took hold."""
    run = twenty.run

    assert twenty.reached == 20
    changed, status = twenty.shell
    assert "link cell.a -> root.* observation: delay 700 ms" in changed
    assert "20 of 20 processes alive" in status
    assert "link root.west -> cell.b request: delay 300 ms" in status
    news, requests = fault_rows(run)[:2]
    for fault, at_s, arrived_s, mine, delay_s in (
        (news, "measured_at_s", "received_at_s", run.tables["observations"]["cell"] == "a", 0.7),
        (requests, "sent_at_s", "at_leaf_s", sent_by(run, "root.west", "b"), 0.3),
    ):
        table = run.tables["observations" if at_s == "measured_at_s" else "requests"]
        sent_s, took_s = table[at_s][mine], (table[arrived_s] - table[at_s])[mine]
        after = (sent_s > fault["applied_at_s"]) & (sent_s < fault["heal_planned_at_s"])
        assert after.sum() > 5
        assert (took_s[after] > 0.999 * delay_s).all()
        before = sent_s < fault["planned_at_s"]
        assert (took_s[before] < 0.999 * delay_s).any()


def known(folder: ArmFolder) -> dict[str, Any]:
    """The processes of the run, as the launcher wrote them down."""
    found: dict[str, Any] = json.loads((folder.path / "processes.json").read_text())
    return found


def sent_by(run: VirtualRun, root: str, cell: str) -> Any:
    """Requests of a root that reached a cell."""
    requests = run.tables["requests"]
    return (requests["root"] == root) & (requests["cell"] == cell) & ~np.isnan(requests["at_leaf_s"])


def test_a_spike_by_hand_adds_requests_from_the_order_on(tmp_path: Path) -> None:
    """Three times the arrivals of one root for a second, fifty requests at once, and a root that dies meanwhile."""
    wait = threading.Event().wait

    def commands(say: Say, folder: ArmFolder) -> None:
        wait(0.5)
        said = say("spike", "x3", root="west", lasts="1 s")
        assert "demand x3" in said[0]
        say("set", "burst=50", root="*")
        with pytest.raises(UsageError, match=r"demand is set on a root or a class, not on a cell"):
            say("spike", "x3", cell="a")
        with pytest.raises(UsageError, match="accepted: one factor on the arrivals"):
            say("spike", root="west")
        assert (
            refused(folder, "spike", ("x0.5",))
            == "demand x0.5: what is planned stays; accepted: more than x1"
        )
        assert "its requests were planned when it was ordered" in refused(folder, "heal", ("0",))
        assert say("heal") == ["nothing to heal"]
        wait(0.3)
        say("kill", root="west", lasts="300 ms")

    # all that is added at once is served long before its clients have gone
    run = run_with(tmp_path, commands, 4.0, classes={"c": {"timeout": "3 s"}})

    assert run.outcome.deaths == ()
    assert run.outcome.log_problems == ()
    assert_books_balance(run)
    spike, burst, killed = fault_rows(run)
    assert spike["nodes_applied"] == spike["nodes_expected"] == 1
    assert burst["nodes_applied"] == burst["nodes_expected"] == 2
    requests = run.tables["requests"]
    planned = build_plan(run.scenario.model_copy(update={"faults": ()}).scaled()).requests
    added = np.arange(len(requests["request_id"])) >= planned
    at_s, west = requests["planned_at_s"], requests["root"] == "root.west"
    of_burst = added & (at_s == burst["planned_at_s"] + LEAD_S)
    assert of_burst.sum() == 100
    of_spike = added & ~of_burst
    assert west[of_spike].all()
    assert of_spike.sum() == pytest.approx(2 * RATE_PER_S, abs=4 * (2 * RATE_PER_S) ** 0.5)
    assert (at_s[of_spike] >= spike["planned_at_s"] + LEAD_S).all()
    dead = west & (at_s > killed["applied_at_s"]) & (at_s < killed["heal_planned_at_s"])
    assert (requests["outcome"][added & dead] == "lost").all()
    assert (requests["outcome"][added & ~west] == "completed").all()
    assert (requests["outcome"] == "completed")[of_spike].sum() > 20
    summary = summarize_arm(run.scenario, run.tables, run.outcome)
    assert summary["requests"]["planned"] == planned + added.sum()
    assert summary["laws"]["broken"] == 0


def refused(folder: ArmFolder, action: str, keys: tuple[str, ...]) -> str:
    """What the run says to an order that it does not take."""
    done, (said,) = order(folder.path, action, keys, {"root": "west"} if action == "spike" else {}, None)
    assert not done
    return said


def test_random_commands_in_a_row_leave_the_run_consistent(
    twenty: TwentyProcesses, record_property: Callable[[str, object], None]
) -> None:
    """Whatever is ordered: the run goes on until it is stopped, and every request and message is accounted for."""
    run = twenty.run

    assert COMMANDS < IN_A_ROUND or set(twenty.kinds) == ALL_KINDS
    assert run.outcome.deaths == ()
    assert run.outcome.log_problems == ()
    assert run.outcome.interrupted  # when all had been ordered
    assert len(twenty.kinds) == COMMANDS
    assert len(run.outcome.ledger) == len(build_topology(run.scenario).links)
    assert_books_balance(run)
    assert_no_fault_is_silent(run)
    assert len(fault_rows(run)) == len(run.outcome.by_hand) > COMMANDS // 2
    requests = run.tables["requests"]
    asked = requests["planned_at_s"] < run.outcome.ended_at_s - STILL_OPEN_S
    ends = ["completed", "timed_out", "lost", "no_target", "failed"]
    assert np.isin(requests["outcome"][asked], ends).all()
    assert asked.sum() > 10 * COMMANDS
    # each was answered before its asker gave up, or the order would have raised; how soon is the host's to say
    assert len(twenty.took_s) > COMMANDS
    record_property("answers_s_p50", float(np.median(twenty.took_s)))
    record_property("answers_s_max", max(twenty.took_s))
    print(
        f"{len(twenty.took_s)} answers: p50 {np.median(twenty.took_s):.3f} s, max {max(twenty.took_s):.3f} s"
    )
