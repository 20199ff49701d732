"""What `testbed run --null` prints below its summary: the overhead of each hop, and of a whole request."""

from __future__ import annotations

import math
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from testbed.analysis.overhead import HopOverhead, hop_overheads
from testbed.record.read import read_tables
from testbed.record.run_folder import ArmFolder, RunFolder
from testbed.scenario.load import load_scenario
from testbed.scenario.quantity import format_s
from testbed.scenario.topology import build_topology


def print_overheads(console: Console, folder: RunFolder, summary: dict[str, Any], limit_s: float) -> None:
    """Print a table for each arm of a null run.

    Args:
        console: where to print.
        folder: of the run.
        summary: the content of its `summary.json`.
        limit_s: of lateness in the scenario that the null run stands for, wall time.

    Raises:
        RunError: a table is missing.
    """
    for arm in folder.arms():
        if arm.name in summary["arms"]:
            hops = _hops(arm)
            if any(each.max_s > 0.0 for each in hops):  # none is under virtual time
                console.print(_table(arm.name, hops))
            for said in _said(summary["arms"][arm.name], hops, limit_s):
                console.print(f"{arm.name}: {said}", highlight=False, markup=False, soft_wrap=True)


def _hops(arm: ArmFolder) -> list[HopOverhead]:
    topology = build_topology(load_scenario(arm.scenario).arms["main"])
    return hop_overheads(topology, read_tables(arm.tables, ["lateness"])["lateness"])


def _table(arm: str, hops: list[HopOverhead]) -> Table:
    title = f"{arm}: what a hop takes at the planned rate, wall time"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("hop")
    for name in ("messages", "p50", "p99", "largest", "p99 of the worst link"):
        table.add_column(name, justify="right")
    for each in hops:
        times = (each.p50_s, each.p99_s, each.max_s, each.worst_p99_s)
        table.add_row(each.hop, str(each.messages), *(_seconds(seconds) for seconds in times))
    return table


def _said(words: dict[str, Any], hops: list[HopOverhead], limit_s: float) -> list[str]:
    said = []
    sojourn = words["sojourn_s"]
    if sojourn["p50"] is not None:
        p50_s, p99_s = (sojourn[key] * words["time_scale"] for key in ("p50", "p99"))
        said.append(
            f"a request took p50 {format_s(p50_s)}, p99 {format_s(p99_s)} from its planned arrival to its reply, wall time"
        )
    counted = [each for each in hops if math.isfinite(each.worst_p99_s)]
    if counted:
        worst = max(counted, key=lambda each: each.worst_p99_s)
        said.append(
            f"the worst link, {worst.hop}, is late by p99 {format_s(worst.worst_p99_s)}; the limit of the scenario itself is "
            f"{format_s(limit_s)}"
        )
    return said


def _seconds(value: float) -> str:
    return format_s(value) if math.isfinite(value) else "-"
