"""The merged tables of an arm, as the analysis takes them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeAlias

from numpy.typing import NDArray

from testbed.record.parquet import read_table
from testbed.record.tables import MERGED

Columns: TypeAlias = dict[str, NDArray[Any]]


def read_tables(folder: Path, names: Iterable[str] = tuple(MERGED)) -> dict[str, Columns]:
    """The tables of a `tables` folder, all of them unless named: table -> column -> values.

    Texts are object arrays; `ints` have the shape (rows, ints) where all rows have as many.

    Raises:
        RunError: a table is missing or is no Parquet file; the text names the file.
    """
    return {name: read_table(folder / f"{name}.parquet") for name in names}
