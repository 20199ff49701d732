"""Arrivals and tokens replayed from public traces: the Azure LLM inference CSV and the Mooncake JSON lines.

Sources: github.com/Azure/AzurePublicDataset (AzureLLMInferenceDataset2023.md) and github.com/kvcache-ai/Mooncake
(FAST25-release). Formats are read as they are published, line ends and all.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from testbed.draw import key_base, uniform
from testbed.errors import RunError
from testbed.scenario.data_file import find_data, state_of
from testbed.scenario.schema import Trace
from testbed.scenario.words import MOST_TOKENS
from testbed.traffic.sharing import Sharing, key_space

_AZURE_COLUMNS = ["TIMESTAMP", "ContextTokens", "GeneratedTokens"]
_MOONCAKE_KEYS = ("timestamp", "input_length", "output_length")
_MOONCAKE_STEP_S = 3.0  # the published time stamps are rounded to this
_MOST_MS = 10**12  # thirty years
_MOST_ID = 2**32 - 1  # of a block
_MOONCAKE_BLOCK = 512  # tokens
Blocks: TypeAlias = tuple[int, ...]  # ids of the blocks of a prompt
Row: TypeAlias = tuple[float, int, int, Blocks]  # seconds, prompt tokens, output tokens, blocks
WHERE = {
    "azure": "an Azure LLM inference trace (CSV): get it from github.com/Azure/AzurePublicDataset,"
    " data/AzureLLMInferenceTrace_conv.csv or data/AzureLLMInferenceTrace_code.csv",
    "mooncake": "a Mooncake trace (JSON lines): get it from github.com/kvcache-ai/Mooncake,"
    " FAST25-release/traces/conversation_trace.jsonl",
}


@dataclass(frozen=True)
class TraceRows:
    """Requests of a trace, in the order of time; all arrays of shape (requests,).

    Attributes:
        row: position of the request in the file, from 0; draws are keyed by it.
        at_s: arrival, seconds.
        prompt_tokens: at least 1.
        output_tokens: at least 1.
        sharing: the blocks of each prompt, where the trace tells them.
    """

    row: NDArray[np.int64]
    at_s: NDArray[np.float64]
    prompt_tokens: NDArray[np.int64]
    output_tokens: NDArray[np.int64]
    sharing: Sharing

    def __len__(self) -> int:
        """How many requests."""
        return len(self.row)

    def where(self, kept: NDArray[Any]) -> TraceRows:
        """The requests that a mask or an index array picks."""
        rows = np.arange(len(self))[kept]
        return TraceRows(
            self.row[rows],
            self.at_s[rows],
            self.prompt_tokens[rows],
            self.output_tokens[rows],
            self.sharing.taken(rows),
        )


def read_trace(trace: Trace, *, seed: int, stretch: float) -> TraceRows:
    """The requests that a scenario replays: its window of the trace, from time 0 on, in run time.

    Args:
        trace: as the scenario in run time says it (`from` and `for` are stretched already).
        seed: keys the spread of Mooncake's requests over their steps of 3 s.
        stretch: run time over scenario time (`Scenario.stretch`), for the instants of the file.

    Raises:
        RunError: the file is missing or cannot be read, or a row is malformed.
    """
    path = find_data(trace.path, "no trace", f"{trace.path} is to be {WHERE[trace.format]}")
    rows = _timed_rows(path, trace.format, seed, state_of(path))
    at_s = rows.at_s * stretch - trace.from_
    kept = at_s >= 0.0
    if trace.for_ is not None:
        kept &= at_s < trace.for_
    window = rows.where(kept)
    return replace(window, at_s=at_s[kept] / trace.rate_factor)


def deal(rows: TraceRows, weights: list[float], *, seed: int, name: str) -> NDArray[np.int64]:
    """Which of the lines of traffic that replay a trace gets each request; shape (requests,).

    The draw is keyed by the row of the file, so another window deals the same rows to the same lines.
    """
    base = key_base(seed, "trace", name, "deal")
    draws = np.array([uniform(base, row) for row in rows.row.tolist()])
    edges = np.cumsum(weights)
    return np.searchsorted(edges[:-1] / edges[-1], draws, side="right").astype(np.int64)


@lru_cache(maxsize=4)
def _timed_rows(path: Path, form: str, seed: int, _state: tuple[int, int]) -> TraceRows:
    """All requests of a file, from its first on, sorted by time; kept until the file's state changes."""
    at_s, prompt_tokens, output_tokens, blocks = _columns(path, form)
    if form == "mooncake":
        base = key_base(seed, "trace", "spread")
        at_s = at_s + _MOONCAKE_STEP_S * np.array([uniform(base, row) for row in range(len(at_s))])
    sharing = _block_chains(blocks, prompt_tokens, key_space(seed, "trace", path.name))
    rows = TraceRows(
        np.arange(len(at_s)), at_s, np.maximum(1, prompt_tokens), np.maximum(1, output_tokens), sharing
    )
    return rows.where(np.argsort(at_s, kind="stable"))


def _block_chains(blocks: Sequence[Blocks], prompt_tokens: NDArray[np.int64], first_key: int) -> Sharing:
    """The chains of prompts that are cut into blocks of equal length, but for the last of each."""
    counts = np.array([len(each) for each in blocks])
    starts = np.concatenate([[0], np.cumsum(2 * counts)])
    pairs = np.full(starts[-1], _MOONCAKE_BLOCK)
    pairs[::2] = first_key + np.fromiter(chain.from_iterable(blocks), np.int64, counts.sum())
    some = counts > 0
    pairs[starts[1:][some] - 1] = prompt_tokens[some] - _MOONCAKE_BLOCK * (counts[some] - 1)
    return Sharing(np.zeros(len(counts), np.int64), starts, pairs)


def _columns(
    path: Path, form: str
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64], Sequence[Blocks]]:
    """Seconds, prompt tokens, output tokens and blocks of a file, in the order of its rows."""
    parse: Callable[[IO[str], Path], Iterator[Row]]
    parse = _azure if form == "azure" else _mooncake
    try:
        # newline="": the csv module wants the line ends as they are.
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(parse(file, path))
    except OSError as error:
        raise RunError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise RunError(f"{path}: is not text in UTF-8; accepted: {WHERE[form]}") from error
    if not rows:
        raise RunError(f"{path}: holds no request; accepted: {WHERE[form]}")
    at_s, prompt_tokens, output_tokens, blocks = zip(*rows, strict=True)
    return (
        np.array(at_s),
        np.array(prompt_tokens, dtype=np.int64),
        np.array(output_tokens, dtype=np.int64),
        blocks,
    )


def _azure(file: IO[str], path: Path) -> Iterator[Row]:
    reader = csv.reader(file)
    try:
        header = next(reader, [])
        if header != _AZURE_COLUMNS:
            raise _malformed(path, 1, f"the header is {','.join(header)!r}", ",".join(_AZURE_COLUMNS))
        first: datetime | None = None
        for cells in reader:
            if cells:
                at, prompt_tokens, output_tokens = _azure_row(cells, path, reader.line_num)
                first = at if first is None else first
                yield (at - first).total_seconds(), prompt_tokens, output_tokens, ()
    except csv.Error as error:
        raise _malformed(path, reader.line_num, str(error), ",".join(_AZURE_COLUMNS)) from error


def _azure_row(cells: list[str], path: Path, line: int) -> tuple[datetime, int, int]:
    if len(cells) != len(_AZURE_COLUMNS):
        raise _malformed(
            path, line, f"{','.join(cells)!r} has {len(cells)} columns", ",".join(_AZURE_COLUMNS)
        )
    try:
        # Seven decimals are published; the seventh is cut (the format of datetime knows six).
        at = datetime.fromisoformat(cells[0])
    except ValueError as error:
        accepted = "an instant such as 2023-11-16 18:15:46.6805900"
        raise _malformed(path, line, f"TIMESTAMP is {cells[0]!r}", accepted) from error
    if at.tzinfo is not None:
        at = at.astimezone(UTC).replace(tzinfo=None)
    return (
        at,
        _whole(cells[1], _AZURE_COLUMNS[1], path, line),
        _whole(cells[2], _AZURE_COLUMNS[2], path, line),
    )


def _mooncake(file: IO[str], path: Path) -> Iterator[Row]:
    for line, text in enumerate(file, start=1):
        if not text.strip():
            continue
        accepted = 'a JSON object with "timestamp" (ms), "input_length" and "output_length"'
        try:
            found = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise _malformed(path, line, f"{_short(text)} is not JSON", accepted) from error
        if not isinstance(found, dict):
            raise _malformed(path, line, f"{_short(text)} is not an object", accepted)
        missing = [key for key in _MOONCAKE_KEYS if key not in found]
        if missing:
            raise _malformed(path, line, f"{', '.join(missing)} missing", accepted)
        at_ms, prompt_tokens, output_tokens = (found[key] for key in _MOONCAKE_KEYS)
        prompt = _whole(prompt_tokens, "input_length", path, line)
        yield (
            _whole(at_ms, "timestamp", path, line, most=_MOST_MS) / 1000,
            prompt,
            _whole(output_tokens, "output_length", path, line),
            _blocks(found["hash_ids"], prompt, path, line) if "hash_ids" in found else (),
        )


def _blocks(value: object, prompt_tokens: int, path: Path, line: int) -> Blocks:
    """The ids of a prompt's blocks; equal ids mean that the prompts are equal up to there."""
    due = -(-prompt_tokens // _MOONCAKE_BLOCK)
    if not isinstance(value, list) or len(value) != due:
        accepted = f"a list of {due} ids of blocks of {_MOONCAKE_BLOCK} tokens, as input_length says"
        raise _malformed(path, line, f"hash_ids is {_short(value)}", accepted)
    return tuple(_whole(each, "a hash id", path, line, most=_MOST_ID) for each in value)


def _whole(value: object, name: str, path: Path, line: int, most: int = MOST_TOKENS) -> int:
    """A whole number from 0, as text (CSV) or as a JSON number."""
    text = value.strip() if isinstance(value, str) else value
    if isinstance(text, str) and text.isascii() and text.isdigit() and len(text) <= len(str(most)):
        text = int(text)
    if isinstance(text, int) and not isinstance(text, bool) and 0 <= text <= most:
        return text
    raise _malformed(path, line, f"{name} is {_short(value)}", f"a whole number from 0 to {most}")


def _short(value: object) -> str:
    text = repr(value.strip() if isinstance(value, str) else value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _malformed(path: Path, line: int, found: str, accepted: str) -> RunError:
    return RunError(f"{path}:{line}: {found}; accepted: {accepted}")
