"""Changes that are told relative to what was: 'x3', '+200 ms', '-5 ms'."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

from testbed.scenario.quantity import DURATION, NUMBER, Dimension

_TIMES = re.compile(r"^\s*x\s*((?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?)\s*$")


@dataclass(frozen=True)
class Relative:
    """A duration made from another one: so many times as long, and so much longer; never below 0."""

    times: float = 1.0
    plus_s: float = 0.0

    def of(self, value_s: float) -> float:
        """What becomes of a duration."""
        return max(0.0, value_s * self.times + self.plus_s)

    def scaled(self, time_scale: float) -> Relative:
        """The same change after durations were multiplied by `time_scale`."""
        return Relative(self.times, self.plus_s * time_scale)

    def text(self) -> str:
        """What a scenario would write, exactly."""
        if self.times != 1.0:
            return f"x{self.times!r}"
        return f"{'+' if self.plus_s >= 0 else ''}{self.plus_s!r} s"


class _Factor(Dimension):
    """A factor, written with an x before it."""

    def parse(self, value: Any) -> float:
        """The factor; raises ValueError as `Dimension.parse` does."""
        match = _TIMES.match(value) if isinstance(value, str) else None
        if match is None:
            raise ValueError(f"{value!r} is not {self.name}")
        factor = float(match[1])
        if not math.isfinite(factor):
            raise ValueError(f"{value!r} is out of range")
        return factor

    def format(self, value: float) -> str:
        """Text that `parse` reads back to the very same float."""
        return f"x{value!r}"


FACTOR = _Factor("a factor", (), "", 0, "x3")
CHANGED_DURATION = Dimension(
    "a time or a change of it", DURATION.units, "s", 1, "2 s', '+200 ms' or 'x3"
)  # the quotes around an example are those of `accepted`


def parse_changed_duration(value: Any) -> float | Relative:
    """A time such as '2 s', or a change: '+200 ms', '-5 ms', 'x3'.

    Raises:
        ValueError: as `Dimension.parse`.
    """
    if isinstance(value, Relative):
        return value
    text = value.strip() if isinstance(value, str) else ""
    if text.startswith("x"):
        return Relative(times=FACTOR.parse(text))
    seconds = CHANGED_DURATION.parse(value)
    return Relative(plus_s=seconds) if text[:1] in ("+", "-") else seconds


def format_changed_duration(value: float | Relative) -> str:
    """Text that `parse_changed_duration` reads back to the same."""
    return value.text() if isinstance(value, Relative) else DURATION.format(value)


def changed(value_s: float, change: float | Relative | None) -> float:
    """A duration after a change of it: the new one, one made from it, or the same where nothing is given."""
    if change is None:
        return value_s
    return change.of(value_s) if isinstance(change, Relative) else change


_UNITS = "|".join(unit for unit, _ in DURATION.units)
ChangedDuration = Annotated[
    float | Relative,
    CHANGED_DURATION,
    BeforeValidator(parse_changed_duration),
    PlainSerializer(format_changed_duration),
    WithJsonSchema(
        {
            "type": "string",
            "pattern": rf"^\s*({NUMBER}\s*({_UNITS})|x\s*{NUMBER})\s*$",
            "description": "a time with its unit, or a change: '+200 ms', '-5 ms', 'x3'",
            "examples": ["2 s", "+200 ms", "x3"],
        }
    ),
]
Factor = Annotated[
    float,
    FACTOR,
    BeforeValidator(FACTOR.parse),
    PlainSerializer(FACTOR.format),
    WithJsonSchema(
        {
            "type": "string",
            "pattern": rf"^\s*x\s*{NUMBER}\s*$",
            "description": "a factor with an x before it",
            "examples": ["x3"],
        }
    ),
]
