"""How long many processes take to start and to greet each other, what each holds of memory for itself, and idles."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import psutil

from testbed.benchmark.figure import Figure
from testbed.benchmark.scenes import Ran, run, written
from testbed.errors import RunError
from testbed.runtime.progress import Progress
from testbed.scenario.schema import Scenario

COUNTS = (10, 50, 100)
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


def processes(quick: bool) -> Iterator[Figure]:
    """Start-up, memory and idling of 10, 50 and 100 processes; of 10 alone in the short form."""
    for count in COUNTS[:1] if quick else COUNTS:
        memory = _Memory()
        ran = run(_scenario(count), shown=memory)
        aim = 1.0 if count == 100 else float("nan")
        yield Figure(
            f"{count} processes: from the first fork until all are greeted",
            ran.outcome.start_s,
            "s",
            aim,
            False,
        )
        yield Figure(
            f"{count} processes: memory of its own, mean of a process", memory.mean_mb, "MB", 12.0, False
        )
        if count == COUNTS[0]:
            yield from _idle(ran)


def _scenario(count: int) -> Scenario:
    """Two roots, and cells of one leaf and three servers; what is left over are servers of the last cell."""
    cells, rest = divmod(count - 2, 4)
    words = [
        f"c{i}: {{servers: {3 + (rest if i == 0 else 0)}, service: {{slots: 4, fixed: 5 ms}}}}"
        for i in range(cells)
    ]
    return written(TEXT.format(duration=5, cells=", ".join(words)))


def _idle(ran: Ran) -> Iterator[Figure]:
    """Processor time of a process of each kind while next to nothing happens, per cent of a core."""
    table = ran.tables["processes"]
    leaves = sum(name.endswith("/leaf-1") for name in set(table["node"]))
    aims = {"server": 0.5, "leaf": 1.5, "root": 1.0 + 0.5 * leaves}
    for kind, aim in aims.items():
        chosen = np.array([f"/{kind}-" in name or name.startswith(f"{kind}.") for name in table["node"]])
        later = chosen & (table["at_s"] > 1.5)
        yield Figure(
            f"an idle {kind}, reports every 50 ms",
            100 * float(table["cpu_s"][later].mean()),
            "% of a core",
            aim,
            False,
        )


class _Memory:
    """Looks at the processes below this one while they run."""

    def __init__(self) -> None:
        self.mean_mb = float("nan")

    def show(self, progress: Progress) -> None:
        """Unique set size, mean over the nodes' processes."""
        if progress.at_s < 1.0 or self.mean_mb == self.mean_mb:
            return
        sizes = []
        for each in psutil.Process().children(recursive=True):
            try:
                if each.children() == []:  # the nursery has all others below it
                    sizes.append(each.memory_full_info().uss)
            except psutil.Error as error:
                raise RunError(f"looking at process {each.pid}: {error}") from error
        self.mean_mb = sum(sizes) / len(sizes) / MB
