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

    def __init__(self, most: float = math.inf) -> None:
        self.count = 0
        self.most = most

    def take(self, number: int, frame: FrameType | None) -> None:
        """The signal's handler."""
        self.count += 1
        if self.count > self.most:
            raise KeyboardInterrupt


@contextmanager
def counted_interrupts(most: float = math.inf) -> Iterator[Interrupts]:
    """Count presses of Ctrl-C instead of raising KeyboardInterrupt at each, unless there are more than `most`.

    A block within another counts on, so that no press is lost between two blocks within a third; its `most` holds
    until it is left. Threads other than the main one take no signals; there nothing is counted.
    """
    if threading.current_thread() is not threading.main_thread():
        yield Interrupts()
        return
    previous = signal.getsignal(signal.SIGINT)
    outer = getattr(previous, "__self__", None)
    if isinstance(outer, Interrupts):
        outers_most, outer.most = outer.most, most
        try:
            yield outer
        finally:
            outer.most = outers_most
        return
    interrupts = Interrupts(most)
    signal.signal(signal.SIGINT, interrupts.take)
    try:
        yield interrupts
    finally:
        signal.signal(signal.SIGINT, previous)
