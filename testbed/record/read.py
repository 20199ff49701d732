"""The merged tables of an arm, as the analysis takes them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeAlias

from testbed.record.parquet import read_table
from testbed.record.tables import MERGED

Columns: TypeAlias = dict[str, Any]  # column -> array of shape (rows,), or `gather.Texts`

ALWAYS = ("requests", "faults", "observations")  # in every run's folder, whatever version wrote it


def tables_there(folder: Path) -> list[str]:
    """The tables that a `tables` folder has: a run of an earlier version has none that came later, and is analysed without.

    What every version has written is among them, so that reading a folder that has lost it fails.
    """
    return [name for name in MERGED if name in ALWAYS or (folder / f"{name}.parquet").exists()]


def read_tables(
    folder: Path, names: Iterable[str] = tuple(MERGED), *, numbered: bool = False
) -> dict[str, Columns]:
    """The tables of a `tables` folder, all of them unless named: table -> column -> values.

    Texts are object arrays, or `Texts` where `numbered`; `ints` have the shape (rows, ints) where all rows have as
    many.

    Raises:
        RunError: a table is missing or is no Parquet file; the text names the file.
    """
    return {name: read_table(folder / f"{name}.parquet", numbered=numbered) for name in names}
