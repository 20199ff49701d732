"""Requests that wait at a leaf until the servers that it asked have answered, or the time to do so is up."""

from __future__ import annotations

from dataclasses import dataclass, field

from testbed.roles.messages import ProbeReply, Request
from testbed.routing.view import Target


@dataclass
class Inquiry:
    """A request that waits for answers.

    Attributes:
        request: as it came.
        root: who sent it.
        at_leaf_s: when it came.
        needed: how many answers are enough, at least 1.
        probe_ids: of the probes sent for it.
        answers: those that have come.
    """

    request: Request
    root: str
    at_leaf_s: float
    needed: int
    probe_ids: range
    answers: list[tuple[Target, ProbeReply]] = field(default_factory=list)


class Inquiries:
    """All that wait, in order of arrival; every request for the same longest time."""

    def __init__(self, timeout_s: float) -> None:
        """Nothing waits."""
        self.timeout_s = timeout_s
        self._open: dict[int, Inquiry] = {}  # by the first of its probes
        self._asked_for: dict[int, int] = {}  # probe -> first probe of its request

    def __len__(self) -> int:
        return len(self._open)

    def add(self, inquiry: Inquiry) -> None:
        """Keep a request until enough of its probes are answered."""
        first = inquiry.probe_ids[0]
        self._open[first] = inquiry
        self._asked_for.update(dict.fromkeys(inquiry.probe_ids, first))

    def answer(self, target: Target, reply: ProbeReply) -> Inquiry | None:
        """An answer has come.

        Returns:
            The inquiry that has enough now, and is closed; None if there is none.
        """
        first = self._asked_for.get(reply.probe_id)
        if first is None:
            return None  # its request has gone on without it
        inquiry = self._open[first]
        inquiry.answers.append((target, reply))
        return self._close(first) if len(inquiry.answers) >= inquiry.needed else None

    def drop(self, request_id: int) -> Inquiry | None:
        """Close the one with this id; None if it does not wait."""
        for first, inquiry in self._open.items():
            if inquiry.request.request_id == request_id:
                return self._close(first)
        return None

    def take_expired(self, now_s: float) -> list[Inquiry]:
        """Close all whose time is up."""
        return [
            self._close(first)
            for first, inquiry in list(self._open.items())
            if inquiry.at_leaf_s + self.timeout_s <= now_s
        ]

    def next_expiry_s(self) -> float | None:
        """When the time of the oldest is up; None if nothing waits."""
        oldest = next(iter(self._open.values()), None)
        return None if oldest is None else oldest.at_leaf_s + self.timeout_s

    def open(self) -> list[Inquiry]:
        """All that wait, in order of arrival."""
        return list(self._open.values())

    def by_class(self, class_count: int) -> list[int]:
        """How many of each class wait."""
        counts = [0] * class_count
        for inquiry in self._open.values():
            counts[inquiry.request.class_index] += 1
        return counts

    def _close(self, first: int) -> Inquiry:
        inquiry = self._open.pop(first)
        for probe_id in inquiry.probe_ids:
            del self._asked_for[probe_id]
        return inquiry
