"""The sender's end of a link in the live engine: what is sent, gathered for one frame per peer.

Counts are kept since the last row of the log, and since the run began for the ledger.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import add
from typing import Any

from testbed.links.counts import COUNTS
from testbed.links.link import LinkModel
from testbed.record.outcome import carried
from testbed.roles.messages import Message
from testbed.runtime.wire import Section
from testbed.scenario.topology import Link


class Outbox:
    """What is to be sent to one peer; emptied at the end of a pass.

    Args:
        deliver: takes the sections to the peer.
        filled: the outboxes that have something; an outbox adds itself.

    Attributes:
        held_s: how long it may gather before it has to be emptied.
        filled_at_s: run time at which it began to fill.
    """

    __slots__ = ("_deliver", "_ends", "_filled", "_sections", "filled_at_s", "held_s")

    def __init__(self, deliver: Callable[[list[Section]], None], filled: list[Outbox]) -> None:
        self._deliver = deliver
        self._filled = filled
        self._sections: list[Section] = []
        self._ends: list[SendingEnd] = []
        self.held_s = self.filled_at_s = 0.0

    def add(self, end: SendingEnd, section: Section, at_s: float) -> None:
        """Take a section, begun at this instant, that its end goes on filling."""
        if not self._sections:
            self.filled_at_s = at_s
            self._filled.append(self)
        self._sections.append(section)
        self._ends.append(end)

    def flush(self) -> None:
        """Deliver all sections together."""
        sections, self._sections = self._sections, []
        for end in self._ends:
            end.kind = None
        self._ends.clear()
        self._deliver(sections)


class SendingEnd:
    """The sender's half of a link.

    Attributes:
        draw: release instant of a message, or None: it has not one release of its own (see `LinkModel`).
        kind: of the messages in the section that grows; None when there is no section.
        releases: of the messages in that section.
        messages: in that section.
        sent: messages since the last row.
        life: which life of the process at the other end messages go to, from 0.
        drawn_s: sum of the delays of what was not dropped.
    """

    __slots__ = (
        "_all_counts", "_all_sent", "_carried", "_outbox", "draw", "drawn_s", "kind", "life", "link", "messages", "model",
        "releases", "sent",
    )  # fmt: skip

    def __init__(self, link: Link, seed: int, outbox: Outbox, *, watched: bool = False) -> None:
        """Args:
        link: of the topology.
        seed: of the run.
        outbox: to the process at the other end.
        watched: faults will change the link in this run.
        """
        self.link = link
        self.model = LinkModel(seed, link, watched=watched)
        # its keys are whole numbers, which the union of all messages does not tell the type checker
        self.draw: Callable[[Any, Any, float], float | None] = self.model.draw
        self._outbox = outbox
        self.kind: type | None = None
        self.releases: list[float] = []
        self.messages: list[Message] = []
        self.sent = self._all_sent = 0
        self._all_counts = (0,) * len(COUNTS)
        self.drawn_s = 0.0
        self.life = 0
        self._carried: dict[int, int] = {}  # to earlier lives

    def begin_at(self, life: int) -> None:
        """Nothing was sent yet: begin with this life of the process at the other end."""
        self.life = life
        self._carried = {}

    def next_life(self) -> None:
        """The process at the other end is dead: what is sent from now on is for its next life, if there is one."""
        self._carried = self.carried()
        self.life += 1

    def carried(self) -> dict[int, int]:
        """How many messages left for each life of the process at the other end."""
        return {**self._carried, self.life: carried(self.totals()) - sum(self._carried.values())}

    def open_section(self, kind: type, at_s: float) -> None:
        """Begin a section for messages of this kind, behind those that wait to go the same way."""
        self.kind = kind
        self.releases, self.messages = [], []
        self._outbox.add(self, (self.link.number, kind, self.releases, self.messages), at_s)

    def put(self, kind: type, message: Message, release_at_s: float, sent_at_s: float) -> None:
        """Add a message, or a copy of one, to the section of its kind."""
        self.drawn_s += release_at_s - sent_at_s
        if self.kind is not kind:
            self.open_section(kind, sent_at_s)
        self.releases.append(release_at_s)
        self.messages.append(message)

    def take_row(self, at_s: float) -> tuple[Any, ...]:
        """The row of table `sent` up to this instant; what it counts is not counted again."""
        counts = self.model.counts.take()
        row = (self.link.number, at_s, self.sent, *counts, self.drawn_s)
        self._all_sent += self.sent
        self._all_counts = tuple(map(add, self._all_counts, counts))
        self.sent = 0
        self.drawn_s = 0.0
        return row

    @property
    def all_sent(self) -> int:
        """Messages since the run began."""
        return self._all_sent + self.sent

    def totals(self) -> tuple[int, ...]:
        """Messages sent since the run began, and what `LinkCounts` has of them."""
        return self.all_sent, *map(add, self._all_counts, self.model.counts.read())
