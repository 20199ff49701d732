"""Every message as a NamedTuple: immutable, fast to make, packed as an array behind a tag.

The first two fields of every message that crosses a link are its key (an identity and an attempt, or 0): the
link's draws hang on them alone, so they depend neither on timing nor on what else is sent.
"""

from __future__ import annotations

import math
from enum import IntEnum
from typing import NamedTuple


class Outcome(IntEnum):
    """How a request ended; the words of the records."""

    COMPLETED = 0
    FAILED = 1
    TIMED_OUT = 2
    SHED = 3
    NO_TARGET = 4
    LOST = 5
    UNFINISHED = 6
    CANCELLED = 7  # of a copy alone: another one answered first


OUTCOMES = tuple(each.name.lower() for each in Outcome if each != Outcome.CANCELLED)  # of requests, by number


class Request(NamedTuple):
    """Root to leaf, and leaf to server: serve this."""

    request_id: int
    attempt: int
    class_index: int  # position of the class in the scenario
    prompt_tokens: int
    output_tokens: int
    shared: tuple[int, ...] | None = (
        None  # session, then prefix; a single field, None for most: cheap to pack
    )

    @property
    def session(self) -> int:
        """The conversation that it continues; 0: none."""
        return self.shared[0] if self.shared else 0

    @property
    def prefix(self) -> tuple[int, ...]:
        """How its prompt begins: key, tokens, key, tokens, ..., see `serving.prefix_cache`."""
        return self.shared[1:] if self.shared else ()


class Reply(NamedTuple):
    """Server to leaf, and leaf to root: how it ended, and how long it stayed with the sender."""

    request_id: int
    attempt: int
    outcome: int
    residence_s: float  # from receipt of the request to sending of this reply, at the sender
    queued: int  # requests waiting at the sender as it sends this
    in_flight: int  # requests waiting or running at the sender as it sends this
    prompt_tokens: int = 0  # prompt tokens still to prefill there; from servers
    output_tokens: int = 0  # output tokens still to make there; from servers


class _News(NamedTuple):
    request_id: int
    number: int


class FirstToken(_News):
    """Server to leaf, and leaf to root, where they count from it: the first token of a request is made.

    Its number stands for the attempt and is below 0, so that links draw for it apart from the reply.
    """

    __slots__ = ()

    def __new__(cls, request_id: int, attempt: int) -> FirstToken:
        """Of this attempt."""
        return super().__new__(cls, request_id, -1 - attempt)

    @property
    def attempt(self) -> int:
        """Of the request."""
        return -1 - self.number


class Report(NamedTuple):
    """Leaf to root, or server to leaf: the load of the sender and the instant it was measured."""

    sequence: int
    attempt: int  # always 0
    measured_at_s: float
    queued: int
    running: int
    by_class: tuple[int, ...]  # requests in flight of each class, in the scenario's order
    prompt_tokens: int  # prompt tokens still to prefill
    output_tokens: int  # output tokens still to make
    arrivals: int  # requests received since the run began
    error_fraction: float  # of the replies of the last while
    speed: float  # of the profile's curve, from `model: scaled`
    fitted_a_s: float  # sojourn per output token = a + b * in flight per server, from `model: fitted`
    fitted_b_s: float
    model_error: float  # mean relative error of the scaled prediction
    busy_s: float = math.nan  # of a server: busy time since the run began; a leaf does not know it
    arrivals_by_class: tuple[int, ...] = ()  # requests received of each class, in the scenario's order
    clock_error_s: float = 0.0  # the stamp less the true instant: for the records, no balancer knows it


class Probe(NamedTuple):
    """Leaf to server: how busy are you?"""

    probe_id: int
    attempt: int  # always 0


class ProbeReply(NamedTuple):
    """Server to leaf: requests in flight, and the latency a newcomer may expect."""

    probe_id: int
    attempt: int  # always 0
    in_flight: int
    latency_s: float
    measured_at_s: float
    clock_error_s: float = 0.0  # the stamp less the true instant: for the records, no balancer knows it


class Poll(NamedTuple):
    """Root to leaf, or leaf to server: report your load now."""

    sequence: int
    attempt: int  # always 0


class Check(NamedTuple):
    """Root to leaf, or leaf to server: are you there?"""

    sequence: int
    attempt: int  # always 0


class CheckReply(NamedTuple):
    """Leaf to root, or server to leaf: here."""

    sequence: int
    attempt: int  # always 0


class _Call(NamedTuple):
    request_id: int
    number: int
    outcome: int


class Cancel(_Call):
    """Root to leaf, leaf to server: forget this request.

    Its number stands for the attempt and is below 0, so that links draw for it apart from the request. The outcome is
    for who calls: the request's time was up, or another copy has answered.
    """

    __slots__ = ()

    def __new__(cls, request_id: int, attempt: int, outcome: int = int(Outcome.TIMED_OUT)) -> Cancel:
        """Of this attempt."""
        return super().__new__(cls, request_id, -1 - attempt, outcome)

    @property
    def attempt(self) -> int:
        """Of the request."""
        return -1 - self.number


class Setting(NamedTuple):
    """The engine to a role: a fault has set this, or healed it. Never crosses a link."""

    key: str
    value: float


FAULT, HEALTH, SCALING = "fault", "health", "scaling"  # why a target is left out


class Rotation(NamedTuple):
    """To a balancer: a target is out of rotation, or back. Never crosses a link.

    The engine says so as a fault has it, what stands in front of the role by health checks or an autoscaler.
    """

    target: str  # a server; a cell, or one of its leaves
    inside: bool
    cause: str = FAULT


class Surge(NamedTuple):
    """The engine to a root: more requests are planned, as ordered by hand. Never crosses a link.

    Attributes:
        request_ids: those behind the ids of the plan.
        at_s: planned arrivals, rising.
        traffic: the root's lines of traffic.
        class_index, prompt_tokens, output_tokens: of each request.
    """

    request_ids: tuple[int, ...]
    at_s: tuple[float, ...]
    traffic: tuple[int, ...]
    class_index: tuple[int, ...]
    prompt_tokens: tuple[int, ...]
    output_tokens: tuple[int, ...]


Notice = Setting | Rotation | Surge
Message = Request | Reply | Report | Probe | ProbeReply | Poll | FirstToken | Cancel | Check | CheckReply

PATH_OF: dict[type, str] = {
    Request: "request",
    Cancel: "request",
    Reply: "reply",
    FirstToken: "reply",
    Report: "observation",
    Probe: "probe",
    ProbeReply: "probe",
    Poll: "probe",
    Check: "probe",
    CheckReply: "probe",
}
