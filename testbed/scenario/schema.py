"""The words of a scenario file as frozen models; below this border nobody sees a dict.

Durations are float seconds, rates requests per second, percentages fractions. Field names are the keys of the
file (`from`, `for`, `class` and `set` carry a trailing underscore here). Checks that need one object alone sit
in it; checks across objects sit in `load.py`, which also gives every message its line.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Any, Literal, get_args

from pydantic import Field, PrivateAttr, model_validator

from testbed.scenario.fault_words import FaultLine
from testbed.scenario.finding import time_text
from testbed.scenario.link_words import LinkLine
from testbed.scenario.policy_words import Policy
from testbed.scenario.quantity import Dimension, Rate, Step, WallDuration
from testbed.scenario.relative import Relative
from testbed.scenario.resilience_words import AutoscalerWords, HealthChecks, Hedging, Limit, Retries
from testbed.scenario.words import (
    MOST_TOKENS,
    Count,
    DurationFromZero,
    Flag,
    Loss,
    Name,
    NotNegative,
    Positive,
    PositiveCount,
    PositiveDuration,
    PositiveRate,
    Probability,
    Sampling,
    Words,
    one_of,
)

MOST_TIME_SCALE = 1000  # a run of a minute would take most of a day
MOST_VARIATION = 100  # coefficient of variation: a draw of the largest mean stays within 64 bits
TokenCount = Annotated[int, Field(strict=True, ge=1, le=MOST_TOKENS)]
TokenQuantile = Annotated[float, Field(strict=True, ge=0, le=MOST_TOKENS)]

# --- classes of traffic -------------------------------------------------------------------------------------


class LogNormal(Words):
    """A lognormal count with its mean and its coefficient of variation."""

    mean: Annotated[float, Field(strict=True, gt=0, le=MOST_TOKENS)]
    cv: Annotated[float, Field(strict=True, ge=0, le=MOST_VARIATION)]


class Geometric(Words):
    """A geometric count (1, 2, 3, ...) with its mean; memoryless."""

    mean: Annotated[float, Field(strict=True, ge=1, le=MOST_TOKENS)]


class Tokens(Words):
    """How many tokens a request brings: fixed, lognormal, geometric, or a table of quantiles."""

    fixed: TokenCount | None = None
    lognormal: LogNormal | None = None
    geometric: Geometric | None = None
    quantiles: Annotated[tuple[tuple[Probability, TokenQuantile], ...], Field(min_length=2)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_number(cls, value: Any) -> Any:
        """A bare whole number is a fixed count."""
        return {"fixed": value} if isinstance(value, int) and not isinstance(value, bool) else value

    @model_validator(mode="after")
    def _check(self) -> Tokens:
        one_of(self, "fixed", "lognormal", "geometric", "quantiles")
        if self.quantiles is not None:
            for before, after in pairwise(self.quantiles):
                if after[0] <= before[0] or after[1] < before[1]:
                    raise ValueError(
                        f"the quantile {_pair(after)} does not lie above the one before it, {_pair(before)}",
                        "quantiles that rise, such as [[0, 1], [0.5, 120], [1, 900]]",
                    )
            first, last = self.quantiles[0][0], self.quantiles[-1][0]
            if (first, last) != (0, 1):
                raise ValueError(
                    f"the quantiles lead from probability {first:g} to {last:g}", "quantiles from 0 to 1"
                )
        return self


def _pair(quantile: tuple[float, float]) -> str:
    return f"[{quantile[0]:g}, {quantile[1]:g}]"


class Slo(Words):
    """What counts as good service: the longest first token and the longest mean gap between tokens."""

    first_token: PositiveDuration
    token_gap: PositiveDuration


class Sessions(Words):
    """Conversations: how many turns on average (geometric), and how many of them a line of traffic has under way.

    That number is given (`count`) or follows from the mean time between two turns (`think_time`) times the rate.
    """

    turns: Annotated[float, Field(strict=True, ge=1)]
    count: PositiveCount | None = None
    think_time: PositiveDuration | None = None

    @model_validator(mode="after")
    def _check(self) -> Sessions:
        one_of(self, "count", "think_time")
        return self


class Prefixes(Words):
    """Beginnings that prompts share, such as system prompts: how many, how long, and Zipf's exponent of popularity."""

    count: PositiveCount
    tokens: Tokens
    zipf: NotNegative = 1.0


class TrafficClass(Words):
    """A class of requests: the tokens they bring and how long a client waits.

    With `sessions` or `prefixes` the prompt is the shared prefix, the conversation so far, and `prompt_tokens` more.
    With `cancel` a request whose time is up is called back, so that its place at a server is free at once.
    """

    prompt_tokens: Tokens = Tokens(fixed=1)
    output_tokens: Tokens = Tokens(fixed=1)
    timeout: PositiveDuration = 30.0
    cancel: Flag = False
    retries: Retries | None = None
    hedging: Hedging | None = None
    slo: Slo | None = None
    prefixes: Prefixes | None = None
    sessions: Sessions | None = None


# --- roots and their traffic --------------------------------------------------------------------------------


class Gamma(Words):
    """Gamma-distributed gaps with this coefficient of variation."""

    cv: Positive


class GammaArrivals(Words):
    """Arrivals with gamma-distributed gaps: cv 1 is Poisson, above 1 bursty."""

    gamma: Gamma


class Stage(Words):
    """From this instant on, this rate (absolute, or as a share of capacity)."""

    at: DurationFromZero
    rate: Annotated[Rate, Field(ge=0)] | None = None
    load: NotNegative | None = None

    @model_validator(mode="after")
    def _check(self) -> Stage:
        one_of(self, "rate", "load")
        return self


class Traffic(Words):
    """One stream of requests at a root: a class, how often, and the policy that places them."""

    class_: Name = Field(alias="class")
    policy: Name
    rate: PositiveRate | None = None
    load: Positive | None = None
    stages: Annotated[tuple[Stage, ...], Field(min_length=1)] | None = None
    trace: Name | None = None
    weight: Positive = 1.0
    arrivals: Literal["poisson", "evenly_spaced"] | GammaArrivals = "poisson"
    allowed: Annotated[tuple[Name, ...], Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _check(self) -> Traffic:
        one_of(self, "rate", "load", "stages", "trace")
        if self.stages is not None:
            for before, after in pairwise(self.stages):
                if after.at <= before.at:
                    raise ValueError(
                        f"the stage at {time_text(after.at)} does not lie after the one before it, at {time_text(before.at)}",
                        "stages that follow each other in time",
                    )
        return self


class Root(Words):
    """A root: the traffic it receives, the cells it may use (all, unless given), and how it checks their leaves."""

    traffic: Annotated[tuple[Traffic, ...], Field(min_length=1)]
    allowed: Annotated[tuple[Name, ...], Field(min_length=1)] | None = None
    health_checks: HealthChecks | None = None


class Trace(Words):
    """A recorded trace that roots replay, split among them by the weights of their traffic lines.

    `rate_factor` divides the time stamps; `from` and `for` cut a window in the time of the trace file.
    """

    path: Name
    format: Literal["azure", "mooncake"]
    rate_factor: Positive = 1.0
    from_: DurationFromZero = Field(default=0.0, alias="from")
    for_: PositiveDuration | None = Field(default=None, alias="for")


# --- cells --------------------------------------------------------------------------------------------------


class Reports(Words):
    """How load is reported: when, whether the reporters do so together, and which reports are read.

    periodic: every period. on_change: reporters look every period, and report where requests in flight differ by
    `threshold` from what they last said, or at the latest after `lease`. when_polled: the balancer asks every period,
    all at once (parallel) or the next when the last has answered (serial); then the phase is that of the balancers.

    latest: a report that one measured later has overtaken is dropped; all: each is believed as it arrives.
    """

    every: PositiveDuration = 0.1
    phase: Literal["staggered", "in_phase"] = "staggered"
    send: Literal["periodic", "on_change", "when_polled"] = "periodic"
    threshold: PositiveCount | None = None
    lease: PositiveDuration | None = None
    polls: Literal["parallel", "serial"] | None = None
    read: Literal["latest", "all"] = "latest"

    @model_validator(mode="after")
    def _check(self) -> Reports:
        if self.send != "on_change" and (self.threshold is not None or self.lease is not None):
            key = "threshold" if self.threshold is not None else "lease"
            raise ValueError(f"{key} does not go with send: {self.send}", "send: on_change")
        if self.send != "when_polled" and self.polls is not None:
            raise ValueError(f"polls does not go with send: {self.send}", "send: when_polled")
        if self.lease is not None and self.lease < self.every:
            raise ValueError(
                f"lease, {time_text(self.lease)}, is below every, {time_text(self.every)}",
                "a lease from every on: reporters do not look more often",
            )
        return self


class Leaf(Words):
    """The leaves of a cell: the policy that picks a server, how many leaves share the servers, and whose turn it is."""

    policy: Name | None = None
    count: PositiveCount = 1
    pick: Literal["in_turn", "random"] = "in_turn"
    limit: Limit | None = None
    retries: Retries | None = None
    hedging: Hedging | None = None
    health_checks: HealthChecks | None = None


class RateCurveWords(Words):
    """The rate curve capacity * N / (half + N) of one server, by processor sharing."""

    capacity: PositiveRate
    half: Positive


class AntagonistWords(Words):
    """Neighbours of a server: `cores` may be left to it, with these `probabilities`, drawn anew after Exp(`every`)."""

    cores: Annotated[tuple[Positive, ...], Field(min_length=1)]
    probabilities: Annotated[tuple[Probability, ...], Field(min_length=1)]
    every: PositiveDuration

    @model_validator(mode="after")
    def _check(self) -> AntagonistWords:
        if len(self.cores) != len(self.probabilities):
            raise ValueError(
                f"{len(self.cores)} cores and {len(self.probabilities)} probabilities are given",
                "a probability for each number of cores",
            )
        if abs(sum(self.probabilities) - 1.0) > 1e-9:
            raise ValueError(
                f"the probabilities add up to {sum(self.probabilities):.12g}",
                "probabilities that add up to 1",
            )
        return self


class SharingWords(Words):
    """Cores shared evenly, at most one to a request; how many a server can use is up to the antagonist."""

    allocation: Positive
    antagonist: AntagonistWords | None = None


class NormalWork(Words):
    """Normal service times, clipped at 0."""

    mean: PositiveDuration
    sd: DurationFromZero


class Service(Words):
    """A simple service model: k slots or shared cores with a service time, or a rate curve with work of mean 1.

    Exponential work is drawn by chance, or with low discrepancy: spread evenly over its distribution from request to
    request, for measurements without noise.
    """

    slots: PositiveCount | None = None
    sharing: SharingWords | None = None
    exponential: PositiveDuration | None = None
    fixed: PositiveDuration | None = None
    normal: NormalWork | None = None
    rate_curve: RateCurveWords | None = None
    work: Literal["exponential", "fixed"] | None = None
    sampling: Sampling = "chance"

    @model_validator(mode="after")
    def _check(self) -> Service:
        one_of(self, "slots", "sharing", "rate_curve")
        if self.rate_curve is None:
            one_of(self, "exponential", "fixed", "normal")
            if self.work is not None:
                raise ValueError(
                    "work goes with rate_curve, which is missing",
                    "exponential, fixed or normal for slots and sharing",
                )
        elif self.exponential is not None or self.fixed is not None or self.normal is not None:
            raise ValueError(
                "exponential, fixed and normal do not go with rate_curve", "work: exponential or fixed"
            )
        if self.sampling != "chance" and (
            self.fixed is not None or self.normal is not None or self.work == "fixed"
        ):
            raise ValueError(
                f"sampling: {self.sampling} goes with exponential work",
                "exponential work, or sampling: chance",
            )
        return self


class Cell(Words):
    """A group of equal servers behind one leaf or several."""

    servers: PositiveCount
    profile: Name | None = None
    service: Service | None = None
    max_sequences: PositiveCount | None = None
    kv_tokens: PositiveCount | None = None
    step_tokens: PositiveCount | None = None
    prefix_cache_tokens: PositiveCount | None = None
    limit: Limit | None = None
    autoscaler: AutoscalerWords | None = None
    leaf: Leaf = Leaf()
    reports: Reports | None = None
    server_reports: Reports = Reports()

    @model_validator(mode="after")
    def _check(self) -> Cell:
        one_of(self, "profile", "service")
        if self.service is not None:
            for key in ("max_sequences", "kv_tokens", "step_tokens", "prefix_cache_tokens"):
                if getattr(self, key) is not None:
                    raise ValueError(
                        f"{key} does not go with service, which has no such limit", "a GPU profile"
                    )
        if self.autoscaler is not None:
            for key in ("min", "max", "start"):
                if (getattr(self.autoscaler, key) or 1) > self.servers:
                    raise ValueError(
                        f"the autoscaler's {key}, {getattr(self.autoscaler, key)}, is above servers, {self.servers}",
                        "numbers up to that of the servers",
                    )
            if self.leaf.count > 1:
                raise ValueError(
                    f"an autoscaler does not go with {self.leaf.count} leaves, which would scale apart",
                    "leaf.count: 1",
                )
        return self


# --- the whole ----------------------------------------------------------------------------------------------


class Records(Words):
    """How much is recorded: the share of decisions with all candidates, and how often the truth is sampled."""

    decisions: Loss = 0.01
    samples: PositiveDuration = 0.1


class Live(Words):
    """How the live engine carries messages: the transport, and the least spacing of passes of a busy loop."""

    transport: Literal["ipc", "tcp"] = "ipc"
    pass_spacing: Annotated[WallDuration, Field(ge=0)] = 0.0


class Processes(Words):
    """Which nodes share a process of the live engine: each has its own, unless these keys say otherwise.

    roots, cells: deal the roots, and whole cells with their leaves and servers, over so many processes; named: nodes
    (names, globs, groups) of processes with names of their own, which go before the other two.
    """

    roots: PositiveCount | None = None
    cells: PositiveCount | None = None
    named: dict[Name, Annotated[tuple[Name, ...], Field(min_length=1)]] = Field(default_factory=dict)


class WindowWords(Words):
    """A part of a run, of which the summary tells on its own."""

    from_: DurationFromZero = Field(alias="from")
    to: PositiveDuration


class Scenario(Words):
    """One arm of a scenario file, fully resolved: all that a run needs to know."""

    name: Name
    duration: PositiveDuration
    warmup: DurationFromZero = 0.0
    drain: DurationFromZero = 30.0
    seed: Count = 1
    time_scale: Annotated[float, Field(strict=True, ge=0.001, le=MOST_TIME_SCALE)] = 1.0
    dating: Literal["actual", "due"] = "actual"
    groups: dict[Name, tuple[Name, ...]] = Field(default_factory=dict)
    cells: Annotated[dict[Name, Cell], Field(min_length=1)]
    roots: Annotated[dict[Name, Root], Field(min_length=1)]
    reports: Reports = Reports()
    classes: Annotated[dict[Name, TrafficClass], Field(min_length=1)]
    policies: dict[Name, Policy] = Field(default_factory=dict)
    traces: dict[Name, Trace] = Field(default_factory=dict)
    links: tuple[LinkLine, ...] = ()
    faults: tuple[FaultLine, ...] = ()
    windows: dict[Name, WindowWords] = Field(default_factory=dict)
    records: Records = Records()
    live: Live = Live()
    processes: Processes = Processes()
    _stretch: float = PrivateAttr(default=1.0)

    @property
    def stretch(self) -> float:
        """Factor on times that stand outside the file, such as those of GPU profiles: 1, or `time_scale` in run time."""
        return self._stretch

    def scaled(self) -> Scenario:
        """The scenario in run time: every duration times `time_scale`, rates and steps divided to match.

        The mark for what is stretched is the dimension in a field's annotation, so a new key needs no line here.
        """
        assert self._stretch == 1.0, "the scenario is in run time already"
        if self.time_scale == 1.0:
            return self
        scaled: Scenario = scaled_words(self, self.time_scale)
        scaled._stretch = self.time_scale
        return scaled


def scaled_words(words: Any, time_scale: float) -> Any:
    """A group of keys with every duration times `time_scale`, rates and steps divided to match."""
    changes = {}
    for key, info in type(words).model_fields.items():
        powers = [mark.time_power for mark in info.metadata if isinstance(mark, Dimension)]
        value = getattr(words, key)
        changes[key] = _scaled_value(
            value, time_scale, powers[0] if powers else _nested_power(info.annotation)
        )
    return words.model_copy(update=changes)


def _scaled_value(value: Any, time_scale: float, power: int) -> Any:
    if isinstance(value, Words):
        return scaled_words(value, time_scale)
    if isinstance(value, dict):
        return {key: _scaled_value(each, time_scale, power) for key, each in value.items()}
    if isinstance(value, tuple):
        return tuple(_scaled_value(each, time_scale, power) for each in value)
    if isinstance(value, Step | Relative):
        return value.scaled(time_scale)
    if power == 0 or not isinstance(value, float):
        return value
    return value * time_scale if power > 0 else value / time_scale


def _nested_power(annotation: Any) -> int:
    """The power of time of an annotation such as `Duration | None` or a tuple of durations; 0 for none."""
    for mark in getattr(annotation, "__metadata__", ()):
        if isinstance(mark, Dimension):
            return mark.time_power
    return next((power for part in get_args(annotation) if (power := _nested_power(part))), 0)
