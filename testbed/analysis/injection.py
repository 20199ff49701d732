"""The error of the injected delay from end to end: received less sent less drawn, message by message, wall time.

Release lateness is what the emulator says of itself. This is the same from the outside: what the roles wrote down,
against delays that are drawn again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from testbed.analysis.hops import Hop
from testbed.analysis.host import HostSeries
from testbed.analysis.lateness import LEAST_MESSAGES
from testbed.analysis.limits import Finding, Limit
from testbed.analysis.reason import Places, reason
from testbed.analysis.recorded_error import ErrorWords, RecordedError, error_findings, recorded_error
from testbed.analysis.records import Floats

EARLY_S = 1e-6  # what scaling and subtracting instants may cost
WORDS = ErrorWords("injection", "injection error (received less sent less drawn)", "on", "messages")


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


def injection_errors(hops: Iterable[Hop], time_scale: float) -> list[RecordedError]:
    """Of every link or pool with enough messages; the instant is that of the receipt, the node the one that receives."""
    return [
        recorded_error(
            hop.name, _errors_s(hop, time_scale), hop.received_at_s, "" if hop.pool else hop.link.target
        )
        for hop in hops
        if len(hop.sent_at_s) >= LEAST_MESSAGES
    ]


def injection_findings(
    errors: list[RecordedError],
    early: Early | None,
    limit: Limit,
    time_scale: float,
    host: HostSeries,
    places: Places,
) -> Iterator[Finding]:
    """The worst link against the limit, and any message that came before its time.

    Args:
        errors: of all links and pools.
        early: the message that came too early by most.
        limit: of the verdict.
        time_scale: of the scenario.
        host: what the machine did.
        places: of the nodes.
    """
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
    yield from error_findings(errors, WORDS, limit, time_scale, host, places)


def _errors_s(hop: Hop, time_scale: float) -> Floats:
    """Of each message, wall seconds; minus infinity where the link's model had lost it."""
    errors_s = (hop.received_at_s - hop.sent_at_s - hop.drawn_s) * time_scale
    return np.where(np.isfinite(errors_s), errors_s, -np.inf)
