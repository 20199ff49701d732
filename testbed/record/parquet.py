"""A merged table as a Parquet file, both ways: equal data gives equal bytes, and the file explains itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from testbed.errors import RunError
from testbed.record.gather import Rows, Texts
from testbed.record.tables import MERGED, Column

_TYPES = {
    "int": pa.int64(),
    "float": pa.float64(),
    "flag": pa.bool_(),
    "text": pa.dictionary(pa.int32(), pa.string()),
    "ints": pa.list_(pa.int64()),
}


def write_table(path: Path, name: str, rows: Rows, run: dict[str, Any]) -> None:
    """Write the table of this name of `MERGED`.

    Args:
        path: of the file.
        name: of the table.
        rows: its columns, in any order.
        run: what the file says of its run: scenario, hash, seed, engine, version.

    Raises:
        RunError: it could not be written.
    """
    due = MERGED[name]
    assert set(rows) == {column.name for column in due}, f"{name}: columns {sorted(rows)} do not match"
    fields = [
        pa.field(column.name, _TYPES[column.type], metadata={"meaning": column.meaning}) for column in due
    ]
    schema = pa.schema(fields, metadata={"table": name, **{key: str(value) for key, value in run.items()}})
    table = pa.Table.from_arrays([_to_arrow(column, rows[column.name]) for column in due], schema=schema)
    try:
        pq.write_table(table, path, compression="zstd")
    except OSError as error:
        raise RunError(f"could not write the table {path}: {error}") from error


def read_table(path: Path, *, numbered: bool = False) -> dict[str, Any]:
    """The columns of a table: texts as objects, `ints` as shape (rows, ints) where all rows have as many.

    Args:
        path: of the file.
        numbered: texts as `Texts`, which are smaller and faster to compare than objects.

    Raises:
        RunError: there is no such file, or it is no Parquet file.
    """
    try:
        with pq.ParquetFile(path) as file:
            # one by one: to decode all columns at once takes as much memory again as they need
            return {
                name: _from_arrow(file.read([name]).unify_dictionaries()[name].combine_chunks(), numbered)
                for name in file.schema_arrow.names
            }
    except FileNotFoundError as error:
        raise RunError(f"there is no table {path}") from error
    except (OSError, pa.ArrowInvalid) as error:
        raise RunError(f"could not read the table {path}: {error}") from error


def read_run(path: Path) -> dict[str, str]:
    """What a table says of its run."""
    return {key.decode(): value.decode() for key, value in pq.read_schema(path).metadata.items()}


def _to_arrow(column: Column, values: Any) -> pa.Array:
    if isinstance(values, Texts):
        return pa.DictionaryArray.from_arrays(pa.array(values.numbers), pa.array(values.words, pa.string()))
    if column.type == "ints":
        return pa.array(list(values), _TYPES["ints"])
    return pa.array(values, _TYPES[column.type])


def _from_arrow(values: Any, numbered: bool) -> Any:
    if pa.types.is_dictionary(values.type):
        texts = Texts(tuple(values.dictionary.to_pylist()), values.indices.to_numpy())
        return texts if numbered else np.asarray(texts)
    if pa.types.is_list(values.type):
        return _from_lists(values)
    return np.asarray(values.to_numpy(zero_copy_only=False))


def _from_lists(values: Any) -> NDArray[Any]:
    widths = np.unique(values.value_lengths().to_numpy(zero_copy_only=False))
    if len(widths) > 1:
        lists = np.empty(len(values), dtype=object)
        lists[:] = values.to_pylist()
        return lists
    width = int(widths[0]) if len(widths) else 0
    return np.asarray(values.flatten().to_numpy(zero_copy_only=False)).reshape(len(values), width)
