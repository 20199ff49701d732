"""What a server tells a probe: the latency that a newcomer may expect at the present count in flight.

On completion a server stores the latency together with the count in flight that the request found when it came. The
answer to a probe is the median of those, among the latest completions, whose counts are nearest to the present one.
It takes a number of them, so that a request without work does not make a server look quick; and if nothing was completed
for many times as long, nothing is known any more. Otherwise an unlucky estimate would drive the traffic away and stay.

Source: Wydrowski, Kleinberg, Rumble and Archer, Prequal (NSDI 2024), section 4, which leaves the numbers open.
"""

from __future__ import annotations

from collections import deque

MEMORY = 32  # completions that are remembered: half a second of a server at 70 requests per second
ENOUGH = 16  # of these, as many of the nearest counts make an answer

STALE = 20.0  # times the estimate without a completion, and the estimate is dropped


class LatencyMemory:
    """The latest latencies by requests in flight at arrival."""

    def __init__(self) -> None:
        """Remember nothing."""
        self._latest: deque[tuple[int, float]] = deque()  # (in flight, latency), in order of completion
        self._by_count: dict[int, deque[float]] = {}
        self._latest_at_s = 0.0

    def add(self, in_flight: int, latency_s: float, now_s: float) -> None:
        """Store the latency of a request completed now that found `in_flight` requests when it came."""
        self._latest_at_s = now_s
        self._latest.append((in_flight, latency_s))
        self._by_count.setdefault(in_flight, deque()).append(latency_s)
        if len(self._latest) > MEMORY:
            forgotten, _ = self._latest.popleft()
            kept = self._by_count[forgotten]
            kept.popleft()
            if not kept:
                del self._by_count[forgotten]

    def latency_s(self, in_flight: int, now_s: float) -> float:
        """Expected latency for a newcomer, seconds; 0 if it is not known."""
        expected_s = self._median_s(in_flight)
        return expected_s if now_s - self._latest_at_s <= STALE * expected_s else 0.0

    def _median_s(self, in_flight: int) -> float:
        found: list[float] = []
        for latencies in self._nearest(in_flight):
            found += latencies
            if len(found) >= ENOUGH:
                break
        return sorted(found)[len(found) // 2] if found else 0.0

    def _nearest(self, in_flight: int) -> list[deque[float]]:
        """The latencies of each count, the nearest counts first and of two equally near ones the lower."""
        by_count = self._by_count
        return [
            by_count[count] for count in sorted(by_count, key=lambda count: (abs(count - in_flight), count))
        ]
