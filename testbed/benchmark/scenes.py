"""Running a scenario of the benchmark out of sight, with a few keys changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from testbed.analysis.host import LEAST_OTHERS, HostSeries
from testbed.analysis.records import Table
from testbed.analysis.summary import summarize_arm
from testbed.errors import InterruptError, RunError
from testbed.experiment import Display, run_arm
from testbed.record.outcome import RunOutcome
from testbed.record.read import read_tables
from testbed.record.run_folder import ArmFolder
from testbed.runtime.progress import Progress
from testbed.scenario.load import load_scenario, scenario_from_text
from testbed.scenario.schema import Scenario
from testbed.scenario.shorten import with_duration
from testbed.scenario.topology import Topology

FOLDER = Path(__file__).parents[2] / "scenarios" / "bench"


class Ran(NamedTuple):
    """A run: what the summary says, how it ended, its tables."""

    summary: dict[str, Any]
    outcome: RunOutcome
    tables: dict[str, Table]

    @property
    def cpu_s(self) -> float:
        """Processor time of all processes of the nodes."""
        return float(self.tables["processes"]["cpu_s"].sum())

    @property
    def planned(self) -> int:
        """Requests."""
        return int(self.summary["requests"]["planned"])

    @property
    def completed(self) -> int:
        """Requests."""
        return int(self.summary["requests"]["completed"])

    @property
    def others_cores(self) -> float:
        """Cores that processes which are not of the run used meanwhile; NaN: unknown."""
        return HostSeries(self.tables["host"], 1.0).others(self.cpu_s)

    def disturbances(self) -> list[str]:
        """What the machine's own record of the run has that is not the run's doing, in words."""
        host = self.summary["host"]
        spells = host["slow_spells"] if host and host["watched"] else 0
        said = [f"{spells} slow spell{'s' if spells > 1 else ''} of the processors"] if spells else []
        if self.others_cores > LEAST_OTHERS:
            said.append(f"others used {self.others_cores:.2f} cores")
        return said


def shipped(name: str, changes: Sequence[tuple[str, str]] = (), duration_s: float | None = None) -> Scenario:
    """A scenario of the folder `scenarios/bench`, with keys changed as by `--set`.

    Raises:
        RunError: the folder is not there: the package was installed without the checkout.
    """
    path = FOLDER / name
    if not path.is_file():
        raise RunError(f"{path}: not there; the benchmark runs from a checkout")
    scenario = load_scenario(path, changes).arms["main"]
    return scenario if duration_s is None else with_duration(scenario, duration_s)


def written(text: str) -> Scenario:
    """A scenario from its text."""
    return scenario_from_text(text).arms["main"]


def run(scenario: Scenario, engine: str = "live", shown: Display | None = None) -> Ran:
    """Run and summarise; what was recorded is gone afterwards. `shown` is told of the progress.

    Raises:
        RunError: a process died.
        InterruptError: the user stopped the run.
    """

    @contextmanager
    def display(arm: str, scenario: Scenario, topology: Topology) -> Iterator[Display]:
        yield shown or _Unseen()

    with TemporaryDirectory(prefix="testbed-") as place:
        folder = ArmFolder(Path(place) / "arm")
        outcome = run_arm(folder, scenario, engine, display)
        refuse_broken(outcome)
        tables = read_tables(folder.tables, numbered=True)
        summary = summarize_arm(scenario, tables, outcome, outcome.log_problems)
        return Ran(summary, outcome, tables)


def refuse_broken(outcome: RunOutcome) -> None:
    """Raise where a run did not go on to its end, so that nothing can be measured on it.

    Raises:
        RunError: a process died.
        InterruptError: the user stopped the run.
    """
    if outcome.interrupted:
        raise InterruptError("stopped by the user; what was measured so far is lost")
    for death in outcome.deaths:
        said = death.stderr_tail.strip().splitlines()
        last = f"; its last line: {said[-1]}" if said else ""
        raise RunError(f"a run of the benchmark: {death.node} died ({death.how}) at {death.at_s:.3f} s{last}")


class _Unseen:
    def show(self, progress: Progress) -> None:
        """Nothing is shown."""
