"""Sockets that carry nothing, and a clock that moves only while a loop waits."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from testbed.record.log import LogWriter
from testbed.roles.build import World
from testbed.roles.environment import Environment
from testbed.roles.messages import Message
from testbed.runtime.live import Host
from testbed.runtime.wire import Beat, Received, Section, Start, pack_frame, unpack_frame
from testbed.scenario.load import scenario_from_text
from testbed.scenario.topology import build_topology
from testbed.traffic.plan import build_plan

TEXT = """
name: pair
duration: 1 s
seed: 1
cells: {a: {servers: 1, service: {slots: 1, fixed: 1 ms}}}
roots: {r: {traffic: [{class: c, rate: 1 /s, policy: p}]}}
classes: {c: {}}
policies: {p: {kind: random}}
links:
  - {from: root.*, to: cell.*, path: request, delay: 20 ms}
"""


def pair_world(*, text: str = TEXT, **changes: Any) -> World:
    """A root, a leaf and a server; keys of the scenario may be changed."""
    scenario = scenario_from_text(text).arms["main"].model_copy(update=changes).scaled()
    return World(scenario, build_topology(scenario), build_plan(scenario))


@dataclass
class FakeSockets:
    """What a host does with its sockets; `incoming` are (instant of the clock at which they come, frame).

    The run begins at 0 of the clock, so that its instants are those of the run to the bit."""

    peers: dict[str, str]
    now_s: float = 0.0
    incoming: list[tuple[float, bytes]] = field(default_factory=list)
    sent: list[tuple[str, list[Received]]] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    sleeps: list[float] = field(default_factory=list)
    waiting: tuple[()] = ()
    frames_readable: bool = False
    control_readable: bool = False
    stuck: bool = False
    would_blocks: int = 0
    on_send: Callable[[], None] = lambda: None

    def clock(self) -> float:
        return self.now_s

    def send(self, peer: str, frame: bytes) -> None:
        self.on_send()
        self.sent.append((peer, unpack_frame(frame)))

    def retry(self) -> None:
        assert not self.waiting

    def receive(self) -> list[bytes]:
        self.frames_readable = False
        frames = [frame for at_s, frame in self.incoming if at_s <= self.now_s]
        self.incoming = [each for each in self.incoming if each[0] > self.now_s]
        return frames

    def wait(self, until_s: float) -> None:
        self.waits.append(until_s)
        first_s = min((at_s for at_s, _ in self.incoming), default=math.inf)
        if not self.stuck:
            self.now_s = max(self.now_s, min(until_s, first_s))
        self.frames_readable = first_s <= self.now_s

    def sleep_until(self, at_s: float) -> None:
        self.sleeps.append(at_s)
        self.now_s = max(self.now_s, at_s)


@dataclass
class ToldRole:
    """Notes what it is told and when, and does what the test says."""

    env: Environment
    on_start: Callable[[Environment], None] = lambda env: None
    react: Callable[[Environment, object], None] = lambda env, what: None
    told: list[tuple[float, object]] = field(default_factory=list)
    stopped: bool = False

    def start(self) -> None:
        self.on_start(self.env)

    def on_message(self, source: str, message: Message) -> None:
        self.told.append((self.env.now_s(), message))
        self.react(self.env, message)

    def on_timer(self, name: str) -> None:
        self.told.append((self.env.now_s(), name))
        self.react(self.env, name)

    def stop(self, *, killed: bool = False) -> None:
        self.stopped = True

    def is_idle(self) -> bool:
        return False

    def gauges(self) -> tuple[int, int, int]:
        return len(self.told), 0, 0


class DeadError(Exception):
    """A fault has killed the process."""


def die() -> None:
    raise DeadError


class Hosted:
    """A host of one role with fake sockets, run until an instant of run time.

    A fault may stop it once: it is woken at `woken_at_s`, to be told that the run is over."""

    woken_at_s = math.inf

    def __init__(
        self, folder: Any, node: str, world: World, *, log: Mapping[str, int] | None = None, **role: Any
    ) -> None:
        names = [name for name in world.topology.nodes if name != node]
        self.sockets = FakeSockets({name: name for name in names})
        self.beats: list[Beat] = []
        self.path = folder / "node.log"
        self.world = world
        self.host = Host(
            node,
            world,
            self.sockets,
            self._on_control,
            self.sockets.clock,
            die=die,
            stop_self=self._stop_self,
        )
        self.host.add(node, LogWriter(self.path, {}, **(log or {})))
        self.host.build(lambda name, world, env: self._make(env, role))

    def _make(self, env: Environment, role: dict[str, Any]) -> ToldRole:
        self.role = ToldRole(env, **role)
        return self.role

    def _stop_self(self) -> None:
        self.sockets.now_s = self.woken_at_s
        self.sockets.control_readable = True

    def _on_control(self) -> None:
        self.host.end()

    def link(self, source: str, target: str, path: str) -> int:
        links = self.world.topology.links
        return next(
            each.number for each in links if (each.source, each.target, each.path) == (source, target, path)
        )

    def come(self, at_s: float, *sections: Section) -> None:
        """A frame that reaches the process at this instant of run time."""
        self.sockets.incoming.append((at_s, pack_frame(list(sections))))

    def run(self, until_s: float) -> list[tuple[float, object]]:
        """Run; returns what the role was told, with what `now_s` said."""
        self.role.env.set_timer("end of the test", until_s)
        react = self.role.react

        def ending(env: Environment, what: object) -> None:
            if what == "end of the test":
                self.host.end()
            else:
                react(env, what)

        self.role.react = ending
        self.host.run(Start(0.0), self.beats.append, {})
        return [each for each in self.role.told if each[1] != "end of the test"]
