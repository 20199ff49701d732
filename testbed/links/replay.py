"""A link whose delay and loss follow a recorded course."""

from __future__ import annotations

from testbed.scenario.link_words import Replay
from testbed.scenario.series import Series, read_series


class ReplayedCourse:
    """The delay and the loss of a link at any instant, as a file has them."""

    __slots__ = ("_replay", "_series")

    def __init__(self, replay: Replay) -> None:
        """Read the file.

        Raises:
            RunError: it is missing or malformed.
        """
        self._replay = replay
        self._series: Series = read_series(replay.path)

    def delay_s(self, at_s: float) -> float | None:
        """The delay of a message sent at this instant of run time; None: the file tells none."""
        values = self._series.delay_s
        return None if values is None else values[self._row(at_s)] * self._replay.unit

    def loss(self, at_s: float) -> float | None:
        """The probability that a message sent at this instant is lost; None: the file tells none."""
        values = self._series.loss
        return None if values is None else values[self._row(at_s)]

    def mean_delay_s(self) -> float | None:
        """The mean over the file's time; None: it tells no delay."""
        values = self._series.delay_s
        return None if values is None else self._series.mean(values) * self._replay.unit

    def least_delay_s(self) -> float | None:
        """The least delay; None: it tells none."""
        values = self._series.delay_s
        return None if values is None else min(values) * self._replay.unit

    def mean_loss(self) -> float | None:
        """The mean over the file's time; None: it tells no loss."""
        values = self._series.loss
        return None if values is None else self._series.mean(values)

    def _row(self, at_s: float) -> int:
        replay = self._replay
        return self._series.row_at((at_s - (replay.since or 0.0)) / replay.unit, repeat=replay.repeat)
