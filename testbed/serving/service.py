"""What every service model of a server can do, and what the simple ones share.

A service model is passive: it has no clock, it is told the instant of everything. Its own instants are exact, not
those at which a loop noticed them: whoever calls late gets the same answers. Calls come in order of time; at equal
instants their order does not matter, since every call first does all that was due by its instant.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import count
from statistics import NormalDist
from typing import NamedTuple, Protocol

from testbed.draw import uniform
from testbed.roles.messages import Request

Draw = Callable[[Request], float]
"""The service demand of a request, of mean 1, the same whenever it is asked for."""


class Served(NamedTuple):
    """A request and its instants at the server, in seconds; NaN for what it has not reached."""

    request: Request
    at_server_s: float
    started_at_s: float
    first_token_at_s: float
    finished_at_s: float
    preemptions: int
    cached_tokens: int = 0  # of its prompt, found in the prefix cache when it was first admitted


class ServiceModel(Protocol):
    """A server's queue and what it does with it."""

    @property
    def queued(self) -> int:
        """Requests that wait."""

    @property
    def running(self) -> int:
        """Requests in service."""

    def fits(self, request: Request) -> bool:
        """Whether this request can ever be served here; one that cannot must not be admitted."""

    def admit(self, request: Request, now_s: float) -> None:
        """A request arrives. Its key (request id and attempt) must not be at the server already."""

    def cancel(self, request_id: int, attempt: int, now_s: float) -> bool:
        """Forget a request; False if it is not here (any more). It will not be among the served."""

    def set_speed(self, speed: float, now_s: float) -> None:
        """Work at this multiple of the normal speed, above 0."""

    def set_prefill(self, factor: float, now_s: float) -> None:
        """Let prefill take so many times as long as normal, above 0."""

    def next_event_s(self) -> float:
        """The instant by which `advance` is to be called next; infinite when idle."""

    def advance(self, now_s: float) -> list[Served]:
        """All that finished by now and was not handed out yet, in order of finishing."""

    def open(self) -> list[Served]:
        """All that are still here, in order of arrival."""

    def by_class(self) -> tuple[int, ...]:
        """Requests here (waiting or in service) of each class."""

    def prompt_tokens_left(self, now_s: float) -> int:
        """Prompt tokens still to prefill, of all that are here."""

    def output_tokens_left(self, now_s: float) -> int:
        """Output tokens still to make, of all that are here."""

    def kv_fraction(self, now_s: float) -> float:
        """Share of the KV memory in use; 0 for a model without one."""

    def busy_s(self, now_s: float) -> float:
        """Seconds of work done so far: at most the time that has passed, unless a server may use more than its share."""


_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


def fixed_work(request: Request) -> float:
    """The same demand for every request."""
    return 1.0


def exponential_work(base: int) -> Draw:
    """Exponential demands of mean 1, keyed by request id: every arm, engine and attempt sees the same work."""

    def draw(request: Request) -> float:
        return -math.log(uniform(base, request.request_id))

    return draw


def even_exponential_work() -> Draw:
    """Exponential demands of mean 1 without chance, for one server: its n-th request has probability n * golden ratio,
    modulo 1, so that any run of consecutive requests has nearly the whole distribution.

    The demand hangs on the order of arrival, so servers that get as much get the same work, and what differs between
    them is not noise. It is to be asked for once per request.
    Source: Kuipers and Niederreiter, Uniform Distribution of Sequences (1974), on Kronecker sequences.
    """
    order = count()

    def draw(request: Request) -> float:
        return -math.log(1.0 - (next(order) + 0.5) * _GOLDEN % 1.0)

    return draw


def normal_work(base: int, mean_s: float, sd_s: float) -> Draw:
    """Normal demands, clipped at 0 and scaled to mean 1; keyed by request id, as the exponential ones."""
    standard = NormalDist()
    mean_work_s = clipped_normal_mean(mean_s, sd_s)

    def draw(request: Request) -> float:
        work_s = mean_s + sd_s * standard.inv_cdf(uniform(base, request.request_id))
        return max(0.0, work_s) / mean_work_s

    return draw


def clipped_normal_mean(mean: float, sd: float) -> float:
    """Mean of max(0, x) for a normal x: 1.083 times the mean where mean and standard deviation are equal."""
    if sd == 0:
        return mean
    standard = NormalDist()
    return mean * standard.cdf(mean / sd) + sd * standard.pdf(mean / sd)


class Job:
    """A request at a server that counts no tokens."""

    __slots__ = ("at_server_s", "request", "started_at_s")

    def __init__(self, request: Request, at_server_s: float) -> None:
        """The request has arrived and waits."""
        self.request = request
        self.at_server_s = at_server_s
        self.started_at_s = math.nan

    def served(self, finished_at_s: float) -> Served:
        """Its instants; all its tokens come at once, when it is finished."""
        return Served(
            self.request, self.at_server_s, self.started_at_s, finished_at_s, finished_at_s, preemptions=0
        )


class Attendance:
    """Who is at a server: found by key, in order of arrival; counted by class and by tokens."""

    __slots__ = ("by_class", "jobs", "output_tokens", "prompt_tokens")

    def __init__(self, class_count: int) -> None:
        """Nobody is here."""
        self.jobs: dict[tuple[int, int], Job] = {}
        self.by_class = [0] * class_count
        self.prompt_tokens = 0
        self.output_tokens = 0

    def enter(self, job: Job) -> None:
        """The job has arrived."""
        request = job.request
        key = (request.request_id, request.attempt)
        assert key not in self.jobs, f"request {key} is here already"
        self.jobs[key] = job
        self.by_class[request.class_index] += 1
        self.prompt_tokens += request.prompt_tokens
        self.output_tokens += request.output_tokens

    def leave(self, request_id: int, attempt: int) -> Job | None:
        """The job with this key goes; None if it is not here."""
        job = self.jobs.pop((request_id, attempt), None)
        if job is not None:
            self.by_class[job.request.class_index] -= 1
            self.prompt_tokens -= job.request.prompt_tokens
            self.output_tokens -= job.request.output_tokens
        return job


class SimpleService:
    """What the models that count no tokens share: who is here, and what has finished and was not handed out.

    A model does its work in `_run`; everything that is asked of it first does all that was due by then.
    """

    __slots__ = ("_done", "_here")

    def __init__(self, class_count: int) -> None:
        """Nobody is here."""
        self._here = Attendance(class_count)
        self._done: list[Served] = []

    def _run(self, now_s: float) -> None:
        """Do all that is due by now."""
        raise AssertionError(f"{type(self).__name__} says what it does with time")

    def set_prefill(self, factor: float, now_s: float) -> None:
        """There is no prefill."""

    def fits(self, request: Request) -> bool:
        """Every request fits."""
        return True

    def advance(self, now_s: float) -> list[Served]:
        """All that finished by now and was not handed out yet, in order of finishing."""
        self._run(now_s)
        done, self._done = self._done, []
        return done

    def open(self) -> list[Served]:
        """All that are still here, in order of arrival."""
        return [job.served(math.nan) for job in self._here.jobs.values()]

    def by_class(self) -> tuple[int, ...]:
        """Requests here of each class."""
        return tuple(self._here.by_class)

    def prompt_tokens_left(self, now_s: float) -> int:
        """Prompt tokens of all that are here: a request counts in full until it is finished."""
        self._run(now_s)
        return self._here.prompt_tokens

    def output_tokens_left(self, now_s: float) -> int:
        """Output tokens of all that are here: a request counts in full until it is finished."""
        self._run(now_s)
        return self._here.output_tokens

    def kv_fraction(self, now_s: float) -> float:
        """There is no KV memory: 0."""
        return 0.0
