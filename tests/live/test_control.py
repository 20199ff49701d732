"""Faults ordered by hand while real processes run: each is answered, takes hold, and is in the records."""

from __future__ import annotations

import json
import os
import random
import stat
import threading
from collections.abc import Callable
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
    RATE_PER_S,
    assert_books_balance,
    assert_no_fault_is_silent,
    fault_rows,
    words,
)
from tests.laws.virtual_run import VirtualRun

pytestmark = pytest.mark.live

COMMANDS = int(os.environ.get("COMMANDS", "20"))  # 200 before a release
PACE_S = 0.15  # between two commands: some are to be at work together, and the dead to come back
Say = Callable[..., list[str]]


def run_with(
    path: Path, commands: Callable[[Say, ArmFolder], None], duration_s: float, **changes: Any
) -> VirtualRun:
    """A run of ten processes, unless changed, in which a thread orders things as soon as it has begun."""
    folder = ArmFolder(path / "main")
    given = {**words(duration=f"{duration_s} s", drain="3 s"), **changes}
    scenario = scenario_from_text(yaml.safe_dump(given, sort_keys=False)).arms["main"]
    failures: list[BaseException] = []
    begun = threading.Event()

    def say(action: str, *keys: str, lasts: str | None = None, may: bool = False, **target: str) -> list[str]:
        done, said = order(
            folder.path, action, keys, {each.strip("_"): whom for each, whom in target.items()}, lasts
        )
        assert done or (may and "is dead already" in said[0]), said
        return said

    def order_all() -> None:
        try:
            assert begun.wait(30.0)
            commands(say, folder)
        except BaseException as error:
            failures.append(error)

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
        wait(0.5)
        assert any("dead: a/server-1" in line for line in say("status"))
        say("restart", server="a/server-1")
        say("speed", "0.5", server="b/server-2", lasts="300 ms")
        wait(0.6)
        say("heal", "0")
        assert say("heal", "0") == ["nothing to heal"]
        assert not any("dead" in line for line in say("status"))

    run = run_with(tmp_path, commands, 4.0)

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


def test_in_a_run_of_twenty_processes_the_next_message_shows_what_was_ordered(tmp_path: Path) -> None:
    """News of one cell and requests to another, from the first that was sent after the order took hold."""
    cell = words()["cells"]["a"]
    cells = {"a": {**cell, "servers": 4}, "b": {**cell, "servers": 4}, "c": {**cell, "servers": 5}}
    wait = threading.Event().wait
    reached: list[int] = []

    def commands(say: Say, folder: ArmFolder) -> None:
        reached.append(sum(name not in ("launcher", "nursery", "host-watcher") for name in known(folder)))
        say("set", "delay=700 ms", from_="cell.a", to="root.*", path="observation")
        say("set", "delay=300 ms", from_="root.west", to="cell.b", path="request")
        wait(0.8)
        say("heal")

    roots = {name: words()["roots"]["west"] for name in ("west", "east", "north", "south")}

    run = run_with(tmp_path, commands, 3.0, cells=cells, roots=roots)

    assert reached == [20]
    assert run.outcome.deaths == ()
    assert_books_balance(run)
    news, requests = fault_rows(run)
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

    run = run_with(tmp_path, commands, 4.0)

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


def test_random_commands_in_a_row_leave_the_run_consistent(tmp_path: Path) -> None:
    """Whatever is ordered: the run goes on to its end, and every request and message is accounted for."""
    rng = random.Random(5)
    servers = ["a/server-1", "a/server-2", "b/server-1", "b/server-2"]
    nodes = [("server", name) for name in servers] + [("leaf", "a/leaf-1"), ("root", "west")]
    wait = threading.Event().wait

    def one(say: Say) -> None:
        kind, name = rng.choice(nodes)
        match rng.randrange(9):
            case 0:
                say("set", f"delay={rng.randrange(300)} ms", from_="cell.*", to="root.*", path="observation")
            case 1:
                say("set", "loss=50 %", from_="*", to="*", lasts="200 ms")
            case 2:
                say("kill", lasts="300 ms", may=True, **{kind: name})
            case 3:
                say("restart", may=True, **{kind: name})
            case 4:
                say("pause", lasts="200 ms", may=True, **{kind: name})
            case 5:
                say("resume", **{kind: name})
            case 6:
                say("freeze", cell=rng.choice("ab"))
            case 7:
                say("set", "reset_counts=true", leaf="a/leaf-1")
            case _:
                say("heal")

    def commands(say: Say, folder: ArmFolder) -> None:
        for _ in range(COMMANDS):
            one(say)
            wait(PACE_S)
        say("heal")
        wait(0.5)

    run = run_with(tmp_path, commands, 3.0 + 0.4 * COMMANDS)

    assert run.outcome.deaths == ()
    assert run.outcome.log_problems == ()
    assert not run.outcome.interrupted
    assert len(run.outcome.ledger) == len(build_topology(run.scenario).links)
    assert_books_balance(run)
    assert_no_fault_is_silent(run)
    assert len(fault_rows(run)) == len(run.outcome.by_hand) > COMMANDS // 3
    assert np.isin(
        run.tables["requests"]["outcome"], ["completed", "timed_out", "lost", "no_target", "failed"]
    ).all()
