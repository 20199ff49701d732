"""The logs of an arm as arrays: one table each, the rows of all nodes together, in scenario time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from testbed.errors import RunError
from testbed.record.log import Log, Text, Values, read_log
from testbed.record.tables import LOGGED, Column

RUN_KEYS = ("scenario", "scenario_hash", "seed", "engine", "version")  # equal in all logs of a run
_DTYPES = {"int": np.int64, "float": np.float64, "flag": np.bool_}


@dataclass(frozen=True, eq=False)
class Texts:
    """A text column: distinct words, and the number of each row's word; shape of `numbers`: (rows,).

    It compares with a word, takes masks and gives lists as an array of objects does, and is many times as fast.
    """

    words: tuple[str, ...]
    numbers: NDArray[np.int32]

    @classmethod
    def of(cls, rows: Sequence[str]) -> Texts:
        """The column with these words."""
        number = {word: i for i, word in enumerate(dict.fromkeys(rows))}
        return cls(tuple(number), np.array([number[word] for word in rows], dtype=np.int32))

    def __len__(self) -> int:
        return len(self.numbers)

    # it compares as an array does, row by row, where the type checker expects one answer
    def __eq__(self, word: object) -> NDArray[np.bool_]:  # type: ignore[override]
        """Which rows hold this word."""
        held = [number for number, each in enumerate(self.words) if each == word]
        return np.asarray(np.isin(self.numbers, held) if len(held) > 1 else self.numbers == (held or [-1])[0])

    # as above
    def __ne__(self, word: object) -> NDArray[np.bool_]:  # type: ignore[override]
        """Which rows hold another word."""
        return ~(self == word)

    # what has no one answer to a comparison has no hash
    __hash__ = None  # type: ignore[assignment]

    def __getitem__(self, rows: Any) -> Any:
        """The word of a row, or the column of the rows that a mask, a slice or positions keep."""
        numbers = self.numbers[rows]
        return Texts(self.words, numbers) if isinstance(numbers, np.ndarray) else self.words[numbers]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """The words as objects, for whatever wants an array."""
        words = np.array([*self.words, ""], dtype=object)[:-1]
        return np.asarray(words[self.numbers], dtype=dtype)

    def tolist(self) -> list[str]:
        """The word of each row."""
        return list(map(self.words.__getitem__, self.numbers.tolist()))

    def taken(self, rows: NDArray[np.intp]) -> Texts:
        """The rows at these positions, in this order."""
        return Texts(self.words, self.numbers[rows])

    def places(self, words: Sequence[str]) -> NDArray[np.int32]:
        """The position of each row's word in `words`; -1 where it is not one of them."""
        position = {word: i for i, word in enumerate(words)}
        return np.array([position.get(word, -1) for word in self.words], dtype=np.int32)[self.numbers]


Rows: TypeAlias = dict[str, Any]  # column -> NDArray of shape (rows,), Texts, or a list of lists of ints


@dataclass(frozen=True)
class Gathered:
    """The logs of an arm.

    Attributes:
        run: what all headers say alike: the keys of RUN_KEYS.
        tables: every table of `LOGGED`, also where it has no rows.
        problems: what is wrong with the logs, a line each; empty when every node closed a whole log.
    """

    run: dict[str, Any]
    tables: dict[str, Rows]
    problems: tuple[str, ...]


def gather(paths: Iterable[Path], time_scale: float) -> Gathered:
    """Read and join logs, and divide all run time by the time scale.

    Raises:
        RunError: a log cannot be read, or the logs are of several runs.
    """
    logs = {path: read_log(path) for path in paths}
    problems = tuple(f"{path.name}: {log.problem}" for path, log in logs.items() if log.problem is not None)
    tables: dict[str, Rows] = {}
    for table, due in LOGGED.items():
        tables[table] = {
            column.name: _joined(list(logs.values()), table, column, time_scale) for column in due
        }
        for log in logs.values():
            log.columns.pop(table, None)  # or all rows would be in memory twice
    return Gathered(_run_of(logs), tables, problems)


def taken(table: Rows, rows: NDArray[np.intp]) -> Rows:
    """The rows at these positions, in this order."""
    return {name: _taken(values, rows) for name, values in table.items()}


def _taken(values: Any, rows: NDArray[np.intp]) -> Any:
    if isinstance(values, Texts):
        return values.taken(rows)
    return [values[row] for row in rows] if isinstance(values, list) else values[rows]


def _run_of(logs: dict[Path, Log]) -> dict[str, Any]:
    run: dict[str, Any] = {}
    for path, log in logs.items():
        if not log.header:
            continue
        said = {key: log.header.get(key, "") for key in RUN_KEYS}
        if run and said != run:
            raise RunError(f"{path} is of another run than the logs beside it: {said} instead of {run}")
        run = said
    return run


def _joined(logs: list[Log], table: str, column: Column, time_scale: float) -> Any:
    parts = [log.columns[table][column.name] for log in logs if table in log.columns]
    if column.type == "text":
        return _joined_texts(parts)
    if column.type == "ints":
        return [values for part in parts for values in part]
    dtype = _DTYPES[column.type]
    values = np.concatenate(
        [np.empty(0, dtype), *(np.asarray(part).astype(dtype, copy=False) for part in parts)]
    )
    return values / time_scale**column.time_power if column.time_power and time_scale != 1.0 else values


def _joined_texts(parts: list[Values]) -> Texts:
    words: dict[str, int] = {}
    numbers = [np.empty(0, dtype=np.int32)]
    for part in parts:
        assert isinstance(part, Text), "a text column holds texts"
        known = np.array([words.setdefault(word, len(words)) for word in part.words], dtype=np.int32)
        numbers.append(known[np.asarray(part.numbers)])
    return Texts(tuple(words), np.concatenate(numbers))
