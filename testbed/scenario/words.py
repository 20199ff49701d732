"""What every group of keys in a scenario file is made of: the frozen base model and the annotated kinds of value."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from testbed.scenario.quantity import Duration, Percent, Rate

Count = Annotated[int, Field(strict=True, ge=0)]
PositiveCount = Annotated[int, Field(strict=True, ge=1)]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Positive = Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)]
MOST_TOKENS = 10**9  # far above any context window; keeps every sum within 64 bits
Probability = Annotated[float, Field(strict=True, ge=0, le=1)]
PositiveDuration = Annotated[Duration, Field(gt=0)]
DurationFromZero = Annotated[Duration, Field(ge=0)]
PositiveRate = Annotated[Rate, Field(gt=0)]
Loss = Annotated[Percent, Field(ge=0, le=1)]
Flag = Annotated[bool, Field(strict=True)]
Name = Annotated[str, Field(strict=True, min_length=1)]
Path = Literal["request", "reply", "observation", "probe"]
Sampling = Literal["chance", "low_discrepancy"]


class Words(BaseModel):
    """A group of keys of the scenario file: frozen, and unknown keys are faults."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


def one_of(words: Words, *keys: str) -> None:
    """Raise ValueError unless exactly one of the keys is given."""
    given = [key for key in keys if getattr(words, key) is not None]
    if len(given) != 1:
        raise ValueError(*not_one(given, keys))


def not_one(given: Sequence[str], keys: Iterable[str]) -> tuple[str, str]:
    """The problem where none or several of the keys are given, and what is accepted."""
    said = f"{' and '.join(given)} are given" if given else "none is given"
    return f"{said}, one is due", f"one of {', '.join(keys)}"
