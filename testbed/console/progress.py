"""Progress while a run goes on: one live display in a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from testbed.runtime.progress import Progress
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import Topology

LINE_EVERY_S = 5.0  # wall time between two plain lines
MOST_CELLS = 12  # bars, or counts in a line: more do not fit
BAR_WIDTH = 40
RATE_OVER = 0.1  # of the duration: the shown rate is measured over this long, since gauges come in steps


class ProgressDisplay:
    """Shows one arm's progress; use as a context, and call `show` with each `Progress`."""

    def __init__(self, console: Console, arm: str, scenario: Scenario, topology: Topology) -> None:
        """Args:
        console: where to draw.
        arm: its name.
        scenario: as written (not in run time).
        topology: its nodes.
        """
        self._console = console
        self._arm = arm
        self._scenario = scenario
        self._topology = topology
        self._live: Live | None = None
        self._said_at_s = time.monotonic()
        self._last: tuple[float, int] | None = None  # run time and requests sent at the last showing
        self._rate_per_s = 0.0
        self._most = 1

    def __enter__(self) -> ProgressDisplay:
        """Begin the live display where there is a terminal."""
        if self._console.is_terminal:
            self._live = Live(console=self._console, refresh_per_second=8, transient=True)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the live display."""
        if self._live is not None:
            self._live.stop()

    def show(self, progress: Progress) -> None:
        """Draw the newest state."""
        self._measure_rate(progress)
        if self._live is not None:
            self._live.update(self._drawing(progress))
        elif time.monotonic() - self._said_at_s >= LINE_EVERY_S:
            self._said_at_s = time.monotonic()
            self._console.print(self._line(progress), highlight=False)

    def _measure_rate(self, progress: Progress) -> None:
        at_s = progress.at_s / self._scenario.time_scale
        sent = sum(progress.nodes[name].received for name in self._roots(progress))
        if self._last is None:
            self._last = (at_s, sent)
        elif at_s - self._last[0] >= RATE_OVER * self._scenario.duration:
            self._rate_per_s = (sent - self._last[1]) / (at_s - self._last[0])
            self._last = (at_s, sent)

    def _roots(self, progress: Progress) -> list[str]:
        return [
            name
            for name, node in self._topology.nodes.items()
            if node.kind == "root" and name in progress.nodes
        ]

    def _in_flight(self, progress: Progress) -> dict[str, int]:
        return {
            cell: sum(progress.nodes[leaf].in_flight for leaf in leaves if leaf in progress.nodes)
            for cell, leaves in self._topology.leaves.items()
        }

    def _words(self, progress: Progress) -> str:
        at_s = progress.at_s / self._scenario.time_scale
        finished = sum(progress.nodes[name].finished for name in self._roots(progress))
        late_s = max((node.lateness_p99_s for node in progress.nodes.values()), default=0.0)
        lateness = f", lateness p99 {late_s * 1e3:.2f} ms" if late_s else ""
        return (
            f"{self._arm}: {at_s:5.1f} of {self._scenario.duration:g} s, {self._rate_per_s:.0f} requests/s, "
            f"{finished} finished{lateness}"
        )

    def _line(self, progress: Progress) -> str:
        return f"{self._words(progress)}; in flight: {self._counts(progress)}"

    def _counts(self, progress: Progress) -> str:
        """Of each cell; of the fullest ones and all together, where there are many."""
        counts = self._in_flight(progress)
        shown = dict(sorted(counts.items(), key=lambda each: -each[1])[:MOST_CELLS])
        words = ", ".join(f"{cell} {count}" for cell, count in counts.items() if cell in shown)
        return words if len(shown) == len(counts) else f"{words}, all {sum(counts.values())}"

    def _drawing(self, progress: Progress) -> Group:
        table = Table.grid(padding=(0, 1))
        counts = self._in_flight(progress)
        self._most = max(self._most, *counts.values())
        shown = sorted(counts, key=lambda cell: -counts[cell])[:MOST_CELLS]
        for cell in (each for each in counts if each in shown):
            count = counts[cell]
            table.add_row(
                cell, ProgressBar(total=self._most, completed=count, width=BAR_WIDTH), f"{count} in flight"
            )
        return Group(Text(self._words(progress)), table)
