"""What a server tells a probe: the latency that a newcomer may expect at the present count in flight.

On completion a server stores the latency under the count in flight that the request found when it came. The answer to a
probe is the median of the latest latencies at the present count, those of the nearest counts added until there are
enough of them, so that a request without work does not make a server look quick. Since each count keeps its own, the
answer rises and falls at once with the count. (The latest completions whatever their count lag behind it: twenty leaves
herded by them at load 1.27.) If nothing was completed for many times as long, nothing is known any more: otherwise an
unlucky estimate would drive the traffic away and stay.

Source: Wydrowski, Kleinberg, Rumble and Archer, Prequal (NSDI 2024), section 4, which leaves the numbers open.
"""

from __future__ import annotations

from collections import deque

MEMORY = 16  # latencies kept per count in flight
ENOUGH = 8  # of these make an answer
STALE = 20.0  # times the estimate without a completion, and the estimate is dropped


class LatencyMemory:
    """Recent latencies by requests in flight at arrival."""

    def __init__(self) -> None:
        """Remember nothing."""
        self._latencies: dict[int, deque[float]] = {}
        self._latest_at_s = 0.0

    def add(self, in_flight: int, latency_s: float, now_s: float) -> None:
        """Store the latency of a request completed now that found `in_flight` requests when it came.

        A latency of 0 is not stored: a request without work tells nothing of those that have some. At a server under a
        growing queue it is such requests alone that are completed at the newest counts, and by them the server with
        the longest queue would look the quickest of all.
        """
        self._latest_at_s = now_s
        if latency_s <= 0:
            return
        known = self._latencies.get(in_flight)
        if known is None:
            known = self._latencies[in_flight] = deque(maxlen=MEMORY)
        known.append(latency_s)

    def latency_s(self, in_flight: int, now_s: float) -> float:
        """Expected latency for a newcomer, seconds; 0 if it is not known."""
        expected_s = _median(self._nearest(in_flight))
        return expected_s if now_s - self._latest_at_s <= STALE * expected_s else 0.0

    def _nearest(self, in_flight: int) -> list[float]:
        """Enough latencies of the nearest counts, of two equally near ones the lower first; or all."""
        latencies = self._latencies
        found = list(latencies.get(in_flight, ()))
        if len(found) >= ENOUGH:
            return found
        for count in sorted(latencies, key=lambda count: (abs(count - in_flight), count)):
            if count != in_flight:
                found += latencies[count]
            if len(found) >= ENOUGH:
                break
        return found


def _median(values: list[float]) -> float:
    """The middle value, of an even number the upper one; 0 of none."""
    return sorted(values)[len(values) // 2] if values else 0.0
