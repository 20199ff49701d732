"""One result that was to be reproduced, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from matplotlib.figure import Figure


class Finding(NamedTuple):
    """A row of the table of `testbed verify`; all in words but `met`.

    Attributes:
        target: the name of the result, such as 'V5'; several findings may share one.
        what: what was computed or run, with its setting.
        source: where the expected value comes from.
        engine: that gave the measured value: fluid, virtual or live; 'formula' where it needs none.
        expected: value with its unit.
        measured: value with its unit.
        tolerance: how far apart they may be.
        met: whether they are within it.
        form: of the verification that gave it, quick or full; empty until that is known.
    """

    target: str
    what: str
    source: str
    engine: str
    expected: str
    measured: str
    tolerance: str
    met: bool
    form: str = ""


class Illustration(NamedTuple):
    """A figure of the report: the stem of its file, what one sees in it, and the figure."""

    stem: str
    caption: str
    figure: Figure


Findings = Callable[[bool], Iterator[Finding]]
"""Work out findings one after another; True: the quick form, shorter runs and fewer settings."""

Illustrations = Callable[[bool], Iterator[Illustration]]
"""Draw what belongs to the findings; True: from the runs of the quick form."""


def within(
    target: str,
    what: str,
    source: str,
    engine: str,
    *,
    expected: float,
    measured: float,
    relative: float,
    unit: str = "",
) -> Finding:
    """A finding that is met if the measured value is within a fraction of the expected one.

    Args:
        target: as in `Finding`, and so `what`, `source` and `engine`.
        what: see there.
        source: see there.
        engine: see there.
        expected: in `unit`.
        measured: in `unit`; a value that is not finite is never within anything.
        relative: the most that they may differ by, as a fraction of the expected value.
        unit: of both.
    """
    return Finding(
        target,
        what,
        source,
        engine,
        _in_words(expected, unit),
        _in_words(measured, unit),
        f"{relative * 100:g} %",
        abs(measured - expected) <= relative * abs(expected),
    )


def _in_words(value: float, unit: str) -> str:
    return f"{value:.4g} {unit}".rstrip()
