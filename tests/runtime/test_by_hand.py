"""Orders by hand at the launcher: which processes each one touches, and what is refused; no process is started."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import pytest
import yaml

from testbed.roles.build import World
from testbed.runtime.by_hand import RESTART_S, ByHand
from testbed.runtime.hand import HandServer
from testbed.runtime.lives import planned_lives
from testbed.runtime.processes import Processes
from testbed.runtime.wire import Change, Changed
from testbed.scenario.fault_plan import fault_plan
from testbed.scenario.load import scenario_from_text
from testbed.scenario.topology import build_topology
from testbed.traffic.plan import build_plan
from tests.laws.test_node_faults import words

CELL_A = ["a/leaf-1", "a/server-1", "a/server-2"]
KILL: dict[str, Any] = {"kill": True}
PAUSE: dict[str, Any] = {"pause": True}
NEWS = {"from": "cell.a", "to": "root.*", "path": "observation"}


@dataclass
class FakeHand:
    """Asks what it is given, and keeps the answers."""

    asked: list[dict[str, Any]] = field(default_factory=list)
    answers: list[tuple[bool, list[str]]] = field(default_factory=list)

    def receive(self) -> tuple[bytes, dict[str, Any]] | None:
        return (b"", self.asked.pop(0)) if self.asked else None

    def answer(self, asker: bytes, done: bool, said: list[str]) -> None:
        self.answers.append((done, said))


@dataclass
class FakeProcesses:
    """Keeps whom it was to wake and to fork."""

    woken: list[str] = field(default_factory=list)
    forked: list[str] = field(default_factory=list)

    def wake(self, name: str) -> None:
        self.woken.append(name)

    def spawn(self, names: list[str], life: int) -> None:
        self.forked += names


class Launcher:
    """Ten nodes with a process each, which do at once what they are told; the clock is set by hand."""

    def __init__(self, *faults: dict[str, Any], **changes: Any) -> None:
        given = words(*faults, **changes)
        scenario = scenario_from_text(yaml.safe_dump(given, sort_keys=False)).arms["main"].scaled()
        topology = build_topology(scenario)
        homes = {name: (name,) for name in topology.nodes}
        self.now_s = 1.0
        self.hand, self.processes = FakeHand(), FakeProcesses()
        self.lives = planned_lives(fault_plan(scenario, topology), topology, homes)
        self.told: list[tuple[str, Change]] = []
        self.by_hand = ByHand(
            World(scenario, topology, build_plan(scenario)),
            homes,
            self.lives,
            cast(HandServer, self.hand),
            cast(Processes, self.processes),
            self._send,
            lambda: self.now_s,
        )

    def _send(self, name: str, change: Change) -> bool:
        self.told.append((name, change))
        return True

    def ask(self, **question: Any) -> tuple[bool, list[str]]:
        """What the run says to a question, once all have done what they were told."""
        self.hand.asked.append(question)
        while not self.hand.answers:
            self.by_hand.attend()
            for name, change in self.told:
                self.by_hand.hear(Changed(name, change.kind, change.number))
        return self.hand.answers.pop()

    def set(self, setting: dict[str, Any], **target: Any) -> tuple[bool, list[str]]:
        """An order to set this."""
        return self.ask(action="set", line={**target, "set": setting})

    def restart(self, *nodes: str) -> tuple[bool, list[str]]:
        """An order to restart them."""
        return self.ask(action="restart", nodes=list(nodes), line={})

    def resume(self, *nodes: str) -> tuple[bool, list[str]]:
        """An order to wake them."""
        return self.ask(action="heal", key="pause", nodes=list(nodes))

    def die(self, *nodes: str) -> None:
        """They have ended."""
        for node in nodes:
            self.lives[node].is_dead = True

    def dead(self) -> dict[str, float]:
        """Whom orders and the timeline keep dead now, and until when."""
        return {
            name: each.until_s
            for name, life in self.lives.items()
            for each in life.outages
            if each.is_dead and each.at_s <= self.now_s < each.until_s
        }


def killed_cell() -> Launcher:
    """Cell a was killed by hand."""
    launcher = Launcher()
    done, said = launcher.set(KILL, cell="a")
    assert done
    assert len(said) == 3
    assert sorted(launcher.dead()) == CELL_A
    launcher.die(*CELL_A)
    return launcher


def test_of_a_cell_that_was_killed_one_server_is_started_anew_alone() -> None:
    launcher = killed_cell()

    launcher.now_s = 2.0
    done, said = launcher.restart("a/server-1")

    assert done
    assert said == ["1: server a/server-1: restarted"]
    assert launcher.processes.forked == ["a/server-1"]
    assert sorted(launcher.dead()) == ["a/leaf-1", "a/server-2"]


def test_a_restart_of_a_cell_starts_the_dead_anew_and_kills_those_that_live() -> None:
    launcher = Launcher()
    launcher.set(KILL, server="a/server-2")
    launcher.die("a/server-2")

    launcher.now_s = 2.0
    done, said = launcher.restart(*CELL_A)

    assert done
    assert said[0] == "0: server a/server-2: restarted"
    assert [line.partition(",")[0] for line in said[1:]] == [
        "1: leaf a/leaf-1: kill yes",
        "2: server a/server-1: kill yes",
    ]
    assert launcher.processes.forked == ["a/server-2"]
    assert launcher.dead() == {"a/leaf-1": 2.0 + RESTART_S, "a/server-1": 2.0 + RESTART_S}


def test_who_dies_of_an_order_is_told_of_the_others_first() -> None:
    """Its own comes last: nothing is heard by the dead."""
    launcher = Launcher()
    launcher.set(KILL, cell="a")

    for number, node in enumerate(CELL_A):
        numbers = [change.number for name, change in launcher.told if name == node]
        assert numbers[-1] == number
        assert numbers.count(number) == 1


def test_of_a_cell_that_was_stopped_one_server_is_woken_alone() -> None:
    launcher = Launcher()
    launcher.set(PAUSE, cell="a")

    done, said = launcher.resume("a/server-1")

    assert done
    assert said == ["1: server a/server-1: pause yes, healed"]
    assert launcher.processes.woken == ["a/server-1"]
    assert launcher.resume("a/server-1") == (True, ["nothing to heal"])


def test_what_the_timeline_has_stopped_is_not_woken_and_says_why() -> None:
    launcher = Launcher({"at": "500 ms", "for": "2 s", "server": "a/server-1", "set": PAUSE})
    launcher.set(PAUSE, server="a/server-2")
    why = "a/server-1 is stopped by the timeline until 2.5 s, which no order ends"

    assert launcher.resume("a/server-1") == (False, [why])
    assert launcher.resume("a/server-1", "a/server-2") == (
        True,
        ["1: server a/server-2: pause yes, healed", why],
    )
    assert launcher.processes.woken == ["a/server-2"]
    launcher.now_s = 2.6
    assert launcher.resume("a/server-1") == (True, ["nothing to heal"])


@pytest.mark.parametrize(("lasts", "until"), [({"for": "2 s"}, "2.5 s"), ({}, "the end")])
def test_what_the_timeline_has_killed_is_not_restarted_and_says_why(
    lasts: dict[str, str], until: str
) -> None:
    """Nor is what lives beside it, where both are named: a refused order changes nothing."""
    launcher = Launcher({"at": "500 ms", **lasts, "server": "a/server-1", "set": KILL})
    launcher.die("a/server-1")
    why = f"a/server-1 is dead by the timeline until {until}, which no order ends"

    assert launcher.restart("a/server-1") == (False, [why])
    assert launcher.restart(*CELL_A) == (False, [why])
    assert launcher.set(KILL, server="a/server-1") == (False, [why])
    assert sorted(launcher.dead()) == ["a/server-1"]
    assert launcher.told == []


def test_what_was_killed_by_hand_is_not_killed_again() -> None:
    assert killed_cell().set(KILL, server="a/server-1") == (False, ["a/server-1 is dead already"])


def test_a_kill_is_ordered_alone() -> None:
    """It becomes an order for each process, and what else is set is not of each."""
    said = "kill is ordered alone; order speed apart"

    assert Launcher().set({**KILL, "speed": 0.5}, cell="a") == (False, [said])


def test_the_lines_of_a_cell_that_was_killed_can_be_run_again() -> None:
    """Each names its process, and when it lived again."""
    launcher = killed_cell()
    launcher.now_s = 2.0
    launcher.restart("a/server-1")

    leaf, server, other = launcher.by_hand.lines()

    assert (leaf["leaf"], server["server"], other["server"]) == tuple(CELL_A)
    assert (leaf.get("for"), server.get("for")) == (None, "1.0 s")
    again = words(leaf, server, other)
    assert len(scenario_from_text(yaml.safe_dump(again)).arms["main"].faults) == 3


def test_orders_that_would_undo_each_other_on_a_link_are_refused() -> None:
    """Messages out of turn where another order, or the timeline, keeps their order."""
    kept = {"at": "0 s", "for": "2 s", "link": NEWS, "set": {"order": "kept"}}
    reorder = {"reorder": {"fraction": "10 %"}}
    said = "reorder does not go with order: kept (a/leaf-1 -> root.west)"

    launcher = Launcher()
    assert launcher.set({"order": "kept"}, link=NEWS)[0]
    assert launcher.set(reorder, link=NEWS) == (False, [said])
    assert launcher.set({**reorder, "order": "free"}, link=NEWS)[0]
    assert launcher.set({"order": "kept"}, link=NEWS) == (False, [said])
    launcher = Launcher(kept)
    assert launcher.set(reorder, link=NEWS) == (False, [said])
    launcher.now_s = 2.5
    assert launcher.set(reorder, link=NEWS)[0]
