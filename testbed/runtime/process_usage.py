"""What a process of the live engine uses, and how its loop keeps up; read from the kernel, second by second."""

from __future__ import annotations

import os
import time
from typing import Any

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class ProcessUsage:
    """Counts of this process since its last row in table `processes`.

    Attributes:
        lag_s: largest time that a timer fired after it was due.
        stall_s: longest pass of the loop.
        passes: of the loop.
        would_blocks: frames that had to wait for a full socket, all that the next row is to leave out.
    """

    __slots__ = ("_cpu_s", "_statm", "lag_s", "passes", "stall_s", "would_blocks")

    def __init__(self) -> None:
        """Begin to count."""
        self._statm = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
        self._cpu_s = time.process_time()
        self.lag_s = self.stall_s = 0.0
        self.passes = 0
        self.would_blocks = 0

    def take_row(self, node: str, at_s: float, would_blocks: int) -> tuple[Any, ...]:
        """The row of table `processes` up to this instant of run time; what it counts is not counted again.

        Args:
            node: name of the process.
            at_s: run time.
            would_blocks: frames that ever had to wait.
        """
        cpu_s = time.process_time()
        resident_pages = int(os.pread(self._statm, 128, 0).split()[1])
        row = (
            node, at_s, cpu_s - self._cpu_s, resident_pages * _PAGE_BYTES, self.lag_s, self.stall_s, self.passes,
            would_blocks - self.would_blocks,
        )  # fmt: skip
        self.would_blocks = would_blocks
        self._cpu_s = cpu_s
        self.lag_s = self.stall_s = 0.0
        self.passes = 0
        return row

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self._statm)
