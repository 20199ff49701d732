"""Quantities with units: '20 ms', '80 /s', '1 %' to floats in base units, and back.

Inside the testbed time is in seconds, rates per second, shares are fractions. Each dimension knows the power
of time it carries, so that a time scale can stretch a whole scenario by rule and not field by field.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

NUMBER = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?"
_QUANTITY = re.compile(rf"^\s*({NUMBER})\s*(\S.*?)?\s*$")


@dataclass(frozen=True)
class Dimension:
    """A kind of quantity: its units as (unit, factor to the base unit), and the power of time in it."""

    name: str
    units: tuple[tuple[str, float], ...]
    base_unit: str
    time_power: int
    example: str

    def parse(self, value: Any) -> float:
        """The value in base units.

        Raises:
            ValueError: no unit, an unknown unit, too large, or no number; the text says what is wrong with the value.
        """
        return self._split(value)[0]

    def format(self, value: float) -> str:
        """Text that `parse` reads back to the very same float."""
        return f"{value!r} {self.base_unit}"

    @property
    def accepted(self) -> str:
        """What a scenario may write here."""
        return f"{self.name} such as '{self.example}'"

    def _split(self, value: Any) -> tuple[float, str]:
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            raise ValueError(f"{value!r} is not {self.name}")
        match = _QUANTITY.match(value) if isinstance(value, str) else None
        if isinstance(value, str) and match is None:
            raise ValueError(f"{value!r} is not {self.name}")
        if match is None or match[2] is None:
            raise ValueError(f"{value!r} has no unit")
        unit = re.sub(r"\s+", "", match[2])
        factors = dict(self.units)
        if unit not in factors:
            raise ValueError(f"{value!r} has the unknown unit {unit!r}")
        number = _times(match[1], factors[unit])
        if not math.isfinite(number):
            raise ValueError(f"{value!r} is out of range")
        return number, unit


def _times(number: str, factor: float) -> float:
    """The product, rounded once: '35 ms' is 0.035 to the bit, and what `format` writes is read back the same."""
    value = float(number)
    if value == 0.0 or not math.isfinite(value):
        return value
    return float(Decimal(number) * Decimal(repr(factor)))


DURATION = Dimension(
    "a time", (("us", 1e-6), ("ms", 1e-3), ("s", 1.0), ("min", 60.0), ("h", 3600.0)), "s", 1, "20 ms"
)
# A time of this machine (how often a loop wakes, say): no time scale stretches it.
WALL_DURATION = Dimension(DURATION.name, DURATION.units, "s", 0, "250 us")
RATE = Dimension("a rate", (("/s", 1.0), ("/ms", 1e3), ("/min", 1 / 60), ("/h", 1 / 3600)), "/s", -1, "80 /s")
PERCENT = Dimension("a percentage", (("%", 0.01),), "%", 0, "1 %")
BANDWIDTH = Dimension(
    "a bandwidth",
    (
        ("B/s", 1.0), ("kB/s", 1e3), ("MB/s", 1e6), ("GB/s", 1e9),
        ("bit/s", 0.125), ("kbit/s", 125.0), ("Mbit/s", 125e3), ("Gbit/s", 125e6),
    ),
    "B/s",
    -1,
    "10 Mbit/s",
)  # fmt: skip
STEP = Dimension("a step", (("/s^2", 1.0), ("/s", 1.0)), "/s^2", -2, "0.1 /s^2")


@dataclass(frozen=True)
class Step:
    """The step of flow routing: per s^2 where the cost is in seconds, per s where it is in requests."""

    value: float
    unit: str

    def scaled(self, time_scale: float) -> Step:
        """The same step after durations were multiplied by `time_scale`."""
        return Step(self.value / time_scale ** (2 if self.unit == "/s^2" else 1), self.unit)


def parse_duration_s(text: str) -> float:
    """Seconds from text such as '250 ms'; raises ValueError as `Dimension.parse` does."""
    return DURATION.parse(text)


def parse_step(value: Any) -> Step:
    """A step from text such as '0.1 /s^2'; a `Step` passes through.

    Raises:
        ValueError: as `Dimension.parse`, or the step is negative (it would climb the cost).
    """
    step = value if isinstance(value, Step) else Step(*STEP._split(value))
    if step.value < 0:
        raise ValueError(f"{value!r} is out of range")
    return step


def format_s(seconds: float) -> str:
    """A duration for people, with three significant digits at least: '20 ms', '1.5 s'."""
    size = abs(seconds)
    if size >= 1000.0:
        return f"{seconds:,.0f} s"
    if size >= 1.0 or size == 0.0:
        return f"{seconds:.3g} s"
    return f"{seconds * 1e3:.3g} ms" if size >= 1e-3 else f"{seconds * 1e6:.3g} us"


def _json_schema(dimension: Dimension) -> WithJsonSchema:
    units = "|".join(re.escape(unit) for unit, _ in dimension.units)
    return WithJsonSchema(
        {
            "type": "string",
            "pattern": rf"^\s*{NUMBER}\s*({units})\s*$",
            "description": f"{dimension.name} with its unit",
            "examples": [dimension.example],
        }
    )


def _format_percent(fraction: float) -> str:
    return f"{(Decimal(repr(fraction)) * 100).normalize():f} %"


# A dimension stands in each annotation, so that `Scenario.scaled` and the error messages find it there.
Duration = Annotated[
    float, DURATION, BeforeValidator(DURATION.parse), PlainSerializer(DURATION.format), _json_schema(DURATION)
]
WallDuration = Annotated[
    float,
    WALL_DURATION,
    BeforeValidator(WALL_DURATION.parse),
    PlainSerializer(WALL_DURATION.format),
    _json_schema(WALL_DURATION),
]
Rate = Annotated[float, RATE, BeforeValidator(RATE.parse), PlainSerializer(RATE.format), _json_schema(RATE)]
Percent = Annotated[
    float, PERCENT, BeforeValidator(PERCENT.parse), PlainSerializer(_format_percent), _json_schema(PERCENT)
]
Bandwidth = Annotated[
    float,
    BANDWIDTH,
    BeforeValidator(BANDWIDTH.parse),
    PlainSerializer(BANDWIDTH.format),
    _json_schema(BANDWIDTH),
]
StepSize = Annotated[
    Step,
    STEP,
    BeforeValidator(parse_step),
    PlainSerializer(lambda step: f"{step.value!r} {step.unit}"),
    _json_schema(STEP),
]
