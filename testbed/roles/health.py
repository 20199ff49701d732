"""Active health checks: who does not answer is left out until it answers again.

Theory of operation. Every period a balancer asks each of its targets (a leaf its servers, a root the leaves of its
cells) whether it is there. Who has not answered when the timeout is over has failed the check. After so many failures
in a row a target is left out, after so many answers in a row it is used again; where all would be out, all are used.
A check goes over the probe path and tells of the process and of the links alone: one that answers checks may still
fail every request.

Both ends stand in front of their role, and only where the scenario has checks, so nobody else pays for them.
"""

from __future__ import annotations

from collections.abc import Sequence

from testbed.roles.environment import LIFE_BITS, Environment, Role
from testbed.roles.messages import HEALTH, Check, CheckReply, Message, Notice, Rotation, Setting
from testbed.roles.pass_through import PassThroughRole
from testbed.roles.schedule import Schedule
from testbed.scenario.resilience_words import HealthChecks


class _Record:
    """What the checks of one target have shown."""

    __slots__ = ("failures", "is_awaited", "is_out", "successes")

    def __init__(self) -> None:
        self.failures = 0  # in a row
        self.successes = 0  # in a row
        self.is_out = False
        self.is_awaited = False


class CheckingHealth(PassThroughRole):
    """Hands on to its balancer all but the answers to its checks, and tells it whom to leave out."""

    def __init__(
        self,
        role: Role,
        env: Environment,
        name: str,
        targets: Sequence[str],
        words: HealthChecks,
        phase_s: float,
    ) -> None:
        """Args:
        role: the balancer.
        env: its world.
        name: of its node.
        targets: whom it checks.
        words: how.
        phase_s: when it checks first.
        """
        super().__init__(role)
        self._env = env
        self._name = name
        self._words = words
        self._records = {target: _Record() for target in targets}
        self._schedule = Schedule(words.every, phase_s)
        self._sequence = env.life << LIFE_BITS

    def start(self) -> None:
        """Wait for the first round."""
        super().start()
        self._env.set_timer("health", self._schedule.first_s(self._env.now_s()))

    def on_message(self, source: str, message: Message | Notice) -> None:
        """Take an answer; all else is the balancer's."""
        if isinstance(message, CheckReply):
            self._on_answer(source, message)
        else:
            self._hand_on(source, message)

    def on_timer(self, name: str) -> None:
        """A round of checks begins, or its time is up."""
        if name == "health":
            self._check_all()
        elif name == "health:timeout":
            self._end_round()
        else:
            super().on_timer(name)

    def _check_all(self) -> None:
        now_s = self._env.now_s()
        self._end_round()  # where a stopped process has missed the timeout
        self._sequence += 1
        for target, record in self._records.items():
            record.is_awaited = True
            self._env.send(target, Check(self._sequence, 0))
        self._env.set_timer("health:timeout", now_s + self._words.timeout_s)
        self._env.set_timer("health", self._schedule.passed(now_s))

    def _on_answer(self, source: str, answer: CheckReply) -> None:
        record = self._records[source]
        if not record.is_awaited or answer.sequence != self._sequence:
            return  # too late
        record.is_awaited = False
        record.failures = 0
        record.successes += 1
        if record.is_out and record.successes >= self._words.healthy_after:
            self._rotate(source, record, inside=True)

    def _end_round(self) -> None:
        """Who has not answered yet has failed."""
        for target, record in self._records.items():
            if not record.is_awaited:
                continue
            record.is_awaited = False
            record.successes = 0
            record.failures += 1
            if not record.is_out and record.failures >= self._words.unhealthy_after:
                self._rotate(target, record, inside=False)

    def _rotate(self, target: str, record: _Record, *, inside: bool) -> None:
        record.is_out = not inside
        self._env.record("rotations", (self._name, target, self._env.now_s(), inside, HEALTH))
        self._hand_on("", Rotation(target, inside, HEALTH))


class AnsweringChecks(PassThroughRole):
    """Answers the checks of balancers for its role, unless the role is absent."""

    def __init__(self, role: Role, env: Environment) -> None:
        """It is there."""
        super().__init__(role)
        self._env = env
        self._is_absent = False

    def on_message(self, source: str, message: Message | Notice) -> None:
        """Answer a check; all else is the role's."""
        if isinstance(message, Check):
            if not self._is_absent:
                self._env.send(source, CheckReply(message.sequence, 0))
            return
        if isinstance(message, Setting) and message.key == "absent":
            self._is_absent = bool(message.value)
        self._hand_on(source, message)
