"""Does a long run keep its memory? Memory and open files of every process, looked at now and then.

Two sizes are told. The resident set grows where a process takes more memory, as with a leak. The unique set is what it
has for itself; it grows as well where a page is written to that was shared since the fork, and even in a process that does
nothing, when all others have left a page to it. That ends when all are written to, so it is told and not judged.
Growth is the slope of a straight line through the looks after the first third.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import psutil

from testbed.benchmark.figure import Figure
from testbed.benchmark.scenes import Ran, run, shipped
from testbed.runtime.progress import Progress

RATE_PER_S = 500
LOOKS = 60  # in a run
LEAST_LOOK_S = 1.0
SETTLED = 1.0 / 3.0  # of the looks are left out
MB = 1e6
MOST_MB_PER_H = 2.0
LEAST_FITTED = 3


class Look(NamedTuple):
    """At one process, at one instant."""

    name: str
    pid: int
    at_s: float
    resident_bytes: int
    unique_bytes: int
    descriptors: int


class Growth(NamedTuple):
    """Of one process; NaN where there were too few looks.

    Attributes:
        name: of the process.
        resident_mb_per_h: growth of the resident set.
        unique_mb_per_h: of the unique set.
        unique_mb: at the end.
        descriptors: open files, more at the end than after the first third.
    """

    name: str
    resident_mb_per_h: float
    unique_mb_per_h: float
    unique_mb: float
    descriptors: int


class Watch:
    """Looks at this process and all below it while a run goes on; a display of its progress."""

    def __init__(self, every_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        """Look as often as this, wall time."""
        self._every_s, self._clock = every_s, clock
        self._next_s = clock()
        self.looks: list[Look] = []

    def show(self, progress: Progress) -> None:
        """Look, if it is time."""
        if progress.at_s <= 0.0 or self._clock() < self._next_s:
            return
        self._next_s = self._clock() + self._every_s
        here = psutil.Process()
        for each in (here, *here.children(recursive=True)):
            try:
                name = "launcher" if each.pid == here.pid else each.name()
                sizes = each.memory_full_info()
                look = Look(name, each.pid, progress.at_s, sizes.rss, sizes.uss, each.num_fds())
                self.looks.append(look)
            except psutil.Error:
                continue  # it has just ended


def growths(looks: Sequence[Look]) -> list[Growth]:
    """Of each process, the fastest first."""
    by_process: dict[tuple[str, int], list[Look]] = {}
    for look in looks:
        by_process.setdefault((look.name, look.pid), []).append(look)
    found = [_growth(name, mine) for (name, _), mine in by_process.items()]
    return sorted(found, key=lambda each: -np.nan_to_num(each.resident_mb_per_h))


def soak(seconds: float, watch: Watch | None = None) -> tuple[list[Growth], Ran]:
    """A run of that length at 500 requests a second, and how its processes grew.

    Raises:
        RunError: a process died.
        InterruptError: the user stopped it.
    """
    watch = watch or Watch(max(LEAST_LOOK_S, seconds / LOOKS))
    changes = [("roots.load.traffic.0.rate", f"{RATE_PER_S} /s")]
    ran = run(shipped("throughput.yaml", changes, seconds), shown=watch)
    return growths(watch.looks), ran


def soak_figures(found: Sequence[Growth], ran: Ran) -> list[Figure]:
    """Memory at the end and growth of each process; files that were not closed; what became of the requests."""
    figures = [
        Figure(
            f"{each.name}: growth of its resident memory",
            each.resident_mb_per_h,
            "MB/h",
            MOST_MB_PER_H,
            False,
            f"unique {each.unique_mb:.1f} MB at the end, {each.unique_mb_per_h:+.3g} MB/h",
        )
        for each in found
    ]
    opened = sum(max(0, each.descriptors) for each in found)
    lost = int(ran.summary["requests"]["planned"]) - ran.completed
    return [
        *figures,
        Figure("open files, all processes: more at the end", opened, "", 0.0, False),
        Figure("requests that were not answered", lost, "", 0.0, False, f"of {ran.completed + lost}"),
    ]


def _growth(name: str, looks: Sequence[Look]) -> Growth:
    settled = looks[int(SETTLED * len(looks)) :]
    last = looks[-1]
    if len(settled) < LEAST_FITTED:
        return Growth(name, float("nan"), float("nan"), last.unique_bytes / MB, 0)
    at_h = np.array([look.at_s for look in settled]) / 3600.0
    sizes = [[look.resident_bytes / MB, look.unique_bytes / MB] for look in settled]
    resident, unique = np.polyfit(at_h, sizes, 1)[0].tolist()
    return Growth(name, resident, unique, last.unique_bytes / MB, last.descriptors - settled[0].descriptors)
