"""A balancer that asks for reports: all reporters at once, or one after the other."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from testbed.roles.environment import LIFE_BITS, Environment
from testbed.roles.messages import Poll
from testbed.roles.schedule import Schedule


@dataclass(frozen=True)
class Polls:
    """Whom to ask for reports, when a period begins, and whether one after the other."""

    reporters: Sequence[str]
    schedule: Schedule
    in_series: bool


class Poller:
    """Asks every reporter once a period; each answers with a report.

    In series the next is asked when the last one's report has come. One that keeps silent holds the others up until
    the next period begins; then the round goes on without it, and when all have been asked the next round begins.
    """

    def __init__(self, env: Environment, timer: str, polls: Polls) -> None:
        """Args:
        env: the world around the balancer.
        timer: name of the timer, which is this poller's own.
        polls: whom to ask, and when.
        """
        self._env = env
        self._timer = timer
        self._reporters = polls.reporters
        self._schedule = polls.schedule
        self._in_series = polls.in_series
        self._left: deque[str] = deque()  # of a round in series, not asked yet
        self._asked = ""  # the one whose report is waited for
        self._sequence = env.life << LIFE_BITS

    def start(self) -> None:
        """Wait for the first period."""
        self._env.set_timer(self._timer, self._schedule.first_s(self._env.now_s()))

    def on_timer(self) -> None:
        """A period begins."""
        if not self._in_series:
            for reporter in self._reporters:
                self._ask(reporter)
        else:
            if not self._left:
                self._left.extend(self._reporters)
            self._ask_next()
        self._env.set_timer(self._timer, self._schedule.passed(self._env.now_s()))

    def on_report(self, source: str) -> None:
        """A report has come."""
        if source == self._asked:
            self._asked = ""
            self._ask_next()

    def _ask_next(self) -> None:
        if self._left:
            self._asked = self._left.popleft()
            self._ask(self._asked)

    def _ask(self, reporter: str) -> None:
        self._env.send(reporter, Poll(self._sequence, 0))
        self._sequence += 1
