"""A run under virtual time for a finding: from the words of a scenario to its merged tables, in a folder that goes."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from testbed.analysis.records import Tables
from testbed.errors import InterruptError
from testbed.experiment import run_arm
from testbed.record.outcome import RunOutcome
from testbed.record.read import read_tables
from testbed.record.run_folder import ArmFolder
from testbed.runtime.progress import Progress
from testbed.scenario.load import scenario_from_text
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import Topology


class Trial(NamedTuple):
    """What came of a run."""

    scenario: Scenario
    tables: Tables
    outcome: RunOutcome


def run_trial(scenario: Scenario) -> Trial:
    """Run one scenario under virtual time.

    Raises:
        InterruptError: the user stopped it.
    """
    with tempfile.TemporaryDirectory(prefix="testbed-") as path:
        folder = ArmFolder(Path(path) / "trial")
        outcome = run_arm(folder, scenario, "virtual", _silent)
        refuse_interrupted(outcome)
        return Trial(scenario, read_tables(folder.tables), outcome)


def refuse_interrupted(outcome: RunOutcome) -> None:
    """Raise InterruptError where the user stopped a run early: nothing can be found by what there is of it."""
    if outcome.interrupted:
        raise InterruptError("stopped by the user; of what was being worked out nothing is kept")


def scenario_of(words: dict[str, Any]) -> Scenario:
    """The one arm of a scenario given as the mapping that its file would hold.

    Raises:
        ScenarioError: the words are wrong.
    """
    return scenario_from_text(yaml.safe_dump(words, sort_keys=False)).arms["main"]


class _Silence:
    def show(self, progress: Progress) -> None:
        """Nothing."""


@contextmanager
def _silent(arm: str, scenario: Scenario, topology: Topology) -> Iterator[_Silence]:
    yield _Silence()
