"""The words of links: what a link may do to its messages."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from testbed.scenario.quantity import Bandwidth
from testbed.scenario.words import (
    Count,
    DurationFromZero,
    Flag,
    Loss,
    Name,
    Path,
    PositiveDuration,
    PositiveRate,
    Words,
    one_of,
)

JITTERS = ("normal", "uniform", "lognormal", "pareto", "exponential", "table")


class Jitter(Words):
    """The spread of a link's delay, keeping the mean of `delay` but for the cut at 0 of `normal`.

    normal: standard deviation, truncated at 0 and sampled as such; uniform: half-width; lognormal, pareto:
    standard deviation; exponential: the part of the delay that is exponential, the rest is constant; table: equally
    likely delays to add, interpolated between neighbours.
    """

    normal: DurationFromZero | None = None
    uniform: DurationFromZero | None = None
    lognormal: DurationFromZero | None = None
    pareto: DurationFromZero | None = None
    exponential: DurationFromZero | None = None
    table: Annotated[tuple[DurationFromZero, ...], Field(min_length=2)] | None = None

    @model_validator(mode="after")
    def _check(self) -> Jitter:
        one_of(self, *JITTERS)
        return self


class Reorder(Words):
    """A fraction of the messages is released ahead of the others (at once, unless a time is given), or late."""

    fraction: Loss
    ahead: PositiveDuration | None = None
    late: PositiveDuration | None = None

    @model_validator(mode="after")
    def _check(self) -> Reorder:
        if self.ahead is not None and self.late is not None:
            raise ValueError("both ahead and late are given", "one of ahead, late, or neither")
        return self


class Flap(Words):
    """The link is down for this share of each period, which begins with it; the first one begins at `since`."""

    period: PositiveDuration
    down: Loss
    since: DurationFromZero | None = None


class Replay(Words):
    """Delay and loss over time, from a CSV file with the columns at_s and delay_s, loss, or both.

    A row holds until the next; with `repeat` the file begins anew at the instant of its last row. `unit` is the
    length of one of the file's seconds; the file's time 0 is `since`.
    """

    path: Name
    repeat: Flag = False
    unit: PositiveDuration = 1.0
    since: DurationFromZero | None = None


class LinkKeys(Words):
    """What a link may do to its messages, its delay apart; a key left out keeps what an earlier line said."""

    jitter: Jitter | None = None
    correlation: Annotated[float, Field(strict=True, ge=0, lt=1)] | None = None
    loss: Loss | None = None
    loss_burst: Annotated[float, Field(strict=True, ge=1, allow_inf_nan=False)] | None = None
    duplicate: Loss | None = None
    reorder: Reorder | None = None
    rate: PositiveRate | None = None
    bandwidth: Annotated[Bandwidth, Field(gt=0)] | None = None
    queue: Count | None = None
    flap: Flap | None = None
    replay: Replay | None = None
    order: Literal["kept", "free"] | None = None

    @model_validator(mode="after")
    def _check_keys(self) -> LinkKeys:
        limited = [key for key in ("rate", "bandwidth") if getattr(self, key) is not None]
        if limited and self.queue is None:
            raise ValueError(
                f"queue is missing: how many messages may wait for the {limited[0]}", "a whole number from 0"
            )
        if self.queue is not None and not limited:
            raise ValueError(
                "queue goes with rate or bandwidth, which are missing", "one of these, or no queue"
            )
        if self.reorder is not None and self.order == "kept":
            raise ValueError("reorder does not go with order: kept", "order: free")
        if self.jitter is not None and self.replay is not None:
            raise ValueError(
                "jitter does not go with replay, which brings its own variation", "jitter or replay"
            )
        return self


class Impairment(LinkKeys):
    """What a link may do to its messages; a key left out keeps what an earlier line said."""

    delay: DurationFromZero | None = None


class LinkLine(Impairment):
    """An impairment of the links between two sets of nodes, on one path or on all."""

    from_: Name = Field(alias="from")
    to: Name
    path: Path | None = None
