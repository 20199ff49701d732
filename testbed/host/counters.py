"""What the kernel counts while a run goes on, and what came to it in a stretch of time.

Linux keeps these below /proc and /sys/fs/cgroup. Another system, an older kernel or a container may lack some of them:
what is not there reads as NaN, and whoever judges by it says `unknown`.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from testbed.errors import RunError
from testbed.host.cgroups import cgroup_files

PRESSURE = "proc/pressure/cpu"
STAT = "proc/stat"
SWAP = "proc/vmstat"
_READ_BYTES = 65536
_PER_S = os.sysconf("SC_CLK_TCK")
_BUSY = (0, 1, 2, 5, 6)  # user, nice, system, irq, softirq: of the fields of /proc/stat; guests are in user
_STOLEN = 7
CLOSE_S = 1e-4  # two readings of a clock so near to each other that nothing came between
CLOCK_TRIES = 5


class Counts(NamedTuple):
    """Totals since the host came up, seconds unless said otherwise; NaN: unknown."""

    at_s: float  # of `time.monotonic`
    pressure_s: float  # during which at least one task that could run waited for a core
    busy_s: float  # of all cores
    stolen_s: float  # of all cores, taken by the host of this virtual machine
    throttled_s: float  # of this process's control group and those above it, for want of quota
    throttles: float  # periods in which that happened
    swapped_pages: float  # in and out
    wall_s: float  # the wall clock less the monotonic one


class Counters:
    """Reads them; the files stay open, so that a reading costs some 50 us."""

    def __init__(
        self,
        root: Path = Path("/"),
        monotonic: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """Args:
        root: below which /proc and /sys lie; for tests, another.
        monotonic: the clock of durations.
        wall: the clock of dates.
        """
        self._monotonic, self._wall = monotonic, wall
        self._pressure = _opened(root / PRESSURE)
        self._stat = _opened(root / STAT)
        self._swap = _opened(root / SWAP)
        self._throttled = [_opened(path) for path in cgroup_files(root, "cpu", "cpu.stat")]

    def read(self) -> Counts:
        """The totals of this instant."""
        busy_s, stolen_s = _processor_times_s(_text(self._stat))
        throttled_s, throttles = self._throttling()
        return Counts(
            self._monotonic(),
            _pressure_s(_text(self._pressure)),
            busy_s,
            stolen_s,
            throttled_s,
            throttles,
            _swapped_pages(_text(self._swap)),
            self._clock_difference_s(),
        )

    def close(self) -> None:
        """Give the files back."""
        for file in (self._pressure, self._stat, self._swap, *self._throttled):
            if file is not None:
                os.close(file)

    def _throttling(self) -> tuple[float, float]:
        """Seconds and periods, summed over the control groups that are told of; NaN where none is."""
        found = [_throttled(text) for file in self._throttled if (text := _text(file))]
        known = [each for each in found if each is not None]
        if not known:
            return math.nan, math.nan
        return sum(seconds for seconds, _ in known), sum(periods for _, periods in known)

    def _clock_difference_s(self) -> float:
        """From readings close together, so that being interrupted between them is no step."""
        best_s, width_s = math.nan, math.inf
        for _ in range(CLOCK_TRIES):
            before_s, wall_s, after_s = self._monotonic(), self._wall(), self._monotonic()
            if after_s - before_s < width_s:
                best_s, width_s = wall_s - (before_s + after_s) / 2, after_s - before_s
            if width_s <= CLOSE_S:
                break
        return best_s


def _opened(path: Path) -> int | None:
    """A descriptor; None where there is no such file, or it is not for us."""
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None


def _text(file: int | None) -> str:
    """What a file says now; nothing where it cannot be read: some kernels have a file of pressure that fails when read."""
    if file is None:
        return ""
    try:
        return os.pread(file, _READ_BYTES, 0).decode()
    except OSError:
        return ""


def _pressure_s(text: str) -> float:
    """Of `some avg10=0.00 avg60=0.00 avg300=0.00 total=12345`, microseconds."""
    line = next((line for line in text.splitlines() if line.startswith("some ")), "")
    _, found, total = line.rpartition("total=")
    return int(total) * 1e-6 if found else math.nan


def _processor_times_s(text: str) -> tuple[float, float]:
    """Busy and stolen seconds of all cores, of the first line of /proc/stat."""
    fields = text.partition("\n")[0].split()
    if not fields or fields[0] != "cpu":
        return math.nan, math.nan
    ticks = [int(field) for field in fields[1:]]
    stolen_s = ticks[_STOLEN] / _PER_S if len(ticks) > _STOLEN else math.nan
    return sum(ticks[place] for place in _BUSY) / _PER_S, stolen_s


def _throttled(text: str) -> tuple[float, float] | None:
    """Seconds and periods of a `cpu.stat`, of either version of control groups; None where it has no such lines."""
    words = dict(line.split(maxsplit=1) for line in text.splitlines() if " " in line)
    if "nr_throttled" not in words:
        return None
    if "throttled_usec" in words:
        seconds = int(words["throttled_usec"]) * 1e-6
    elif "throttled_time" in words:
        seconds = int(words["throttled_time"]) * 1e-9
    else:
        raise RunError(f"cpu.stat tells of throttling in an unknown unit: {', '.join(words)}")
    return seconds, float(words["nr_throttled"])


def _swapped_pages(text: str) -> float:
    """Of two lines among two hundred, which are found without taking the others apart: half of a reading was that."""
    counts = [_count_after(text, "pswpin "), _count_after(text, "pswpout ")]
    known = [count for count in counts if count is not None]
    return float(sum(known)) if known else math.nan


def _count_after(text: str, word: str) -> int | None:
    """The number behind a word that begins a line; None where no line begins so."""
    _, found, rest = f"\n{text}".partition(f"\n{word}")
    return int(rest.partition("\n")[0]) if found else None
