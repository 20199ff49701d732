"""What a process of the live engine uses, and how its loop keeps up; read from the kernel, second by second."""

from __future__ import annotations

import gc
import math
import os
import time
from typing import Any

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class ProcessUsage:
    """Counts of this process since its last row in table `processes`.

    Attributes:
        lag_s: largest time that a timer fired after it was due.
        stall_s: longest pass of the loop.
        stall_at_s: run time at which that pass began.
        collector_s: longest collection of cyclic garbage.
        passes: of the loop.
        would_blocks: frames that had to wait for a full socket, all that the next row is to leave out.
    """

    __slots__ = (
        "_collecting_from_s", "_cpu_s", "_statm", "collector_s", "lag_s", "passes", "stall_at_s", "stall_s", "would_blocks",
    )  # fmt: skip

    def __init__(self) -> None:
        """Begin to count."""
        self._statm = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
        self._cpu_s = time.process_time()
        self.lag_s = self.stall_s = self.collector_s = 0.0
        self.stall_at_s = math.nan
        self.passes = 0
        self.would_blocks = 0
        self._collecting_from_s = 0.0
        gc.callbacks.append(self._on_collection)

    def note_pass(self, began_at_s: float, spent_s: float) -> None:
        """A pass of the loop, which counts if it is the longest so far: began at this run time, took so long."""
        if spent_s > self.stall_s:
            self.stall_s, self.stall_at_s = spent_s, began_at_s

    def take_row(self, node: str, at_s: float, would_blocks: int, log_pause_s: float) -> tuple[Any, ...]:
        """The row of table `processes` up to this instant of run time; what it counts is not counted again.

        Args:
            node: name of the process.
            at_s: run time.
            would_blocks: frames that ever had to wait.
            log_pause_s: the longest time that writing to a log took.
        """
        cpu_s = time.process_time()
        resident_pages = int(os.pread(self._statm, 128, 0).split()[1])
        row = (
            node, at_s, cpu_s - self._cpu_s, resident_pages * _PAGE_BYTES, self.lag_s, self.stall_s, self.stall_at_s,
            log_pause_s, self.collector_s, self.passes, would_blocks - self.would_blocks,
        )  # fmt: skip
        self.would_blocks = would_blocks
        self._cpu_s = cpu_s
        self.lag_s = self.stall_s = self.collector_s = 0.0
        self.stall_at_s = math.nan
        self.passes = 0
        return row

    def close(self) -> None:
        """Give the descriptor back, and mind collections no longer."""
        os.close(self._statm)
        gc.callbacks.remove(self._on_collection)

    def _on_collection(self, phase: str, info: dict[str, int]) -> None:
        """The collector begins or ends; it rests during a run, unless a policy of the user's wakes it."""
        now_s = time.monotonic()
        if phase == "start":
            self._collecting_from_s = now_s
        else:
            self.collector_s = max(self.collector_s, now_s - self._collecting_from_s)
