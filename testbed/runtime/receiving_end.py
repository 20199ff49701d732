"""The receiver's end of a link in the live engine: what was handed over, and how late.

Counts are kept since the last row of the log, and since the run began for the ledger.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testbed.links.lateness import BIN_COUNT, bin_of, counts_by_bin
from testbed.roles.messages import Message
from testbed.runtime.live_environment import LiveEnvironment
from testbed.scenario.topology import Link

FOLD = 256  # late messages counted into bins at a time: few enough that it takes some 20 us


class ReceivingEnd:
    """The receiver's half of a link.

    Attributes:
        environment: of the role that receives.
        source: name of the sending node.
        on_message: the role's; set once the role is there.
        received: messages that have reached this process since the run began.
        inversions: of these, those that came after their release, since the last row. On a link without delay
            that is every message.
        lateness_s: of messages handed over that `fold` has yet to count.
    """

    __slots__ = (
        "_all_delivered", "_bins", "_late_max_s", "_late_s", "delivered", "environment", "inversions", "lateness_s",
        "link", "on_message", "received", "source",
    )  # fmt: skip

    def __init__(self, link: Link, environment: LiveEnvironment) -> None:
        """Args:
        link: of the topology.
        environment: of the node at its end.
        """
        self.link = link
        self.environment = environment
        self.source = link.source
        self.on_message: Callable[[str, Message], None]
        self.received = self.inversions = self.delivered = self._all_delivered = 0
        self.lateness_s: list[float] = []
        self._late_s = self._late_max_s = 0.0
        self._bins = np.zeros(BIN_COUNT, np.int64)

    def fold(self, all_bins: NDArray[np.int64]) -> None:
        """Count the lateness gathered so far into the bins of this link and into those of the process."""
        lateness_s = self.lateness_s
        if not lateness_s:
            return
        counts = counts_by_bin(lateness_s)
        self._bins += counts
        all_bins += counts
        self.delivered += len(lateness_s)
        self._late_s += sum(lateness_s)
        self._late_max_s = max(self._late_max_s, max(lateness_s))
        lateness_s.clear()

    def take_row(self, at_s: float) -> tuple[Any, ...]:
        """The row of table `delivered` up to this instant, after `fold`; what it counts is not counted again."""
        top = bin_of(self._late_max_s) + 1 if self.delivered else 0
        row = (
            self.link.number, at_s, self.delivered, self.inversions, self._late_s, self._late_max_s, self._bins[:top].tolist(),
        )  # fmt: skip
        self._all_delivered += self.delivered
        self.delivered = self.inversions = 0
        self._late_s = self._late_max_s = 0.0
        self._bins[:] = 0
        return row

    def totals(self) -> int:
        """Messages handed to the role since the run began."""
        return self._all_delivered + self.delivered + len(self.lateness_s)
