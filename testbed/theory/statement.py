"""One thing that the theory says of a scenario, with all that it supposes; or that it will not say, and why."""

from __future__ import annotations

from typing import Any, NamedTuple


class Statement(NamedTuple):
    """A line of `testbed theory`.

    Attributes:
        topic: what it belongs to, such as `stability`.
        what: it is about.
        whose: the lines, classes or policies that it holds for; empty: the whole arm.
        value: in words with units; empty where it is refused.
        assumes: what it needs to be true.
        refused_because: why nothing is said; empty where something is.
        figures: the numbers behind `value`, seconds and 1/s; for programs.
    """

    topic: str
    what: str
    whose: str = ""
    value: str = ""
    assumes: tuple[str, ...] = ()
    refused_because: str = ""
    figures: dict[str, Any] = {}  # noqa: RUF012  (never changed)
