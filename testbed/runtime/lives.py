"""Which processes a fault has killed, and which are to be started anew or woken, and when: the launcher's view of it.

A process that a fault kills says so and settles its accounts before it ends, so its end is no news to anybody. It is
forked again at once, so that it is ready by the instant at which the fault heals, and takes part from then on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from testbed.runtime.timeline import Outage, node_changes, outages
from testbed.runtime.wire import Ledger
from testbed.scenario.fault_plan import Fault
from testbed.scenario.topology import Topology


@dataclass
class Account:
    """What one life of a process told of its links: what it sent, and then what it received."""

    sent: Ledger | None = None
    received: Ledger | None = None


@dataclass
class Life:
    """A process, life after life.

    Attributes:
        number: of its present life, or of its last one, from 0.
        outages: planned ones to come, in their order.
        is_dying: it has said that it ends now.
        is_dead: it has ended, and its next life has not begun to take part.
        is_awaited: it is being started anew.
        died_at_s: run time of its last end.
        accounts: of each of its lives.
    """

    number: int = 0
    outages: list[Outage] = field(default_factory=list)
    is_dying: bool = False
    is_dead: bool = False
    is_awaited: bool = False
    died_at_s: float = 0.0
    accounts: list[Account] = field(default_factory=lambda: [Account()])

    @property
    def account(self) -> Account:
        """Of the present life."""
        return self.accounts[-1]

    def born_at_s(self, now_s: float) -> float:
        """When its next life is to begin: when no fault keeps it dead any more; infinite: never."""
        dead = [each for each in self.outages if each.is_dead]
        born_at_s = dead[0].until_s if dead else math.inf
        while later := [each.until_s for each in dead if each.at_s <= max(born_at_s, now_s) < each.until_s]:
            born_at_s = max(later)
        return born_at_s

    def next_to_hear(self, now_s: float) -> int:
        """The life to which messages sent to it now go: the next one where it is dead, or just about to be."""
        dies = any(each.is_dead and each.at_s <= now_s < each.until_s for each in self.outages)
        is_over = not self.is_awaited if self.is_dead else dies
        return self.number + is_over

    def begin_next(self) -> None:
        """It is started anew."""
        self.number += 1
        self.is_dying = False
        self.is_awaited = True
        self.accounts.append(Account())


def planned_lives(
    plan: Sequence[Fault], topology: Topology, homes: Mapping[str, Sequence[str]]
) -> dict[str, Life]:
    """The processes of a run with their planned outages; who shares a process is never killed or stopped."""
    lives = {}
    for process, nodes in homes.items():
        found = [
            outage
            for node in nodes
            for outage in outages(node_changes(plan, topology, node), topology.nodes[node].kind)
        ]
        lives[process] = Life(outages=found)
    return lives
