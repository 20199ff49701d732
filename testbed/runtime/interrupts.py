"""Ctrl-C: how often it was pressed, and what the last of it ends."""

from __future__ import annotations

import math
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupts:
    """How often Ctrl-C was pressed.

    Attributes:
        count: so far.
        most: presses that are counted and no more; each beyond raises KeyboardInterrupt.
    """

    def __init__(self, count: int = 0, most: float = math.inf) -> None:
        self.count = count
        self.most = most

    def take(self, number: int, frame: FrameType | None) -> None:
        """The signal's handler."""
        self.count += 1
        if self.count > self.most:
            raise KeyboardInterrupt


@contextmanager
def counted_interrupts(count: int = 0, most: float = math.inf) -> Iterator[Interrupts]:
    """Count presses of Ctrl-C from `count` on instead of raising KeyboardInterrupt at each, unless there are more than `most`.

    Threads other than the main one take no signals; there nothing is counted.
    """
    interrupts = Interrupts(count, most)
    if threading.current_thread() is not threading.main_thread():
        yield interrupts
        return
    previous = signal.signal(signal.SIGINT, interrupts.take)
    try:
        yield interrupts
    finally:
        signal.signal(signal.SIGINT, previous)
