"""A link of limited rate: messages leave one after another, and so many may wait.

A message takes 1/rate seconds to send, or its bytes/bandwidth, whichever is longer. One that finds `queue` others
waiting behind the one being sent is dropped.
"""

from __future__ import annotations

from collections import deque


class RateLimit:
    """The queue before a link, as the instants at which its messages will have been sent."""

    __slots__ = ("_sent_at_s",)

    def __init__(self) -> None:
        """Begin empty."""
        self._sent_at_s: deque[float] = deque()

    def sent_at_s(self, now_s: float, sending_s: float, queue: int) -> float | None:
        """When a message that comes now will have been sent; None: the queue is full.

        Args:
            now_s: never before that of an earlier call.
            sending_s: how long it takes to send this message.
            queue: messages that may wait behind the one being sent.
        """
        sent_at_s = self._sent_at_s
        while sent_at_s and sent_at_s[0] <= now_s:
            sent_at_s.popleft()
        if len(sent_at_s) > queue:
            return None
        at_s = (sent_at_s[-1] if sent_at_s else now_s) + sending_s
        sent_at_s.append(at_s)
        return at_s
