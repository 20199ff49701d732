"""What the machine did during a live run: its figures, and what it has to say of an instant.

It explains, and decides nothing by itself, but for the pressure on the cores: where tasks wait for a core most of the
time and other processes than those of the run hold the cores, a delay of the run may be the machine's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from testbed.analysis.limits import Finding
from testbed.analysis.reason import reason
from testbed.analysis.records import Floats, Mask, Table, mean, row_count
from testbed.host.speed import SLOW
from testbed.scenario.quantity import format_s

MOST_PRESSURE = 0.6  # of the time; quiet runs of this kind show up to 0.36, four hogs on two cores above 0.9
LEAST_OTHERS = 0.25  # cores in use by processes that are not of the run; below it the pressure is our own
NOTED_STEAL = 0.05  # of a stretch
NOTED_THROTTLING_S = 0.005
NOTED_STEP_S = 0.01
NOTED_PAGES = 100
MOST_SPELLS = 3  # told one by one
NEAR_S = 0.25  # around an instant, wall time, in which the machine may have caused it: a row of the table and a little

KINDS: tuple[tuple[str, str], ...] = (
    ("pressure", "CPU pressure"),
    ("steal", "steal"),
    ("throttled_s", "throttling"),
    ("swapped_pages", "swapping"),
    ("clock_step_s", "clock steps"),
    ("slowdown", "speed of the processors"),
)


class HostSeries:
    """The table `host` of a run, in scenario time; without a row where nobody watched."""

    def __init__(self, table: Table, time_scale: float) -> None:
        """Args:
        table: of the run; empty for one without.
        time_scale: of the scenario.
        """
        self._table = table if row_count(table) else {}
        self._scale = time_scale

    def figures(self) -> dict[str, Any]:
        """Over the whole run; null where nothing is known."""
        if not self._table:
            return {"watched": False, "unknown": [word for _, word in KINDS]}
        slow = self._is_slow()
        return {
            "watched": True,
            "pressure": self.pressure(),
            "busy_cores": self._mean("busy_cores"),
            "steal": self._mean("steal"),
            "throttled_s": _total(self._table["throttled_s"]),
            "swapped_pages": _total(self._table["swapped_pages"]),
            "clock_step_s": _largest(np.abs(self._table["clock_step_s"])),
            "slowdown": _largest(self._table["slowdown"]),
            "slow_fraction": self._mean("slow_fraction"),
            "slow_spells": len(self._spells(slow)),
            "wake_late_s": _largest(self._table["wake_late_s"]),
            "unknown": [word for name, word in KINDS if not self.knows(name)],
        }

    def knows(self, name: str) -> bool:
        """Whether this machine told of a column."""
        return bool(self._table) and bool(np.isfinite(self._table[name]).any())

    def pressure(self) -> float:
        """Share of the run in which a task waited for a core; NaN: unknown."""
        return self._mean("pressure")

    def others(self, own_cpu_s: float) -> float:
        """Cores in use by processes that are not of the run, whose own took `own_cpu_s`; NaN: unknown."""
        if not self._table:
            return math.nan
        return self._mean("busy_cores") - own_cpu_s / float(self._table["span_s"].sum())

    def findings(self, own_cpu_s: float) -> Iterator[Finding]:
        """The pressure, where it is high and others than this run are busy.

        Args:
            own_cpu_s: processor time of the run's processes.
        """
        pressure = self.pressure()
        if not pressure > MOST_PRESSURE:
            return
        others = self.others(own_cpu_s)
        if others < LEAST_OTHERS:
            return
        said = "" if math.isnan(others) else f", others than this run use {others:.2g} cores"
        i = int(np.nanargmax(self._table["pressure"]))
        until_s = float(self._table["at_s"][i])
        from_s = until_s - float(self._table["span_s"][i]) / self._scale
        yield Finding(
            "suspect",
            reason(
                "CPU pressure",
                f"tasks waited for a core {pressure:.0%} of the time{said}",
                process="",  # it is others than those of the run
                when=f"most from {from_s:.1f} to {until_s:.1f} s",
                limit=f"{MOST_PRESSURE:.0%}",
                advice="end what else runs here, or try an idle host",
            ),
            "pressure",
        )

    def explain(self, from_s: float, until_s: float) -> str:
        """What the machine did in a stretch of scenario time that may be why something was late; empty: nothing known.

        Begins with '; ', to be put behind a reason.
        """
        if not self._table:
            return ""
        ends = self._table["at_s"]
        inside = (ends >= from_s) & (ends - self._table["span_s"] / self._scale <= until_s)
        said = [text for tell in self._tellers() if (text := tell(inside))]
        return f"; {', '.join(said)}" if said else ""

    def _tellers(self) -> tuple[Callable[[Mask], str], ...]:
        return (
            self._tell_speed,
            self._tell_steal,
            self._tell_throttling,
            self._tell_pressure,
            self._tell_swapping,
        )

    def _tell_speed(self, inside: Mask) -> str:
        slow = inside & self._is_slow()
        if not slow.any():
            return ""
        spells = self._spells(slow)
        worst = float(np.nanmax(self._table["slowdown"][slow]))
        said = [f"from {from_s:.1f} to {until_s:.1f} s" for from_s, until_s in spells[:MOST_SPELLS]]
        more = f" and {len(spells) - MOST_SPELLS} times more" if len(spells) > MOST_SPELLS else ""
        return f"the processors ran at 1/{worst:.0f} of their speed {', '.join(said)}{more}"

    def _tell_steal(self, inside: Mask) -> str:
        stolen = _largest(self._table["steal"][inside])
        return (
            f"the host of this virtual machine took {stolen:.0%} of the time" if stolen > NOTED_STEAL else ""
        )

    def _tell_throttling(self, inside: Mask) -> str:
        seconds = _total(self._table["throttled_s"][inside])
        said = f"the quota kept the processes from running for {format_s(seconds)}"
        return said if seconds > NOTED_THROTTLING_S else ""

    def _tell_pressure(self, inside: Mask) -> str:
        pressure = mean(self._table["pressure"][inside])
        return f"a task waited for a core {pressure:.0%} of the time" if pressure > MOST_PRESSURE else ""

    def _tell_swapping(self, inside: Mask) -> str:
        pages = _total(self._table["swapped_pages"][inside])
        return f"{pages:.0f} pages were swapped" if pages > NOTED_PAGES else ""

    def _is_slow(self) -> Mask:
        slow: Mask = np.nan_to_num(self._table["slowdown"]) > SLOW
        return slow

    def _spells(self, chosen: Mask) -> list[tuple[float, float]]:
        """(from, until) of the runs of chosen rows that follow each other, scenario time."""
        rows = np.flatnonzero(chosen)
        if not len(rows):
            return []
        breaks = [0, *(i + 1 for i, (a, b) in enumerate(pairwise(rows.tolist())) if b != a + 1), len(rows)]
        ends, spans = self._table["at_s"], self._table["span_s"] / self._scale
        return [
            (float(ends[rows[a]] - spans[rows[a]]), float(ends[rows[b - 1]])) for a, b in pairwise(breaks)
        ]

    def _mean(self, name: str) -> float:
        """Over the time of the run; NaN: unknown."""
        if not self._table:
            return math.nan
        values, spans = self._table[name], self._table["span_s"]
        known = np.isfinite(values)
        return float(np.average(values[known], weights=spans[known])) if known.any() else math.nan


def clock_steps(series: HostSeries, table: Table) -> str:
    """A note on steps of the wall clock; empty without one. No duration of a run is measured by it."""
    if not series.knows("clock_step_s"):
        return ""
    steps = np.nan_to_num(table["clock_step_s"])
    worst = int(np.argmax(np.abs(steps)))
    if abs(steps[worst]) <= NOTED_STEP_S:
        return ""
    return (
        f"the wall clock was set by {steps[worst]:+.3f} s at {table['at_s'][worst]:.1f} s: no duration here is measured by"
        " it, but dates in other logs may not fit"
    )


def _largest(values: Floats) -> float:
    known = values[np.isfinite(values)]
    return float(known.max()) if len(known) else math.nan


def _total(values: Floats) -> float:
    known = values[np.isfinite(values)]
    return float(known.sum()) if len(known) else math.nan
