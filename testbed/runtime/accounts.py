"""What a process of the live engine tells of itself: beats for people, rows for its log, the ledger at the end."""

from __future__ import annotations

import numpy as np

from testbed.links.lateness import BIN_COUNT, bin_end_s, percentile_s
from testbed.runtime.live_environment import LiveEnvironment
from testbed.runtime.process_usage import ProcessUsage
from testbed.runtime.receiving_end import ReceivingEnd
from testbed.runtime.sending_end import SendingEnd
from testbed.runtime.wire import Beat, Ledger

MOST_AT_ONCE = 8  # ends of links of which rows are written in one pass: a tenth of a millisecond
MOST_TO_FOLD = 32  # links whose latest lateness goes into a beat


class Accounts:
    """The counts of one process.

    Attributes:
        sending: the ends of the links that its nodes send on.
        receiving: the ends of those that its nodes receive on, by the link's number.
        usage: what the process uses, and how its loop keeps up.
        bins: lateness of all links since the last beat.
    """

    def __init__(self, name: str, environments: dict[str, LiveEnvironment]) -> None:
        """Args:
        name: of the process.
        environments: of its nodes, by name; may still grow.
        """
        self._name = name
        self._environments = environments
        self.sending: list[SendingEnd] = []
        self.receiving: dict[int, ReceivingEnd] = {}
        self.usage = ProcessUsage()
        self.bins = np.zeros(BIN_COUNT, np.int64)
        self._to_write: list[SendingEnd | ReceivingEnd] = []  # what is left of a round of rows

    def take_beat(self, now_s: float, held: dict[int, int]) -> Beat:
        """How the process fares; lateness is counted from here on anew.

        A process with very many links tells the lateness that it has put down in rows since the last beat.

        Args:
            now_s: run time.
            held: messages that wait for their release, by link.
        """
        if len(self.receiving) <= MOST_TO_FOLD:
            for end in self.receiving.values():
                end.fold(self.bins)
        gauges = {name: environment.role.gauges() for name, environment in self._environments.items()}
        counted = np.flatnonzero(self.bins)
        is_late = bool(len(counted))  # or nothing was handed over at all
        beat = Beat(
            node=self._name,
            at_s=now_s,
            gauges=gauges,
            idle=self._is_idle(held),
            sent=sum(end.all_sent for end in self.sending),
            lateness_p99_s=percentile_s(self.bins.tolist(), 0.99) if is_late else 0.0,
            lateness_max_s=bin_end_s(int(counted[-1])) if is_late else 0.0,
        )
        self.bins[:] = 0
        return beat

    def write_some_rows(self, now_s: float, would_blocks: int) -> bool:
        """A row for each end of each link that did something since its last row, and at last one for the process.

        Of many links each call writes some: all at once would make what is due meanwhile late by tens of milliseconds.

        Returns:
            Whether the round is complete.
        """
        if not self._to_write:
            self._to_write = [*self.sending, *self.receiving.values()]
        for _ in range(min(MOST_AT_ONCE, len(self._to_write))):
            self._write_row(self._to_write.pop(), now_s, is_last=False)
        if self._to_write:
            return False
        self._write_usage(now_s, would_blocks)
        return True

    def write_last_rows(self, now_s: float, would_blocks: int) -> None:
        """A row for every end of every link, and one for the process."""
        for sending in self.sending:
            self._write_row(sending, now_s, is_last=True)
        for receiving in self.receiving.values():
            self._write_row(receiving, now_s, is_last=True)
        self._write_usage(now_s, would_blocks)

    def _write_row(self, end: SendingEnd | ReceivingEnd, now_s: float, *, is_last: bool) -> None:
        if isinstance(end, SendingEnd):
            if end.sent or is_last:
                self._environments[end.link.source].record("sent", end.take_row(now_s))
            return
        end.fold(self.bins)
        if end.delivered or end.inversions or is_last:
            end.environment.record("delivered", end.take_row(now_s))

    def _write_usage(self, now_s: float, would_blocks: int) -> None:
        first = next(iter(self._environments.values()))
        log_pause_s = max(environment.log.take_pause_s() for environment in self._environments.values())
        first.record("processes", self.usage.take_row(self._name, now_s, would_blocks, log_pause_s))

    def is_settled(self, expected: dict[int, int]) -> bool:
        """Whether as many messages have come on each link as are expected."""
        return all(self.receiving[number].received >= count for number, count in expected.items())

    def sent_ledger(self) -> Ledger:
        """What the roles sent, by link."""
        return Ledger(
            self._name,
            {end.link.number: end.totals() for end in self.sending},
            {end.link.number: end.carried() for end in self.sending},
            {},
        )

    def received_ledger(self, held: dict[int, int]) -> Ledger:
        """What the roles were handed and what is still held, by link."""
        received = {number: (end.totals(), held.get(number, 0)) for number, end in self.receiving.items()}
        return Ledger(self._name, {}, {}, received)

    def close(self) -> None:
        """Give back what counting took."""
        self.usage.close()

    def _is_idle(self, held: dict[int, int]) -> bool:
        """No role waits for anything, and no request or answer is on its way to one."""
        return all(environment.role.is_idle() for environment in self._environments.values()) and all(
            self.receiving[number].link.path == "observation" for number in held
        )
