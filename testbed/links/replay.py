"""A link whose delay and loss follow a recorded course."""

from __future__ import annotations

from collections.abc import Sequence

from testbed.scenario.link_words import Replay
from testbed.scenario.relative import Relative
from testbed.scenario.series import Series, read_series


class ReplayedCourse:
    """The delay and the loss of a link at any instant, as a file has them, the delay with changes on top."""

    __slots__ = ("_changes", "_replay", "_series")

    def __init__(self, replay: Replay, changes: Sequence[Relative] = ()) -> None:
        """Read the file.

        Args:
            replay: which file, and how it is read.
            changes: of the delays that it has, one after another.

        Raises:
            RunError: it is missing or malformed.
        """
        self._replay = replay
        self._changes = changes
        self._series: Series = read_series(replay.path)

    def delay_s(self, at_s: float) -> float | None:
        """The delay of a message sent at this instant of run time; None: the file tells none."""
        values = self._series.delay_s
        return None if values is None else self._changed_s(values[self._row(at_s)])

    def loss(self, at_s: float) -> float | None:
        """The probability that a message sent at this instant is lost; None: the file tells none."""
        values = self._series.loss
        return None if values is None else values[self._row(at_s)]

    def mean_delay_s(self) -> float | None:
        """The mean over the file's time; None: it tells no delay."""
        values = self._series.delay_s
        return None if values is None else self._series.mean([self._changed_s(value) for value in values])

    def least_delay_s(self) -> float | None:
        """The least delay; None: it tells none."""
        values = self._series.delay_s
        return None if values is None else self._changed_s(min(values))

    def mean_loss(self) -> float | None:
        """The mean over the file's time; None: it tells no loss."""
        values = self._series.loss
        return None if values is None else self._series.mean(values)

    def _changed_s(self, value: float) -> float:
        """What becomes of a delay of the file, seconds."""
        delay_s = value * self._replay.unit
        for change in self._changes:
            delay_s = change.of(delay_s)
        return delay_s

    def _row(self, at_s: float) -> int:
        replay = self._replay
        return self._series.row_at((at_s - (replay.since or 0.0)) / replay.unit, repeat=replay.repeat)
