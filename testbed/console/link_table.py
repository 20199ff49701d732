"""The links of a run, busiest first: what was sent and dropped, what was drawn, how late releases were."""

from __future__ import annotations

import math

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from testbed.links.counts import DROP_CAUSES
from testbed.record.read import Columns, read_tables
from testbed.record.run_folder import ArmFolder, RunFolder

DROPPED = tuple(f"dropped_{cause}" for cause in DROP_CAUSES)
COUNTS = ("sent", *DROPPED, "duplicated", "reordered", "delivered", "inversions")
_ALWAYS = (
    "sent",
    "dropped_loss",
    "delivered",
    "inversions",
)  # the others only where there is anything to count
TIMES = ("drawn_s_mean", "lateness_s_mean", "lateness_s_p50", "lateness_s_p99", "lateness_s_max")


def print_links(console: Console, folder: RunFolder) -> None:
    """Print a table for each arm, from its records.

    Raises:
        RunError: a table is missing.
    """
    for arm in folder.arms():
        console.print(_table(arm))


def _table(arm: ArmFolder) -> Table:
    links = read_tables(arm.tables, ["lateness"])["lateness"]
    title = f"links of {arm.name} (times in ms; drawn in scenario time, lateness in wall time)"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for name in ("from", "to", "path"):
        table.add_column(name)
    shown = [name for name in COUNTS if name in _ALWAYS or links[name].any()]
    for name in (*shown, "drawn mean", "late mean", "p50", "p99", "max"):
        table.add_column(name, justify="right")
    for row in np.argsort(-links["sent"], kind="stable"):
        table.add_row(*_cells(links, int(row), shown))
    return table


def _cells(links: Columns, row: int, counts: list[str]) -> list[str]:
    ends = [str(links[name][row]) for name in ("source", "target", "path")]
    return [
        *ends,
        *(str(links[name][row]) for name in counts),
        *(_milliseconds(links[name][row]) for name in TIMES),
    ]


def _milliseconds(seconds: float) -> str:
    return "-" if math.isnan(seconds) else f"{seconds * 1e3:.3f}"
