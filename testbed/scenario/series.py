"""Delay and loss of a link over time, from a CSV file: rows of an instant and its values, each held until the next."""

from __future__ import annotations

import csv
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from math import isfinite
from pathlib import Path
from typing import NamedTuple

from testbed.errors import RunError
from testbed.scenario.data_file import find_data, state_of
from testbed.scenario.link_words import Replay
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import Effect

COLUMNS = ("at_s", "delay_s", "loss")
_ACCEPTED = "a header at_s,delay_s or at_s,loss or at_s,delay_s,loss, and rows of numbers"
_MOST_ROWS = 5_000_000


class Series(NamedTuple):
    """What a file says.

    Attributes:
        at_s: instants, rising from 0 or later; the first row also holds before it.
        delay_s: delay from each instant on; None: the file has none.
        loss: probability of a drop from each instant on; None: the file has none.
    """

    at_s: tuple[float, ...]
    delay_s: tuple[float, ...] | None
    loss: tuple[float, ...] | None

    def row_at(self, at_s: float, *, repeat: bool) -> int:
        """The row that holds at an instant of the file's time; a repeated file begins anew at its last row."""
        if repeat and self.at_s[-1] > 0.0:
            at_s %= self.at_s[-1]
        return max(0, bisect_right(self.at_s, at_s) - 1)

    def mean(self, values: Sequence[float]) -> float:
        """The mean of some values of the rows over the time of the file; of the rows where that is 0."""
        length_s = self.at_s[-1]
        if length_s <= 0.0:
            return sum(values) / len(values)
        starts_s = (0.0, *self.at_s[1:])
        area = sum(
            value * (until - since)
            for value, (since, until) in zip(values[:-1], pairwise(starts_s), strict=True)
        )
        return area / length_s


def read_series(path: str) -> Series:
    """The series in a file, where `find_data` finds it.

    Raises:
        RunError: the file is missing or cannot be read, or a row is malformed.
    """
    found = find_data(path, "no file to replay", f"it is to be a CSV file with {_ACCEPTED}")
    state = state_of(found)
    try:
        return _read(found, state)
    except OSError as error:
        raise RunError(f"{found}: cannot be read: {error.strerror}") from error


def replays(scenario: Scenario) -> list[Replay]:
    """Every replay that a scenario names, in its links and faults."""
    actions = [kind for line in scenario.faults for kind in (line.random.kinds if line.random else (line,))]
    words = [*scenario.links, *(action.setting for action in actions)]
    return [each.replay for each in words if each.replay is not None]


def replays_delay(effect: Effect) -> bool:
    """Whether the delays of a link come from a file; of one that cannot be read it is not known, so they do not."""
    if effect.delay_replay is None:
        return False
    try:
        return read_series(effect.delay_replay.path).delay_s is not None
    except RunError:
        return False  # which `check_series` tells


def check_series(scenario: Scenario) -> None:
    """Read every file that the links will replay, so that a missing one is told before anything starts.

    Raises:
        RunError: as `read_series`.
    """
    for replay in replays(scenario):
        read_series(replay.path)


@lru_cache(maxsize=16)
def _read(path: Path, _state: tuple[int, int]) -> Series:
    with path.open(encoding="utf-8-sig", newline="") as file:
        try:
            reader = csv.reader(file)
            header = [name.strip() for name in next(reader, [])]
            _check_header(path, header)
            rows = [_row(path, reader.line_num, header, cells) for cells in reader if cells]
        except (csv.Error, UnicodeDecodeError) as error:
            raise RunError(f"{path}: {error}; accepted: {_ACCEPTED}") from error
    if not rows or len(rows) > _MOST_ROWS:
        raise RunError(f"{path}: {len(rows)} rows; accepted: from 1 to {_MOST_ROWS}")
    columns = dict(zip(header, zip(*rows, strict=True), strict=True))
    for line, (before, after) in enumerate(pairwise(columns["at_s"]), start=3):
        if after <= before:
            raise RunError(
                f"{path}: row {line}: at_s {after:g} does not follow {before:g}; accepted: rising instants"
            )
    return Series(columns["at_s"], columns.get("delay_s"), columns.get("loss"))


def _check_header(path: Path, header: list[str]) -> None:
    if (
        len(header) < 2
        or len(set(header)) < len(header)
        or "at_s" not in header
        or not set(header) <= set(COLUMNS)
    ):
        raise RunError(f"{path}:1: the header is {','.join(header)!r}; accepted: {_ACCEPTED}")


def _row(path: Path, line: int, header: list[str], cells: list[str]) -> tuple[float, ...]:
    try:
        values = tuple(float(cell) for cell in cells)
    except ValueError as error:
        raise RunError(f"{path}:{line}: {error}; accepted: {_ACCEPTED}") from error
    if len(values) != len(header):
        raise RunError(f"{path}:{line}: {len(values)} values; accepted: {len(header)}, as the header has")
    for name, value in zip(header, values, strict=True):
        most = 1.0 if name == "loss" else float("inf")
        if not (isfinite(value) and 0.0 <= value <= most):
            accepted = "from 0 to 1" if name == "loss" else "from 0"
            raise RunError(f"{path}:{line}: {name} is {value:g}; accepted: a number {accepted}")
    return values
