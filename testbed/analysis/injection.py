"""The error of the injected delay from end to end: received less sent less drawn, message by message, wall time.

Release lateness is what the emulator says of itself. This is the same from the outside: what the roles wrote down,
against delays that are drawn again. For replies of servers it takes in how late the server was with its step, which is
planned at its boundary.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from scipy.stats import binom

from testbed.analysis.hops import Hop
from testbed.analysis.host import NEAR_S, HostSeries
from testbed.analysis.lateness import CONFIDENCE, LEAST_MESSAGES
from testbed.analysis.limits import Finding, Limit, exceeded, graded
from testbed.analysis.reason import Places, reason
from testbed.analysis.records import Floats
from testbed.scenario.quantity import format_s

EARLY_S = 1e-6  # what scaling and subtracting instants may cost


class InjectionError(NamedTuple):
    """Of one link, or a pool of links, wall seconds.

    Attributes:
        name: the link or the pool in words.
        check: `injection`, or `server step` where the sending was planned.
        messages: that were looked at.
        p50_s: median.
        p99_s: percentile.
        p99_low_s: it is at least this, with 95 % confidence.
        largest_at_s: scenario time at which the latest was received.
        target: the node that receives; empty of a pool, whose name says where it ends.
    """

    name: str
    check: str
    messages: int
    p50_s: float
    p99_s: float
    p99_low_s: float
    largest_at_s: float
    target: str


class Early(NamedTuple):
    """The message that came longest before its time.

    Attributes:
        name: its link in words.
        by_s: before it was due, wall seconds; infinite where the link's model had lost it.
        at_s: scenario time at which it was received.
        target: the node that received it.
    """

    name: str
    by_s: float
    at_s: float
    target: str


def earliest(hops: Iterable[Hop], time_scale: float) -> Early | None:
    """Over all links, however few messages they carried; none where all came in time."""
    found: Early | None = None
    for hop in hops:
        errors_s = _errors_s(hop, time_scale)
        i = int(np.argmin(errors_s))
        by_s = -float(errors_s[i])
        if by_s > (found.by_s if found else EARLY_S):
            found = Early(hop.name, by_s, float(hop.received_at_s[i]), hop.link.target)
    return found


def injection_errors(hops: Iterable[Hop], time_scale: float) -> list[InjectionError]:
    """Of every link or pool with enough messages."""
    found = []
    for hop in hops:
        errors_s = _errors_s(hop, time_scale)
        if len(errors_s) >= LEAST_MESSAGES:
            late_at_s = float(hop.received_at_s[int(np.argmax(errors_s))])
            ordered = np.sort(errors_s)
            found.append(
                InjectionError(
                    hop.name,
                    "server step" if hop.is_planned else "injection",
                    len(ordered),
                    float(ordered[len(ordered) // 2]),
                    float(ordered[_place(len(ordered), 0.01 * len(ordered))]),
                    float(ordered[_place(len(ordered), binom.ppf(CONFIDENCE, len(ordered), 0.01))]),
                    late_at_s,
                    "" if hop.pool else hop.link.target,
                )
            )
    return found


def worst_error(errors: Iterable[InjectionError], check: str) -> InjectionError | None:
    """The one whose p99 is surely the largest."""
    mine = (each for each in errors if each.check == check)
    return max(mine, key=lambda each: each.p99_low_s, default=None)


def injection_findings(
    errors: list[InjectionError],
    early: Early | None,
    limit: Limit,
    time_scale: float,
    host: HostSeries,
    places: Places,
) -> Iterator[Finding]:
    """The worst link of each check against the limit, and any message that came before its time.

    Args:
        errors: of all links and pools.
        early: the message that came too early by most.
        limit: of the verdict.
        time_scale: of the scenario.
        host: what the machine did.
        places: of the nodes.
    """
    limit_s, near_s = limit.at(time_scale), NEAR_S / time_scale
    if early is not None:
        said = (
            "although its link's draw had lost it"
            if early.by_s == np.inf
            else f"{early.by_s:.6f} s before its drawn delay was over"
        )
        yield Finding(
            "invalid",
            reason(
                "injection",
                f"a message on {early.name} was received {said}",
                process=places.process(early.target),
                when=f"at {early.at_s:.3f} s",
                advice="run it again and keep the folder: a slow host brings no message too early",
            ),
            "injection",
        )
    for check, what in (
        ("injection", "injection error (received less sent less drawn)"),
        ("server step", "server step error"),
    ):
        worst = worst_error(errors, check)
        word = graded(worst.p99_low_s, limit_s) if worst else ""
        if worst and word:
            at_s = worst.largest_at_s
            yield Finding(
                word,
                reason(
                    what,
                    f"p99 {format_s(worst.p99_s)} on {worst.name} ({worst.messages} messages)",
                    process=places.process(worst.target),
                    when=f"largest at {at_s:.3f} s",
                    limit=format_s(exceeded(word, limit_s)),
                    advice="try a larger time_scale, a lower rate or an idle host",
                    why=host.explain(at_s - near_s, at_s),
                ),
                check,
                limit.least_scale(worst.p99_low_s, time_scale),
            )


def _errors_s(hop: Hop, time_scale: float) -> Floats:
    """Of each message, wall seconds; minus infinity where the link's model had lost it."""
    errors_s = (hop.received_at_s - hop.sent_at_s - hop.drawn_s) * time_scale
    return np.where(np.isfinite(errors_s), errors_s, -np.inf)


def _place(count: int, above: float) -> int:
    """The position of the order statistic that so many of `count` exceed."""
    return max(0, min(count - 1, count - 1 - int(above)))
