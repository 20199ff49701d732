"""A server that everyone shares evenly: with n present it completes C n / (N0 + n) per second, work of mean 1.

Each request is served at C / (N0 + n) per second, times the speed. With N0 = 0 this is the M/G/1 queue with
processor sharing. All present advance alike, so one number, the progress of a request that has been here for ever,
tells when each is finished: at its progress on arrival plus its demand.
"""

from __future__ import annotations

import math
from heapq import heapify, heappop, heappush

from testbed.roles.messages import Request
from testbed.serving.service import Draw, Job, SimpleService


class ProcessorSharing(SimpleService):
    """A `ServiceModel` without a queue; it counts no tokens and has no memory to fill."""

    def __init__(
        self, *, capacity_per_s: float, half: float, draw: Draw, class_count: int, speed: float = 1.0
    ) -> None:
        """An idle server at instant 0.

        Args:
            capacity_per_s: completions per second with very many present, C.
            half: requests present at which it completes half of that, N0, from 0.
            draw: the demand of a request, of mean 1.
            class_count: classes of the scenario.
            speed: multiple of the normal speed, above 0.
        """
        super().__init__(class_count)
        self._capacity_per_s = capacity_per_s
        self._half = half
        self._draw = draw
        self._speed = speed
        self._serving: list[
            tuple[float, int, Job]
        ] = []  # heap of (progress at the end, order of arrival, job)
        self._arrivals = 0
        self._progress = 0.0  # at _progress_at_s; starts again from 0 with every busy period
        self._progress_at_s = 0.0
        self._busy_s = 0.0  # up to _progress_at_s

    @property
    def queued(self) -> int:
        """Nobody ever waits."""
        return 0

    @property
    def running(self) -> int:
        """Requests in service: all that are here."""
        return len(self._serving)

    def admit(self, request: Request, now_s: float) -> None:
        """A request arrives and starts at once."""
        self._run(now_s)
        self._move_to(now_s)
        job = Job(request, now_s)
        job.started_at_s = now_s
        self._here.enter(job)
        self._arrivals += 1
        heappush(self._serving, (self._progress + self._draw(request), self._arrivals, job))

    def cancel(self, request_id: int, attempt: int, now_s: float) -> bool:
        """Forget a request; the others are faster at once."""
        self._run(now_s)
        job = self._here.leave(request_id, attempt)
        if job is None:
            return False
        self._move_to(now_s)
        self._serving = [entry for entry in self._serving if entry[2] is not job]
        heapify(self._serving)
        return True

    def set_speed(self, speed: float, now_s: float) -> None:
        """Work at this multiple of the normal speed, remaining work included."""
        assert speed > 0, f"speed {speed}"
        self._run(now_s)
        self._move_to(now_s)
        self._speed = speed

    def next_event_s(self) -> float:
        """The next completion; infinite when idle."""
        return self._done[0].finished_at_s if self._done else self._end_s()

    def busy_s(self, now_s: float) -> float:
        """Seconds with somebody here."""
        self._run(now_s)
        unseen_s = (now_s - self._progress_at_s) * self._busy_share() if self._serving else 0.0
        return self._busy_s + unseen_s

    def _busy_share(self) -> float:
        """How much of the server those who are here keep busy."""
        return 1.0

    def _rate_per_s(self) -> float:
        """Progress per second of each request that is here."""
        return self._capacity_per_s / (self._half + len(self._serving)) * self._speed

    def _end_s(self) -> float:
        """The next completion. Progress may round past the demand, but time does not run backwards."""
        if not self._serving:
            return math.inf
        left = max(0.0, self._serving[0][0] - self._progress)
        return self._progress_at_s + left / self._rate_per_s()

    def _run(self, now_s: float) -> None:
        """Do every completion up to now."""
        while (end_s := self._end_s()) <= now_s:
            self._busy_s += (end_s - self._progress_at_s) * self._busy_share()
            self._progress_at_s = end_s
            self._progress, _, job = heappop(self._serving)
            self._here.leave(job.request.request_id, job.request.attempt)
            self._done.append(job.served(end_s))

    def _move_to(self, now_s: float) -> None:
        """Bring the progress up to this instant; due before every change of the rate."""
        if self._serving:
            self._progress += (now_s - self._progress_at_s) * self._rate_per_s()
            self._busy_s += (now_s - self._progress_at_s) * self._busy_share()
        else:
            self._progress = 0.0
        self._progress_at_s = now_s
