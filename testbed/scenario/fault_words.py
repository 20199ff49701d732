"""The words of faults: when, on whom, and what they set.

What a fault may set hangs on whom it touches: `KEYS_OF` says which keys go with which target. A further key of a
node is a field of `Setting` and a line of `ROLE_DEFAULTS`; its role is then told of it whenever it changes.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from testbed.scenario.finding import time_text
from testbed.scenario.link_words import LinkKeys
from testbed.scenario.quantity import Duration, Percent
from testbed.scenario.relative import ChangedDuration, Factor
from testbed.scenario.spelling import listed
from testbed.scenario.words import (
    MOST_TOKENS,
    Count,
    DurationFromZero,
    Flag,
    Loss,
    Name,
    NotNegative,
    Number,
    Path,
    Positive,
    PositiveCount,
    PositiveDuration,
    PositiveRate,
    Words,
    not_one,
)

Pick = Literal["all", "one", "half", "minority"]

TELEMETRY = ("frozen", "silent")  # a role is told their number, from 1

# What a node of each kind has of the keys of its role while no fault sets them.
_GAUGE_DEFAULTS: dict[str, float] = {
    "telemetry": 0.0,
    "gauge_factor": 1.0,
    "gauge_offset": 0.0,
    "clock_skew": 0.0,
    "clock_drift": 0.0,
}
_SERVICE_DEFAULTS: dict[str, float] = {"speed": 1.0, "prefill": 1.0, "errors": 0.0, "error_after": 0.0}
_COUNT_DEFAULTS: dict[str, float] = {"leak": 0.0, "reset_counts": 0.0}
ROLE_DEFAULTS: dict[str, dict[str, float]] = {
    "server": {**_SERVICE_DEFAULTS, **_GAUGE_DEFAULTS, "absent": 0.0},
    "leaf": {**_GAUGE_DEFAULTS, **_COUNT_DEFAULTS},
    "root": _COUNT_DEFAULTS,
}
MOMENTARY = frozenset(
    ("reset_counts",)
)  # done once, when the fault sets in: its heal undoes nothing, and tells nobody


class LinkTarget(Words):
    """The links a fault touches."""

    from_: Name = Field(alias="from")
    to: Name
    path: Path | None = None


class Shift(Words):
    """A share of a root's requests arrives at another root."""

    to: Name
    share: Loss


class Setting(LinkKeys):
    """What a fault sets: keys of nodes, of links, or of the load that roots receive."""

    delay: ChangedDuration | None = None
    cut: Flag | None = None
    speed: Positive | None = None
    prefill: Annotated[Factor, Field(gt=0)] | None = None
    errors: Loss | None = None
    error_after: DurationFromZero | None = None
    telemetry: Literal["frozen", "silent"] | None = None
    gauge_factor: NotNegative | None = None
    gauge_offset: Number | None = None
    clock_skew: Duration | None = None
    clock_drift: Percent | None = None
    leak: Loss | None = None
    reset_counts: Flag | None = None
    drain: Flag | None = None
    absent: Flag | None = None
    kill: Flag | None = None
    pause: Flag | None = None
    demand: Annotated[Factor, Field(ge=0)] | None = None
    burst: Count | None = None
    shift: Shift | None = None
    prompt_tokens: Annotated[Factor, Field(gt=0, le=MOST_TOKENS)] | None = None
    output_tokens: Annotated[Factor, Field(gt=0, le=MOST_TOKENS)] | None = None

    @property
    def given(self) -> tuple[str, ...]:
        """The keys that are set."""
        return tuple(key for key in type(self).model_fields if getattr(self, key) is not None)

    @model_validator(mode="after")
    def _check_delay(self) -> Setting:
        if isinstance(self.delay, float) and self.delay < 0:
            raise ValueError(f"a delay of {self.delay} s is below 0", "a time from 0, or a change of it")
        if self.kill and self.pause:
            raise ValueError("kill does not go with pause: a process is dead or stopped", "kill or pause")
        if self.error_after is not None and self.errors is None:
            raise ValueError("error_after goes with errors, which is missing", "errors, or no error_after")
        return self


LINK_KEYS = frozenset((*LinkKeys.model_fields, "delay", "cut"))
LOAD_KEYS = frozenset(("demand", "burst", "prompt_tokens", "output_tokens"))
SERVICE_KEYS = frozenset(_SERVICE_DEFAULTS)
GAUGE_KEYS = frozenset(_GAUGE_DEFAULTS)
COUNT_KEYS = frozenset(_COUNT_DEFAULTS)
PROCESS_KEYS = frozenset(("kill", "pause"))
KEYS_OF: dict[str, frozenset[str]] = {
    "cell": SERVICE_KEYS | GAUGE_KEYS | COUNT_KEYS | PROCESS_KEYS | {"drain"},
    "server": SERVICE_KEYS | GAUGE_KEYS | PROCESS_KEYS | {"drain", "absent"},
    "leaf": GAUGE_KEYS | COUNT_KEYS | PROCESS_KEYS | {"drain"},
    "link": LINK_KEYS,
    "partition": frozenset(),
    "root": LOAD_KEYS | COUNT_KEYS | PROCESS_KEYS | {"shift"},
    "class": LOAD_KEYS,
}
_CUT = Setting(cut=True)


class FaultAction(Words):
    """On whom a fault falls and what it sets. A partition sets nothing: it cuts the links between its groups."""

    cell: Name | None = None
    server: Name | None = None
    leaf: Name | None = None
    link: LinkTarget | None = None
    partition: Annotated[tuple[Name, ...], Field(min_length=1)] | None = None
    root: Name | None = None
    class_: Name | None = Field(default=None, alias="class")
    pick: Pick | None = None
    set_: Setting | None = Field(default=None, alias="set")

    @property
    def target(self) -> str:
        """Which of the keys of `KEYS_OF` is given."""
        return next(key for key in KEYS_OF if getattr(self, _FIELDS[key]) is not None)

    @property
    def setting(self) -> Setting:
        """What is set; of a partition, that its links are cut."""
        return _CUT if self.set_ is None else self.set_


def _check_action(action: FaultAction) -> None:
    """Raise ValueError unless one target is given, and what is set goes with it."""
    given = [key for key in KEYS_OF if getattr(action, _FIELDS[key]) is not None]
    if len(given) != 1:
        raise ValueError(*not_one(given, KEYS_OF))
    if action.partition is not None:
        if action.set_ is not None or action.pick is not None:
            raise ValueError(
                "a partition takes neither set nor pick: it cuts the links between its groups",
                "a partition without set and pick",
            )
        return
    if action.class_ is not None and action.pick is not None:
        raise ValueError("pick does not go with class, which is one", "class without pick")
    if action.set_ is None:
        raise ValueError("set is missing: what the fault changes", _settable(action))
    if not action.set_.given:
        raise ValueError("set is empty: nothing would change", _settable(action))
    for key in action.set_.given:
        if key not in KEYS_OF[action.target]:
            owners = [target for target, keys in KEYS_OF.items() if key in keys]
            raise ValueError(
                f"{key} is set on a {' or a '.join(owners)}, not on a {action.target}", _settable(action)
            )


def _settable(action: FaultAction) -> str:
    return f"a mapping with one or more of the keys {listed(sorted(KEYS_OF[action.target]))}"


def _backwards(from_s: float, to_s: float) -> tuple[str, str]:
    return (
        f"to, {time_text(to_s)}, does not lie after {time_text(from_s)}",
        "an instant after that of the onset",
    )


_FIELDS = {key: "class_" if key == "class" else key for key in KEYS_OF}


class FaultKind(FaultAction):
    """One kind of random fault: how often it comes among the kinds, and how long it lasts."""

    weight: Positive = 1.0
    for_: PositiveDuration | None = Field(default=None, alias="for")

    @model_validator(mode="after")
    def _check(self) -> FaultKind:
        _check_action(self)
        return self


class RandomFaults(Words):
    """Faults at random instants: a Poisson process of this rate in a window (the run, unless given)."""

    rate: PositiveRate
    kinds: Annotated[tuple[FaultKind, ...], Field(min_length=1)]
    from_: DurationFromZero = Field(default=0.0, alias="from")
    to: PositiveDuration | None = None

    @model_validator(mode="after")
    def _check(self) -> RandomFaults:
        if self.to is not None and self.to <= self.from_:
            raise ValueError(*_backwards(self.from_, self.to))
        return self


class FaultLine(FaultAction):
    """One line of the timeline: a fault at an instant, one that comes again, or faults at random.

    at, for: when, and for how long (for good, unless given); from, to: the same told by its ends; every, times:
    again after this long, so many times in all (to the end of the run, unless given).
    """

    at: DurationFromZero | None = None
    for_: PositiveDuration | None = Field(default=None, alias="for")
    from_: DurationFromZero | None = Field(default=None, alias="from")
    to: PositiveDuration | None = None
    every: PositiveDuration | None = None
    times: PositiveCount | None = None
    random: RandomFaults | None = None

    @property
    def onset_s(self) -> float:
        """When it first sets in; 0 of random faults."""
        return self.at if self.at is not None else self.from_ if self.from_ is not None else 0.0

    @property
    def length_s(self) -> float | None:
        """How long it lasts; None: for good."""
        return self.to - self.onset_s if self.to is not None else self.for_

    @model_validator(mode="after")
    def _check(self) -> FaultLine:
        if self.random is not None:
            _check_alone(self)
            return self
        starts = [key for key, value in (("at", self.at), ("from", self.from_)) if value is not None]
        if len(starts) != 1:
            raise ValueError(*not_one(starts, ("at", "from")))
        _check_action(self)
        _check_times(self)
        return self


def _check_alone(line: FaultLine) -> None:
    """Raise ValueError unless a line of random faults holds nothing else."""
    others = [
        info.alias or key
        for key, info in FaultLine.model_fields.items()
        if key != "random" and getattr(line, key) is not None
    ]
    if others:
        raise ValueError(
            f"random stands alone in its line, which gives {', '.join(others)} too",
            "random alone, with targets in its kinds",
        )


def _check_times(line: FaultLine) -> None:
    """Raise ValueError unless the instants of a line fit each other."""
    if (line.from_ is None) != (line.to is None):
        raise ValueError("from and to go together", "both, or at")
    if line.to is not None and line.for_ is not None:
        raise ValueError("for does not go with from and to, which say how long", "from and to, or at and for")
    if line.to is not None and line.to <= line.onset_s:
        raise ValueError(*_backwards(line.onset_s, line.to))
    if line.every is None and line.times is not None:
        raise ValueError("times goes with every, which is missing", "every, or no times")
    if line.every is not None and (line.length_s is None or line.length_s > line.every):
        raise ValueError(
            "every needs a fault that lasts no longer than it",
            "a length up to every, by for or by from and to",
        )
