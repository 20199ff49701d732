"""A server of k slots: first come, first served, one request a slot. The M/M/c and M/D/c of queueing theory.

A request takes mean_s * draw(request) / speed seconds of a slot. Speed changes touch the remaining work at once:
service is measured on a clock of work that runs at the server's speed, and a request finishes when that clock
shows its start plus its demand.
"""

from __future__ import annotations

import math
from collections import deque
from heapq import heapify, heappop, heappush

from testbed.roles.messages import Request
from testbed.serving.service import Draw, Job, SimpleService


class Slots(SimpleService):
    """A `ServiceModel` of equal slots behind one queue; it counts no tokens and has no memory to fill."""

    def __init__(
        self, *, slots: int, mean_s: float, draw: Draw, class_count: int, speed: float = 1.0
    ) -> None:
        """An idle server at instant 0.

        Args:
            slots: requests served at once, at least 1.
            mean_s: mean service time at speed 1, seconds.
            draw: the demand of a request as a multiple of `mean_s`.
            class_count: classes of the scenario.
            speed: multiple of the normal speed, above 0.
        """
        super().__init__(class_count)
        self._slots = slots
        self._mean_s = mean_s
        self._draw = draw
        self._speed = speed
        self._queue: deque[Job] = deque()
        self._serving: list[
            tuple[float, int, Job]
        ] = []  # heap of (work clock at the end, order of start, job)
        self._starts = 0
        self._work_s = 0.0  # the work clock at _work_at_s
        self._work_at_s = 0.0
        self._slot_seconds = 0.0  # occupied, up to _counted_at_s
        self._counted_at_s = 0.0

    @property
    def queued(self) -> int:
        """Requests that wait."""
        return len(self._queue)

    @property
    def running(self) -> int:
        """Requests in a slot."""
        return len(self._serving)

    def admit(self, request: Request, now_s: float) -> None:
        """A request arrives; it starts at once if a slot is free."""
        self._run(now_s)
        job = Job(request, now_s)
        self._here.enter(job)
        if len(self._serving) < self._slots:
            self._start(job, now_s, self._work_s + (now_s - self._work_at_s) * self._speed)
        else:
            self._queue.append(job)

    def cancel(self, request_id: int, attempt: int, now_s: float) -> bool:
        """Forget a request; its slot is free at once."""
        self._run(now_s)
        job = self._here.leave(request_id, attempt)
        if job is None:
            return False
        if math.isnan(job.started_at_s):
            self._queue.remove(job)
            return True
        self._count_busy(now_s)
        self._serving = [entry for entry in self._serving if entry[2] is not job]
        heapify(self._serving)
        if self._queue:
            self._start(self._queue.popleft(), now_s, self._work_s + (now_s - self._work_at_s) * self._speed)
        return True

    def set_speed(self, speed: float, now_s: float) -> None:
        """Work at this multiple of the normal speed, remaining work included."""
        assert speed > 0, f"speed {speed}"
        self._run(now_s)
        self._work_s += (now_s - self._work_at_s) * self._speed
        self._work_at_s = now_s
        self._speed = speed

    def next_event_s(self) -> float:
        """The next completion; infinite when idle."""
        if self._done:
            return self._done[0].finished_at_s
        return self._end_s(self._serving[0]) if self._serving else math.inf

    def busy_s(self, now_s: float) -> float:
        """Seconds of occupied slots, divided by the number of slots."""
        self._run(now_s)
        self._count_busy(now_s)
        return self._slot_seconds / self._slots

    def _end_s(self, entry: tuple[float, int, Job]) -> float:
        """When this one finishes. Going to the work clock and back may round, but never to before the start."""
        end_work_s, _, job = entry
        return max(job.started_at_s, self._work_at_s + (end_work_s - self._work_s) / self._speed)

    def _run(self, now_s: float) -> None:
        """Do every completion up to now."""
        while self._serving:
            end_s = self._end_s(self._serving[0])
            if end_s > now_s:
                return
            self._count_busy(end_s)
            end_work_s, _, job = heappop(self._serving)
            self._here.leave(job.request.request_id, job.request.attempt)
            self._done.append(job.served(end_s))
            if self._queue:
                self._start(self._queue.popleft(), end_s, end_work_s)

    def _start(self, job: Job, at_s: float, work_s: float) -> None:
        """Give the job a slot, at this instant and this reading of the work clock."""
        self._count_busy(at_s)
        job.started_at_s = at_s
        self._starts += 1
        heappush(self._serving, (work_s + self._mean_s * self._draw(job.request), self._starts, job))

    def _count_busy(self, at_s: float) -> None:
        """Count the slots occupied since the last change; due before every change."""
        self._slot_seconds += len(self._serving) * (at_s - self._counted_at_s)
        self._counted_at_s = at_s
