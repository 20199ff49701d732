"""How late one link or one server was by the instants that roles wrote down: percentiles, and what is said of the worst.

As with the lateness of links, the lower 95 % confidence bound of a p99 decides (see lateness.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from scipy.stats import binom

from testbed.analysis.host import NEAR_S, HostSeries
from testbed.analysis.lateness import CONFIDENCE
from testbed.analysis.limits import Finding, Limit, exceeded, graded
from testbed.analysis.reason import Places, reason
from testbed.analysis.records import Floats
from testbed.scenario.quantity import format_s


class RecordedError(NamedTuple):
    """Of one link or server, or of a pool of these, wall seconds.

    Attributes:
        name: the link, the server or the pool in words.
        messages: that were looked at; of a server, its replies.
        p50_s: median.
        p99_s: percentile.
        p99_low_s: it is at least this, with 95 % confidence.
        largest_at_s: scenario time of the latest.
        node: which was late; empty of a pool, whose name says where it was.
    """

    name: str
    messages: int
    p50_s: float
    p99_s: float
    p99_low_s: float
    largest_at_s: float
    node: str


class ErrorWords(NamedTuple):
    """How a finding tells of an error.

    Attributes:
        check: of the verdict.
        what: begins with the check, and says what is taken from what.
        where: the preposition before the name.
        counted: what there are so many of.
    """

    check: str
    what: str
    where: str
    counted: str


def recorded_error(name: str, errors_s: Floats, at_s: Floats, node: str) -> RecordedError:
    """Of at least one error.

    Args:
        name: the link, the server or the pool in words.
        errors_s: wall seconds.
        at_s: when each of them was, scenario time.
        node: which was late; empty of a pool.
    """
    ordered, count = np.sort(errors_s), len(errors_s)
    return RecordedError(
        name,
        count,
        float(ordered[count // 2]),
        float(ordered[_place(count, 0.01 * count)]),
        float(ordered[_place(count, binom.ppf(CONFIDENCE, count, 0.01))]),
        float(at_s[int(np.argmax(errors_s))]),
        node,
    )


def worst_error(errors: Iterable[RecordedError]) -> RecordedError | None:
    """The one whose p99 is surely the largest."""
    return max(errors, key=lambda each: each.p99_low_s, default=None)


def error_findings(
    errors: Iterable[RecordedError],
    words: ErrorWords,
    limit: Limit,
    time_scale: float,
    host: HostSeries,
    places: Places,
) -> Iterator[Finding]:
    """The worst against the limit.

    Args:
        errors: of all links or servers, and pools of these.
        words: how to tell of it.
        limit: of the verdict.
        time_scale: of the scenario.
        host: what the machine did.
        places: of the nodes.
    """
    worst, limit_s = worst_error(errors), limit.at(time_scale)
    word = graded(worst.p99_low_s, limit_s) if worst else ""
    if worst and word:
        at_s = worst.largest_at_s
        yield Finding(
            word,
            reason(
                words.what,
                f"p99 {format_s(worst.p99_s)} {words.where} {worst.name} ({worst.messages} {words.counted})",
                process=places.process(worst.node),
                when=f"largest at {at_s:.3f} s",
                limit=format_s(exceeded(word, limit_s)),
                advice="try a larger time_scale, a lower rate or an idle host",
                why=host.explain(at_s - NEAR_S / time_scale, at_s),
            ),
            words.check,
            limit.least_scale(worst.p99_low_s, time_scale),
        )


def _place(count: int, above: float) -> int:
    """The position of the order statistic that so many of `count` exceed."""
    return max(0, min(count - 1, count - 1 - int(above)))
