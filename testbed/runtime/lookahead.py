"""How long a message may wait before it is sent on, or before it is read, and still come before its release.

A message travels at once and then waits for its release, so on a link with delay there is time to spare. A sender
spends a part of it on gathering what goes to one peer into fewer frames; a receiver spends another on sleeping through
the arrival of frames. Each wake-up saved is worth more than the handling of a message. The rest of the delay is for
the transport. Simulators that run in parallel call such a promise of the links their lookahead.

A link promises a delay that all but one message in a million keep, since most kinds of jitter reach down to 0 in
principle; one that a fault of the scenario touches promises nothing, since a fault may take its delay away. Lateness
and inversions are measured as ever, so a promise that transport or jitter breaks is seen in the verdict.

Source: Chandy and Misra, Distributed simulation (IEEE TSE 1979), for the term.
"""

from __future__ import annotations

from collections.abc import Iterable

from testbed.links.delay import delay_quantile, least_delay_s
from testbed.scenario.fault_plan import fault_plan
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import Link, Topology

TRANSPORT_S = 0.001  # kept for the way between two processes on a busy host; links below it promise nothing
BROKEN_FRACTION = 1e-6  # of the messages are released sooner than their link promises
HELD_SHARE = 0.4  # of what is left, for the sender
UNREAD_SHARE = 0.5  # and for the receiver; the last tenth is spare
MOST_HELD_S = 0.002
MOST_UNREAD_S = 0.002  # a process hears the launcher this late at most


class Lookahead:
    """What the links of a run promise.

    Args:
        scenario: in run time; its instants are those of the wall clock.
        topology: its nodes and links.
    """

    def __init__(self, scenario: Scenario, topology: Topology) -> None:
        self._touched = {number for fault in fault_plan(scenario, topology) for number in fault.links}

    def held_s(self, links: Iterable[Link]) -> float:
        """Longest time for which a sender may gather what goes over these links."""
        return min(MOST_HELD_S, HELD_SHARE * self._spare_s(links))

    def unread_s(self, links: Iterable[Link]) -> float:
        """Longest time for which a receiver may leave unread what comes over these links."""
        return min(MOST_UNREAD_S, UNREAD_SHARE * self._spare_s(links))

    def _spare_s(self, links: Iterable[Link]) -> float:
        least_s = min((self._promised_s(link) for link in links), default=0.0)
        return max(0.0, least_s - TRANSPORT_S)

    def _promised_s(self, link: Link) -> float:
        effect = link.effect
        if link.number in self._touched:
            return 0.0
        if effect.reorder is not None or effect.delay_replay is not None:
            return least_delay_s(effect)
        return delay_quantile(effect)(BROKEN_FRACTION)
