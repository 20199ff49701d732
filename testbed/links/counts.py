"""What a link's sender counts beside the messages sent: drops by cause, copies, overtakings."""

from __future__ import annotations

DROP_CAUSES = ("loss", "cut", "queue", "dead")
COUNTS = (*DROP_CAUSES, "duplicated", "reordered")  # all of them, in the order in which they are taken


class LinkCounts:
    """Counts since they were last taken.

    Attributes:
        loss: messages dropped by chance, as the link's loss has it.
        cut: dropped since the link was cut by a partition, or down as it flaps.
        queue: dropped since as many as may wait for the link's rate were waiting.
        dead: dropped since the process at its end was dead, or died before their release.
        duplicated: copies made.
        reordered: messages released before one that was sent earlier.
    """

    __slots__ = ("cut", "dead", "duplicated", "loss", "queue", "reordered")

    def __init__(self) -> None:
        """Begin at 0."""
        self.loss = self.cut = self.queue = self.dead = self.duplicated = self.reordered = 0

    def take(self) -> tuple[int, ...]:
        """The counts in the order of `COUNTS`, which count from 0 again."""
        taken = self.read()
        self.loss = self.cut = self.queue = self.dead = self.duplicated = self.reordered = 0
        return taken

    def read(self) -> tuple[int, ...]:
        """The same, left as they are."""
        return self.loss, self.cut, self.queue, self.dead, self.duplicated, self.reordered
