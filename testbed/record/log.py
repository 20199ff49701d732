"""A node's log: written while the run goes on, read after it, both halves of the format in one file.

A log is the bytes `TESTBED1` and then frames, each its payload's length and CRC-32 (two little-endian 32-bit
numbers) and the payload, a msgpack array that begins with its kind:

    ["header", {...}]                        which run and node this is, and the columns of every table
    ["chunk", table, rows, [column, ...]]    the next rows of a table, by columns
    ["end", {table: rows}]                   the node closed its log; how many rows it wrote in all

A column of ints or floats is its 64-bit values as bytes, of flags a byte each; of text, its distinct words
and the number of each row's word; of `ints`, a list of lists. A process may die at any byte: whatever
precedes the first frame that is cut short or damaged is read, and the rest is reported.
"""

from __future__ import annotations

import struct
import sys
import time
import zlib
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import msgpack

from testbed.errors import RunError
from testbed.record.tables import LOGGED

MAGIC = b"TESTBED1"
_FRAME = struct.Struct("<II")  # length and CRC-32 of the payload
NUMBERS = "i"  # array type of the numbers of a text column's words
_ARRAY_OF = {"int": "q", "float": "d", "flag": "b"}


class Text(NamedTuple):
    """A text column: its distinct words with their numbers from 0, and the number of each row's word."""

    words: dict[str, int]
    numbers: array[int]

    def extend(self, words: list[str], numbers: array[int]) -> None:
        """Append rows that number these words from 0."""
        known = [self.words.setdefault(word, len(self.words)) for word in words]
        is_same = known == list(range(len(known)))
        self.numbers.extend(numbers if is_same else array(NUMBERS, map(known.__getitem__, numbers)))

    def spelled(self) -> list[str]:
        """The word of each row."""
        words = list(self.words)
        return [words[number] for number in self.numbers]


Values: TypeAlias = "array[Any] | Text | list[list[int]]"


def log_header(
    *, scenario: str, scenario_hash: str, seed: int, version: str, engine: str, node: str, started: str
) -> dict[str, Any]:
    """What a log says of its run.

    Args:
        scenario: name of the scenario.
        scenario_hash: of the resolved scenario.
        seed: of the run.
        version: of the testbed's code.
        engine: 'live' or 'virtual'.
        node: that writes the log.
        started: wall-clock instant in ISO form; a constant where logs are to be equal to the byte.
    """
    return {
        "scenario": scenario,
        "scenario_hash": scenario_hash,
        "seed": seed,
        "version": version,
        "engine": engine,
        "node": node,
        "started": started,
    }


class LogWriter:
    """Appends rows to a node's log, a chunk at a time.

    The file is open only while a chunk is written, so the number of nodes in a process has no bound. To write one takes
    a fraction of a millisecond; whoever has better and worse instants for that lets full tables wait for `write_full`.

    Attributes:
        full: the logs of which a table waits for `write_full`; this one adds itself, once.
    """

    __slots__ = ("_counts", "_is_full", "_most_rows", "_path", "_pause_s", "_rows", "_rows_per_chunk", "full")

    def __init__(
        self, path: Path, header: dict[str, Any], rows_per_chunk: int = 256, *, most_chunks: int = 1
    ) -> None:
        """Make the file, which must not exist yet.

        Args:
            path: of the log.
            header: which run and node it is of.
            rows_per_chunk: rows with which a table is full.
            most_chunks: a table with so many chunks full of rows is written at once; below that it waits.

        Raises:
            RunError: it cannot be written.
        """
        self._path = path
        self._rows: dict[str, list[tuple[Any, ...]]] = {table: [] for table in LOGGED}
        self._counts = dict.fromkeys(LOGGED, 0)
        self._rows_per_chunk = rows_per_chunk
        self._most_rows = most_chunks * rows_per_chunk
        self._is_full = False
        self.full: list[LogWriter] = []
        self._pause_s = 0.0
        self._write("make the log", "xb", MAGIC + _frame(_header(header)))

    def append(self, table: str, row: tuple[Any, ...]) -> None:
        """Add a row in the order of the table's columns.

        Raises:
            RunError: a chunk was full and could not be written.
        """
        rows = self._rows[table]
        rows.append(row)
        if len(rows) >= self._rows_per_chunk:
            if len(rows) >= self._most_rows:
                self._flush(table)
            elif not self._is_full:
                self._is_full = True
                self.full.append(self)

    def write_full(self) -> None:
        """Write the tables that are full; whoever calls has taken the log off `full`.

        Raises:
            RunError: it could not be done.
        """
        self._is_full = False
        for table, rows in self._rows.items():
            if len(rows) >= self._rows_per_chunk:
                self._flush(table)

    def take_pause_s(self) -> float:
        """The longest time that writing a chunk took since the last call, wall seconds."""
        pause_s, self._pause_s = self._pause_s, 0.0
        return pause_s

    def close(self) -> None:
        """Write what is left, and the end marker.

        Raises:
            RunError: it cannot be written.
        """
        for table, rows in self._rows.items():
            if rows:
                self._flush(table)
        counts = {table: count for table, count in self._counts.items() if count}
        self._write("close the log", "ab", _framed(["end", counts]))

    def _flush(self, table: str) -> None:
        began_s = time.monotonic()
        rows = self._rows[table]
        self._counts[table] += len(rows)
        self._write(f"write {len(rows)} rows of {table} to", "ab", _framed(_chunk(table, rows)))
        rows.clear()
        self._pause_s = max(self._pause_s, time.monotonic() - began_s)

    def _write(self, attempt: str, mode: str, data: bytes) -> None:
        try:
            with self._path.open(mode) as file:
                file.write(data)
        except OSError as error:
            raise RunError(f"could not {attempt} {self._path}: {error.strerror}") from error


def _framed(payload: list[Any]) -> bytes:
    return _frame(msgpack.packb(payload))


def _frame(data: bytes) -> bytes:
    return _FRAME.pack(len(data), zlib.crc32(data)) + data


def _header(words: dict[str, Any]) -> bytes:
    """The payload `["header", {...}]`; what is the same in all logs is packed once, since many are made at a time."""
    packer = msgpack.Packer(autoreset=False)
    packer.pack_array_header(2)
    packer.pack("header")
    packer.pack_map_header(len(words) + 2)
    for key, word in words.items():
        packer.pack(key)
        packer.pack(word)
    packed: bytes = packer.bytes()
    return packed + _SAME


_COLUMNS = {table: [(each.name, each.type) for each in due] for table, due in LOGGED.items()}
_SAME = b"".join(map(msgpack.packb, ("byte_order", sys.byteorder, "columns", _COLUMNS)))


def _chunk(table: str, rows: list[tuple[Any, ...]]) -> list[Any]:
    due = LOGGED[table]
    columns = list(zip(*rows, strict=True))
    assert len(columns) == len(due), f"{table}: rows of {len(columns)} values for {len(due)} columns"
    packed = [
        _packed(f"{table}.{column.name}", column.type, values)
        for column, values in zip(due, columns, strict=True)
    ]
    return ["chunk", table, len(rows), packed]


def _packed(name: str, kind: str, values: Sequence[Any]) -> Any:
    try:
        if kind in _ARRAY_OF:
            # as the bytes of an array, for half the time
            return struct.pack(f"={len(values)}{_ARRAY_OF[kind]}", *values)
    except struct.error as error:
        raise TypeError(f"{name} takes values of type {kind}: {error}") from error
    if kind == "ints":
        return values
    numbers = {word: i for i, word in enumerate(dict.fromkeys(values))}
    return [list(numbers), struct.pack(f"={len(values)}{NUMBERS}", *map(numbers.__getitem__, values))]


@dataclass
class Log:
    """What a log holds.

    Attributes:
        header: which run and node; empty where not even the header is whole.
        columns: table -> column -> values, in the order of writing; tables without rows are left out.
        complete: the node closed the log, and all is there.
        problem: what is wrong with it; None where it is complete.
    """

    header: dict[str, Any] = field(default_factory=dict)
    columns: dict[str, dict[str, Values]] = field(default_factory=dict)
    complete: bool = False
    problem: str | None = "no end marker: the node did not close its log"

    @property
    def tables(self) -> dict[str, dict[str, list[Any]]]:
        """table -> column -> values as a plain list: texts spelled out, flags as booleans."""
        return {
            table: {name: _plain(values, self._kinds(table)[name]) for name, values in held.items()}
            for table, held in self.columns.items()
        }

    def rows(self, table: str) -> list[tuple[Any, ...]]:
        """The rows of a table, as they were appended."""
        return list(zip(*self.tables.get(table, {}).values(), strict=True))

    def _kinds(self, table: str) -> dict[str, str]:
        """Column -> type, as the log itself has it."""
        return dict(self.header["columns"][table])


def read_log(path: Path) -> Log:
    """All whole records of a log, however it ended; what is wrong with it stands in `Log.problem`.

    Raises:
        RunError: the file cannot be read, or was written on a host of another byte order.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise RunError(f"could not read the log {path}: {error.strerror}") from error
    log = Log()
    counts: dict[str, int] = {}
    for payload in _payloads(data, log):
        kind, *fields = msgpack.unpackb(payload)
        if kind == "header":
            log.header = fields[0]
            if log.header["byte_order"] != sys.byteorder:
                raise RunError(f"{path} was written on a {log.header['byte_order']}-endian host")
        elif kind == "chunk":
            table, rows, packed = fields
            counts[table] = counts.get(table, 0) + rows
            _take_chunk(log, table, packed)
        else:
            log.complete = fields[0] == counts
            log.problem = None if log.complete else f"rows are missing: {counts} of {fields[0]}"
    return log


def _payloads(data: bytes, log: Log) -> Iterator[memoryview]:
    """The payloads of the whole frames; what ends them too early becomes the log's problem."""
    if data[: len(MAGIC)] != MAGIC:
        log.problem = f"not a log: begins with {data[: len(MAGIC)]!r} instead of {MAGIC!r}"
        return
    view, at = memoryview(data), len(MAGIC)
    while at < len(data):
        body_at = at + _FRAME.size
        length, checksum = _FRAME.unpack_from(data, at) if body_at <= len(data) else (0, 0)
        end = body_at + length
        if end > len(data):
            log.complete, log.problem = (
                False,
                f"cut short: the frame at byte {at} of {len(data)} is not whole",
            )
            return
        if zlib.crc32(view[body_at:end]) != checksum:
            log.complete, log.problem = (
                False,
                f"damaged: the frame at byte {at} of {len(data)} fails its checksum",
            )
            return
        yield view[body_at:end]
        at = end


def _take_chunk(log: Log, table: str, packed: list[Any]) -> None:
    kinds = log.header["columns"][table]
    if table not in log.columns:
        log.columns[table] = {name: _empty(kind) for name, kind in kinds}
    for (name, _), values in zip(kinds, packed, strict=True):
        held = log.columns[table][name]
        if isinstance(held, Text):
            held.extend(values[0], array(NUMBERS, values[1]))
        elif isinstance(held, list):
            held.extend(values)
        else:
            held.frombytes(values)


def _empty(kind: str) -> Values:
    if kind == "text":
        return Text({}, array(NUMBERS))
    return [] if kind == "ints" else array(_ARRAY_OF[kind])


def _plain(values: Values, kind: str) -> list[Any]:
    if isinstance(values, Text):
        return values.spelled()
    return [bool(value) for value in values] if kind == "flag" else list(values)
