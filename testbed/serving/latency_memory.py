"""What a server tells a probe: the latency that a newcomer may expect at the present count in flight.

On completion a server stores the latency under the count in flight when the request came; the answer to a probe
is the median of recent latencies whose count is at or nearest to the present one. Source: Wydrowski, Kleinberg,
Rumble and Archer, Prequal (NSDI 2024).
"""

from __future__ import annotations

from collections import deque
from statistics import median

MEMORY = 16  # latencies kept per count in flight: at high load the last few hundredths of a second


class LatencyMemory:
    """Recent latencies by requests in flight at arrival."""

    def __init__(self) -> None:
        """Remember nothing."""
        self._latencies: dict[int, deque[float]] = {}

    def add(self, in_flight: int, latency_s: float) -> None:
        """Store the latency of a completed request that found `in_flight` requests when it came."""
        self._latencies.setdefault(in_flight, deque(maxlen=MEMORY)).append(latency_s)

    def latency_s(self, in_flight: int) -> float:
        """Expected latency for a newcomer, seconds; 0 before anything was completed."""
        if not self._latencies:
            return 0.0
        nearest = min(self._latencies, key=lambda count: (abs(count - in_flight), count))
        return median(self._latencies[nearest])
