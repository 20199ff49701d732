"""Tables come back from Parquet as the analysis takes them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from testbed.errors import RunError
from testbed.record.gather import Texts
from testbed.record.parquet import read_table, write_table
from testbed.record.read import read_tables, tables_there

RUN = {"scenario": "tiny", "seed": 3}


def sample_rows(by_class: list[list[int]]) -> dict[str, object]:
    number = len(by_class)
    counts = dict.fromkeys(
        ("queued", "running", "prompt_tokens", "output_tokens", "arrivals"), np.arange(number)
    )
    instants = dict.fromkeys(("at_s", "kv_fraction", "busy_s"), np.arange(number) * 0.1)
    names = Texts.of([f"us/server-{i % 2}" for i in range(number)])
    return {"cell": Texts.of(["us"] * number), "server": names, "by_class": by_class, **counts, **instants}


def test_texts_numbers_and_counts_by_class_come_back(tmp_path: Path) -> None:
    write_table(tmp_path / "cells.parquet", "cells", sample_rows([[1, 2], [3, 4], [5, 6]]), RUN)

    table = read_tables(tmp_path, ["cells"])["cells"]

    assert table["server"].tolist() == ["us/server-0", "us/server-1", "us/server-0"]
    assert (table["server"] == "us/server-0").tolist() == [True, False, True]
    assert table["by_class"].tolist() == [[1, 2], [3, 4], [5, 6]]
    assert table["by_class"].shape == (3, 2)
    assert table["at_s"].dtype == np.float64
    assert table["queued"].dtype == np.int64


def test_numbered_texts_answer_as_an_array_of_words_does(tmp_path: Path) -> None:
    write_table(tmp_path / "cells.parquet", "cells", sample_rows([[1]] * 3), RUN)

    server = read_table(tmp_path / "cells.parquet", numbered=True)["server"]
    words = read_table(tmp_path / "cells.parquet")["server"]

    assert isinstance(server, Texts)
    assert len(server) == 3
    assert server.tolist() == words.tolist() == np.asarray(server).tolist()
    assert (server == "us/server-0").tolist() == (words == "us/server-0").tolist()
    assert (server != "us/server-0").tolist() == [False, True, False]
    assert (server == "nobody").tolist() == [False] * 3
    assert server[1] == "us/server-1"
    assert server[np.array([True, False, True])].tolist() == ["us/server-0"] * 2
    assert server[1:].tolist() == words[1:].tolist()


def test_counts_of_unequal_length_come_back_as_lists(tmp_path: Path) -> None:
    write_table(tmp_path / "cells.parquet", "cells", sample_rows([[1], [], [2, 3]]), RUN)

    assert read_table(tmp_path / "cells.parquet")["by_class"].tolist() == [[1], [], [2, 3]]


def test_an_empty_table_keeps_its_columns(tmp_path: Path) -> None:
    write_table(tmp_path / "cells.parquet", "cells", sample_rows([]), RUN)

    table = read_table(tmp_path / "cells.parquet")

    assert all(len(column) == 0 for column in table.values())
    assert table["at_s"].dtype == np.float64


def test_a_table_explains_its_columns(tmp_path: Path) -> None:
    write_table(tmp_path / "cells.parquet", "cells", sample_rows([[1]]), RUN)

    schema = pq.read_schema(tmp_path / "cells.parquet")

    assert schema.field("at_s").metadata[b"meaning"] == b"instant of the sample"
    assert schema.metadata[b"scenario"] == b"tiny"


def test_a_missing_table_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunError) as caught:
        read_tables(tmp_path)

    assert str(caught.value) == f"there is no table {tmp_path / 'requests.parquet'}"


def test_a_run_of_an_earlier_version_has_the_tables_that_it_has(tmp_path: Path) -> None:
    """Of those that came later none is asked for; one that every version writes is missed all the same."""
    write_table(tmp_path / "cells.parquet", "cells", sample_rows([[1]]), RUN)

    assert tables_there(tmp_path) == ["requests", "observations", "cells", "faults"]
    with pytest.raises(RunError, match="there is no table"):
        read_tables(tmp_path, tables_there(tmp_path))


def test_what_is_no_table_is_named(tmp_path: Path) -> None:
    (tmp_path / "requests.parquet").write_text("not a table")

    with pytest.raises(RunError, match=r"could not read the table .*requests\.parquet"):
        read_tables(tmp_path)


def test_a_folder_that_is_not_there_is_named_when_writing(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"could not write the table .*cells\.parquet"):
        write_table(tmp_path / "none" / "cells.parquet", "cells", sample_rows([[1]]), RUN)
