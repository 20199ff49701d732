"""The words of what a service does against failure and overload: retries, limits on what is taken in, circuit breakers.

All are off unless given, and a scenario without them runs without their code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal

from pydantic import Field, model_validator

from testbed.scenario.finding import time_text
from testbed.scenario.quantity import Percent
from testbed.scenario.words import (
    DurationFromZero,
    Loss,
    Positive,
    PositiveCount,
    PositiveDuration,
    Words,
    one_of,
)

Retryable = Literal["failed", "timed_out", "shed"]


class Retries(Words):
    """A root sends a request of a class again, or a leaf any request, when an attempt ended badly and its client still waits.

    Attributes:
        attempts: sendings of one request at the most, the first among them.
        on: the outcomes of an attempt after which there is another one.
        attempt_timeout: an attempt without a reply for so long after its sending has timed out; the class's timeout,
            which counts from the planned arrival, at a leaf from the receipt, ends all of them.
        backoff: before the second attempt, doubled before each further one, times a draw between 0.5 and 1.
        budget: retries at the most, as a share of first sendings.
    """

    attempts: Annotated[int, Field(strict=True, ge=2, le=100)] = 3
    on: Annotated[tuple[Retryable, ...], Field(min_length=1)] = ("failed", "timed_out", "shed")
    attempt_timeout: PositiveDuration | None = None
    backoff: DurationFromZero = 0.0
    budget: Loss | None = None


class Hedging(Words):
    """A root sends a request of a class, or a leaf any request, a second time while the first copy is unanswered.

    Attributes:
        after: from the sending of a copy to that of the next one.
        after_quantile: the same as a quantile of how long first copies took, of the class.
        copies: further ones at the most.
        budget: further copies at the most, as a share of first sendings.
    """

    after: PositiveDuration | None = None
    after_quantile: Annotated[Percent, Field(gt=0, lt=1)] | None = None
    copies: Annotated[int, Field(strict=True, ge=1, le=5)] = 1
    budget: Loss | None = 0.1

    @model_validator(mode="after")
    def _check(self) -> Hedging:
        one_of(self, "after", "after_quantile")
        return self


class Limit(Words):
    """How much a leaf or a server takes in; a request that comes when one of the numbers is reached is shed.

    Attributes:
        in_flight: requests waiting or being served.
        queued: requests waiting.
        tokens: of prompts and outputs, still to serve for the requests in flight.
    """

    in_flight: PositiveCount | None = None
    queued: PositiveCount | None = None
    tokens: PositiveCount | None = None

    @model_validator(mode="after")
    def _check(self) -> Limit:
        if self.in_flight is None and self.queued is None and self.tokens is None:
            raise ValueError("no limit is given", "one or more of in_flight, queued, tokens")
        return self

    def is_reached(self, in_flight: int, queued: int, tokens: Callable[[], int]) -> bool:
        """Whether one more would be too many; tokens are counted only where they are limited."""
        return (
            (self.in_flight is not None and in_flight >= self.in_flight)
            or (self.queued is not None and queued >= self.queued)
            or (self.tokens is not None and tokens() >= self.tokens)
        )


class HealthChecks(Words):
    """How a root checks the leaves of its cells, or a leaf its servers.

    Attributes:
        every: between two checks of a target.
        timeout: without an answer for so long a check has failed; half of `every`, unless given.
        unhealthy_after: failures in a row after which a target is left out.
        healthy_after: answers in a row after which it is used again.
    """

    every: PositiveDuration = 1.0
    timeout: PositiveDuration | None = None
    unhealthy_after: PositiveCount = 3
    healthy_after: PositiveCount = 2

    @model_validator(mode="after")
    def _check(self) -> HealthChecks:
        if self.timeout is not None and self.timeout > self.every:
            raise ValueError(
                f"timeout, {time_text(self.timeout)}, is above every, {time_text(self.every)}",
                "a timeout up to every: a check ends before the next one begins",
            )
        return self

    @property
    def timeout_s(self) -> float:
        """The timeout, or what stands for it."""
        return self.every / 2 if self.timeout is None else self.timeout


class SlowStartWords(Words):
    """The share of a target that has come back grows over a window, from `least` of what the policy would give to it."""

    over: PositiveDuration
    least: Annotated[Percent, Field(gt=0, le=1)] = 0.1


class AutoscalerWords(Words):
    """How many servers of a cell are in use, by what its leaf reports.

    Attributes:
        in_flight, queued, utilisation: the target, one of them: requests per server, or share of a server's capacity.
        every: between two looks.
        reaction: age of the measurement that is acted upon.
        start_up: from the order of a server until it takes requests.
        min, max, start: servers at the least, at the most (those of the cell), and at the beginning (the least).
        cooldown: no change for so long after one.
        down_after: down to no less than the most wanted in this time.
        tolerance: no change while the measurement is within this share of the target.
    """

    in_flight: Positive | None = None
    queued: Positive | None = None
    utilisation: Annotated[Percent, Field(gt=0, le=1)] | None = None
    every: PositiveDuration = 1.0
    reaction: DurationFromZero = 0.0
    start_up: DurationFromZero = 0.0
    min: PositiveCount = 1
    max: PositiveCount | None = None
    start: PositiveCount | None = None
    cooldown: DurationFromZero = 0.0
    down_after: DurationFromZero = 0.0
    tolerance: Loss = 0.1

    @model_validator(mode="after")
    def _check(self) -> AutoscalerWords:
        one_of(self, "in_flight", "queued", "utilisation")
        if self.max is not None and self.max < self.min:
            raise ValueError(f"max, {self.max}, is below min, {self.min}", "a max from min on")
        if self.start is not None and not self.min <= self.start <= (self.max or self.start):
            raise ValueError(
                f"start, {self.start}, is not between min, {self.min}, and max"
                + ("" if self.max is None else f", {self.max}"),
                "a start from min to max",
            )
        return self

    @property
    def target(self) -> float:
        """The target, whatever its measure."""
        return self.in_flight or self.queued or self.utilisation or 1.0


class BreakerWords(Words):
    """When a balancer leaves a target out for its bad replies, and for how long.

    Attributes:
        in_a_row: bad replies one after another that open its circuit.
        fraction: of the last `replies`, that opens it as well.
        above_others: by how much the share of bad ones among its last `replies` exceeds the mean of the other targets'
            shares, that opens it as well.
        replies: how many these are.
        counts: the outcomes that are bad.
        out_for: how long it is left out, twice as long after each trial that went badly, up to 8 times.
        most: share of the targets that may be out at a time.
    """

    in_a_row: PositiveCount | None = None
    fraction: Annotated[Percent, Field(gt=0, le=1)] | None = None
    above_others: Annotated[Percent, Field(gt=0, le=1)] | None = None
    replies: PositiveCount = 20
    counts: Annotated[tuple[Retryable, ...], Field(min_length=1)] = ("failed", "timed_out", "shed")
    out_for: PositiveDuration = 10.0
    most: Annotated[Percent, Field(gt=0, le=1)] = 0.5

    @model_validator(mode="after")
    def _check(self) -> BreakerWords:
        if self.in_a_row is None and self.fraction is None and self.above_others is None:
            raise ValueError(
                "nothing is given at which the breaker opens",
                "one or more of in_a_row, fraction, above_others",
            )
        return self
