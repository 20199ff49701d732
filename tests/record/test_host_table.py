"""The machine's own log explains a run; it does not decide whether the run is whole."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from testbed.record.host_table import host_table
from testbed.record.log import LogWriter
from testbed.record.run_folder import ArmFolder
from testbed.record.tables import LOGGED

HEADER = {
    "scenario": "x", "scenario_hash": "", "seed": 1, "version": "", "engine": "live", "node": "host-watcher", "started": "",
}  # fmt: skip


def row(at_s: float) -> tuple[float, ...]:
    return (at_s, 0.2, *[0.0] * (len(LOGGED["host"]) - 2))


def test_a_run_that_nobody_watched_has_a_table_without_rows(tmp_path: Path) -> None:
    table = host_table(ArmFolder(tmp_path), 1.0)

    assert {name: len(values) for name, values in table.items()} == {
        column.name: 0 for column in LOGGED["host"]
    }


def test_the_log_of_a_watcher_that_was_killed_gives_what_it_has(tmp_path: Path) -> None:
    """Two chunks are written, the second is cut short, and there is no end mark."""
    folder = ArmFolder(tmp_path)
    log = LogWriter(folder.host_log, HEADER, rows_per_chunk=2)
    for at_s in (0.2, 0.4, 0.6, 0.8):
        log.append("host", row(at_s))
    folder.host_log.write_bytes(folder.host_log.read_bytes()[:-5])

    table = host_table(folder, time_scale=2.0)

    assert table["at_s"] == pytest.approx(np.array([0.1, 0.2]))  # instants in scenario time
    assert table["span_s"] == pytest.approx(np.array([0.2, 0.2]))  # spans in the wall's
