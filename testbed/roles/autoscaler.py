"""An autoscaler in the loop of a cell: it takes servers in and out by what the cell's leaf reports.

Theory of operation. Every period it notes what the leaf last told the roots, per server in use: requests in flight,
requests queued, or the utilisation that the servers' rate curve has at so many in flight. What was noted `reaction` ago
is what it acts on, over its target, as the ratio by which the servers (those that start up among them) are to change:

    wanted = ceil(servers * measured / target), within min and max; no change within the tolerance

A server that is wanted starts up for a while and then takes requests; of those that are not wanted any more, first the
ones that still start up are given back, then the last ones in use, which take no new requests and finish what they
have. After a change there is none for `cooldown`. With `down_after` it goes down only to the most that was wanted in
that time. All this is the rule of Kubernetes' horizontal pod autoscaler, with its delays as words of the scenario.

A loop with a delay: who acts again before the last action shows in the measurements acts twice on the same news.

It stands in front of the leaf and takes servers out of rotation as a draining fault does; the processes are there all
the while. Only cells with the words have it. A leaf that is restarted begins with the servers of the start.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import Any

from testbed.roles.environment import Environment, Role
from testbed.roles.messages import SCALING, Message, Report, Rotation
from testbed.roles.pass_through import PassThroughEnvironment, PassThroughRole
from testbed.roles.schedule import Schedule
from testbed.scenario.resilience_words import AutoscalerWords
from testbed.serving.rate_curve import RateCurve

_EDGE = 1e-9  # 2 * 0.75 / 0.5 is 3, whatever the last bit says


class ReportTap(PassThroughEnvironment):
    """The environment of a leaf, in which its last report is kept."""

    def __init__(self, env: Environment) -> None:
        """Nothing was reported yet."""
        super().__init__(env)
        self.last: Report | None = None

    def send(self, target: str, message: Message) -> None:
        """Send, and keep what is a report."""
        if isinstance(message, Report):
            self.last = message
        self._send(target, message)


def wanted_servers(servers: int, measured: float, words: AutoscalerWords, most: int) -> int:
    """How many servers there should be.

    Args:
        servers: in use or starting up.
        measured: per server, in the measure of the target.
        words: target, tolerance and least number.
        most: there can be.
    """
    ratio = measured / words.target
    if abs(ratio - 1.0) <= words.tolerance:
        return servers
    return max(words.min, min(most, math.ceil(servers * ratio - _EDGE)))


class Autoscaler(PassThroughRole):
    """Hands all on to its leaf, and tells it which servers are in rotation; see the top of this file."""

    def __init__(
        self,
        role: Role,
        tap: ReportTap,
        cell: str,
        leaf: str,
        servers: Sequence[str],
        words: AutoscalerWords,
        curve: RateCurve,
        phase_s: float,
    ) -> None:
        """Args:
        role: the leaf.
        tap: its environment.
        cell: its name.
        leaf: name of the node.
        servers: those that there are at the most, in the order in which they are taken.
        words: the scenario's.
        curve: of a server.
        phase_s: when it looks first.
        """
        super().__init__(role)
        self._env = tap
        self._tap = tap
        self._cell = cell
        self._leaf = leaf
        self._servers = servers
        self._words = words
        self._curve = curve
        self._most = len(servers) if words.max is None else words.max
        self._schedule = Schedule(words.every, phase_s)
        self._in_use = words.min if words.start is None else words.start
        self._ready_at_s: deque[float] = deque()  # of those that start up
        self._measured: deque[tuple[float, float]] = deque()  # (at, measured), not acted upon yet
        self._acts_on = (math.nan, math.nan)
        self._wanted: deque[tuple[float, int]] = deque()  # in the last `down_after`
        self._quiet_until_s = -math.inf

    def start(self) -> None:
        """Begin with the servers of the start."""
        super().start()
        for server in self._servers[self._in_use :]:
            self._rotate(server, inside=False)
        self._env.set_timer("scale", self._schedule.first_s(self._env.now_s()))

    def on_timer(self, name: str) -> None:
        """It is time to look, or a server has started up."""
        if name == "scale":
            self._look()
        elif name == "scale:ready":
            self._take_in()
        else:
            super().on_timer(name)

    def _look(self) -> None:
        now_s, words = self._env.now_s(), self._words
        self._env.set_timer("scale", self._schedule.passed(now_s))
        if self._tap.last is not None:
            self._measured.append((now_s, self._measure(self._tap.last)))
        while self._measured and self._measured[0][0] <= now_s - words.reaction + _EDGE:
            self._acts_on = self._measured.popleft()
        at_s, measured = self._acts_on
        there = self._in_use + len(self._ready_at_s)
        wanted = there if math.isnan(measured) else wanted_servers(there, measured, words, self._most)
        self._wanted.append((now_s, wanted))
        while self._wanted[0][0] < now_s - words.down_after:
            self._wanted.popleft()
        if now_s >= self._quiet_until_s:
            self._change(there, wanted, now_s)
        row: tuple[Any, ...] = (
            self._cell,
            now_s,
            at_s,
            measured,
            wanted,
            self._in_use,
            len(self._ready_at_s),
        )
        self._env.record("scalings", row)

    def _measure(self, report: Report) -> float:
        """What the target is of, per server in use."""
        queued, in_flight = report.queued / self._in_use, (report.queued + report.running) / self._in_use
        if self._words.queued is not None:
            return queued
        if self._words.in_flight is not None:
            return in_flight
        return self._curve.rate_per_s(in_flight) / self._curve.divisor_per_s

    def _change(self, there: int, wanted: int, now_s: float) -> None:
        goal = wanted if wanted > there else min(there, max(number for _, number in self._wanted))
        if goal == there:
            return
        self._quiet_until_s = now_s + self._words.cooldown
        for _ in range(goal - there):
            self._ready_at_s.append(now_s + self._words.start_up)
        for _ in range(there - goal):
            self._give_back()
        if self._ready_at_s:
            self._take_in()

    def _give_back(self) -> None:
        if self._ready_at_s:
            self._ready_at_s.pop()
            return
        self._in_use -= 1
        self._rotate(self._servers[self._in_use], inside=False)

    def _take_in(self) -> None:
        """Use those that have started up, and wait for the next one."""
        now_s = self._env.now_s()
        while self._ready_at_s and self._ready_at_s[0] <= now_s:
            self._ready_at_s.popleft()
            self._in_use += 1
            self._rotate(self._servers[self._in_use - 1], inside=True)
        if self._ready_at_s:
            self._env.set_timer("scale:ready", self._ready_at_s[0])

    def _rotate(self, server: str, *, inside: bool) -> None:
        self._env.record("rotations", (self._leaf, server, self._env.now_s(), inside, SCALING))
        self._hand_on("", Rotation(server, inside, SCALING))
