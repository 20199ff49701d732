"""The chores of a live process: full tables of its logs, rows about its links and itself, beats to the launcher.

A chore takes up to a millisecond, in which nothing else is handled. So each is short and waits until nothing is due for
a while, though not for long. Every process has a phase of its own, far from any grid, and a period that is no multiple
of those that people write: chores that came again and again with the same report would make that one link late.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from testbed.record.log import LogWriter
from testbed.runtime.accounts import Accounts
from testbed.runtime.live_environment import Agenda, LiveEnvironment
from testbed.runtime.wire import Beat

BEAT_S = 1.0071  # wall time between two beats to the launcher, at most
LAST_BEAT_S = 0.1  # once the run has had its duration, and ends when all are idle
ROW_S = BEAT_S  # scenario time between two rows of what links and process did
LEAST_ROW_S = (
    0.2  # wall time; however much a time scale shrinks the run, rows are not to cost more than they tell
)
QUIET_S = 0.001  # wall time that a chore is to have for itself
PATIENCE_S = 0.010  # wall time that it waits for that
STALE_TIMERS = 1024  # replaced timers that may lie about before they are swept
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0  # its multiples, less whole numbers, fall evenly and on no grid


class Chores:
    """When the chores of one process are due, and how they are done; instants in run time.

    Attributes:
        at_s: when the next is due, other than tables that are full.
    """

    def __init__(
        self,
        accounts: Accounts,
        agenda: Agenda,
        environments: dict[str, LiveEnvironment],
        *,
        duration_s: float,
        time_scale: float,
        would_blocks: Callable[[], int],
        held: Callable[[], dict[int, int]],
    ) -> None:
        """Args:
        accounts: of the process.
        agenda: its timers.
        environments: of its nodes, by name; may still grow.
        duration_s: of the run.
        time_scale: of the scenario.
        would_blocks: tells how many frames ever had to wait for a full socket.
        held: tells how many messages wait for their release, by link.
        """
        self._accounts = accounts
        self._agenda = agenda
        self._environments = environments
        self._duration_s = duration_s
        self._phase = 0.0  # this process's share of a period, from 0 to 1
        self._row_s = max(LEAST_ROW_S, ROW_S * time_scale)
        self._would_blocks = would_blocks
        self._held = held
        self._full: list[
            LogWriter
        ] = []  # the logs with a full table, in the order in which they came to have one
        self._full_at_s = math.inf  # when the first of them was seen
        self._next_beat_s = self._next_row_s = self.at_s = math.inf
        self._send_beat: Callable[[Beat], None]

    def add_log(self, log: LogWriter) -> None:
        """Write its tables when they are full."""
        log.full = self._full

    def begin(
        self, at_s: float, number: int, send_beat: Callable[[Beat], None], *, beat_at_once: bool
    ) -> None:
        """Begin at this instant.

        Args:
            at_s: of the start.
            number: of the process among all, or of its first node.
            send_beat: tells the launcher how the process fares.
            beat_at_once: the first beat is due now, not after a while.
        """
        self._phase = number * _GOLDEN % 1.0
        self._send_beat = send_beat
        self._next_beat_s = at_s + (0.0 if beat_at_once else BEAT_S * self._phase)
        self._next_row_s = at_s + self._row_s * (1.0 + self._phase)
        self._plan()

    def beat_at(self, at_s: float) -> None:
        """The next beat is due at this instant."""
        self._next_beat_s = at_s
        self._plan()

    def wake_s(self, now_s: float, due_s: float) -> float:
        """When to wake up for chores; infinite where they wait for what is due at `due_s`, with which the process wakes."""
        at_s = self.at_s
        return at_s if due_s - max(at_s, now_s) >= QUIET_S else math.inf

    def do_some(self, now_s: float, next_due_s: Callable[[], float]) -> bool:
        """Do one of the chores that are due, unless something else is soon; returns whether one was done.

        Args:
            now_s: the instant.
            next_due_s: tells the next instant at which something is due.
        """
        if self._full:
            self._full_at_s = min(self._full_at_s, now_s)
        due_s = min(self._full_at_s, self.at_s)
        if now_s < due_s or (now_s < due_s + PATIENCE_S and next_due_s() - now_s < QUIET_S):
            return False
        if self._full:
            self._full.pop(0).write_full()
            self._full_at_s = math.inf
            return True
        if now_s >= self._next_row_s:
            self._write_rows(now_s)
        else:
            self._beat(now_s)
        self._plan()
        return True

    def _write_rows(self, now_s: float) -> None:
        """Record what links and process did, of many links some at a time, and then sweep."""
        if not self._accounts.write_some_rows(now_s, self._would_blocks()):
            return
        self._next_row_s = max(self._next_row_s + self._row_s, now_s)
        if self._next_beat_s < now_s + BEAT_S / 2:  # soon due: one wake-up does for both
            self._next_beat_s = now_s
        timers = sum(len(environment.timers) for environment in self._environments.values())
        if len(self._agenda.heap) > STALE_TIMERS + 2 * timers:
            self._agenda.forget_stale()

    def _beat(self, now_s: float) -> None:
        """Tell the launcher how the process fares."""
        if now_s >= self._duration_s:
            self._next_beat_s = now_s + LAST_BEAT_S
        else:
            self._next_beat_s = min(now_s + BEAT_S, self._duration_s + LAST_BEAT_S * self._phase)
        self._send_beat(self._accounts.take_beat(now_s, self._held()))

    def _plan(self) -> None:
        self.at_s = min(self._next_beat_s, self._next_row_s)
