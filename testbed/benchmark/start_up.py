"""How long many processes take to start and to greet each other, what each holds of memory for itself, and idles."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import psutil

from testbed.analysis.records import Table
from testbed.benchmark.figure import Figure
from testbed.benchmark.neighbours import undisturbed
from testbed.benchmark.scenes import Ran, run, written
from testbed.errors import RunError
from testbed.runtime.progress import Progress
from testbed.scenario.schema import Scenario

COUNTS = (10, 50, 100)
KINDS = ("root", "leaf", "server")
MOST_MB = 12.0
SETTLED_S = 0.5  # from the start of a run until what it began with is done
MB = 1e6
TEXT = """
name: start
duration: {duration} s
warmup: 0.5 s
drain: 1 s
cells: {{{cells}}}
roots: {{one: {{traffic: [{{class: c, rate: 2 /s, policy: p}}]}}, two: {{traffic: [{{class: c, rate: 2 /s, policy: p}}]}}}}
reports: {{every: 50 ms}}
classes: {{c: {{timeout: 1 s}}}}
policies: {{p: {{kind: random}}}}
links: [{{from: "*", to: "*", delay: 20 ms}}]
"""


class _Started(NamedTuple):
    """A run, and the memory of its processes by their kind."""

    ran: Ran
    largest_mb: dict[str, float]

    def disturbances(self) -> list[str]:
        """Of the run."""
        return self.ran.disturbances()


def processes(quick: bool) -> Iterator[Figure]:
    """Start-up, memory and idling of 10, 50 and 100 processes; of 10 alone in the short form."""
    for count in COUNTS[:1] if quick else COUNTS:
        (ran, sizes_mb), note = undisturbed(partial(_start, count))
        yield Figure(
            f"{count} processes: from the first fork until all are greeted",
            ran.outcome.start_s,
            "s",
            1.0 if count == COUNTS[-1] else math.nan,
            False,
            note,
        )
        for kind, size_mb in sizes_mb.items():
            yield Figure(
                f"{count} processes: memory of its own, the largest {kind}", size_mb, "MB", MOST_MB, False
            )
        if count == COUNTS[0]:
            yield from _idle(ran, note)


def _start(count: int) -> _Started:
    memory = _Memory()
    ran = run(_scenario(count), shown=memory)
    return _Started(ran, memory.largest_mb)


def _scenario(count: int) -> Scenario:
    """Two roots, and cells of one leaf and three servers; what is left over are servers of the last cell."""
    cells, rest = divmod(count - 2, 4)
    words = [
        f"c{i}: {{servers: {3 + (rest if i == 0 else 0)}, service: {{slots: 4, fixed: 5 ms}}}}"
        for i in range(cells)
    ]
    return written(TEXT.format(duration=5, cells=", ".join(words)))


def _idle(ran: Ran, note: str) -> Iterator[Figure]:
    """Processor time of a process of each kind while next to nothing happens, per cent of a core."""
    table = ran.tables["processes"]
    leaves = sum(name.endswith("/leaf-1") for name in set(table["node"]))
    aims = {"server": 0.5, "leaf": 1.5, "root": 1.0 + 0.5 * leaves}
    for kind, aim in aims.items():
        percent = idle_percent(table, kind)
        yield Figure(f"an idle {kind}, reports every 50 ms", percent, "% of a core", aim, False, note)


def idle_percent(processes: Table, kind: str) -> float:
    """Of a core, the mean of the processes of a kind after their start; NaN where there is none.

    A row covers the time since the row before it. The last one has the work of ending in it.

    Args:
        processes: the table, at time scale 1.
        kind: root, leaf or server.
    """
    cpu_s = length_s = 0.0
    names = processes["node"].tolist()
    for name in dict.fromkeys(each for each in names if _kind(each) == kind):
        mine = np.array([each == name for each in names])
        ends_s = processes["at_s"][mine]
        counted = 1 + np.flatnonzero(ends_s[:-2] >= SETTLED_S)
        cpu_s += float(processes["cpu_s"][mine][counted].sum())
        length_s += float((ends_s[counted] - ends_s[counted - 1]).sum())
    return 100.0 * cpu_s / length_s if length_s > 0.0 else math.nan


def largest_mb(sizes: Sequence[tuple[str, int]]) -> dict[str, float]:
    """Of the processes of nodes, by kind.

    Args:
        sizes: name of each process, bytes.
    """
    found = {kind: [size for name, size in sizes if _kind(name) == kind] for kind in KINDS}
    return {kind: max(mine) / MB for kind, mine in found.items() if mine}


def _kind(name: str) -> str:
    """Root, leaf or server; empty for a process that is no node's."""
    return next((kind for kind in KINDS if name.startswith(f"{kind}.") or f"/{kind}-" in name), "")


class _Memory:
    """Looks at the processes below this one while they run."""

    def __init__(self) -> None:
        self.largest_mb: dict[str, float] = {}

    def show(self, progress: Progress) -> None:
        """Unique set size, once."""
        if progress.at_s < 1.0 or self.largest_mb:
            return
        sizes = []
        for each in psutil.Process().children(recursive=True):
            try:
                sizes.append((each.name(), each.memory_full_info().uss))
            except psutil.Error as error:
                raise RunError(f"looking at process {each.pid}: {error}") from error
        self.largest_mb = largest_mb(sizes)
