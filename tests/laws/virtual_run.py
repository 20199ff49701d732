"""A run under virtual time for the tests of laws: from YAML text to merged tables."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from testbed.experiment import run_arm
from testbed.record.outcome import RunOutcome, load_outcome
from testbed.record.read import read_tables
from testbed.record.run_folder import ArmFolder
from testbed.scenario.load import scenario_from_text
from testbed.scenario.schema import Scenario


class VirtualRun(NamedTuple):
    """What came of a run."""

    scenario: Scenario
    tables: dict[str, dict[str, Any]]
    outcome: RunOutcome
    folder: ArmFolder


class _Silent:
    def show(self, progress: Any) -> None:
        pass


@contextmanager
def silent(arm: str, scenario: Any, topology: Any) -> Any:
    """A display that shows nothing."""
    yield _Silent()


def run_text(path: Path, text: str, **changes: Any) -> VirtualRun:
    """Run the one arm of a scenario given as YAML text, with fields of the model changed."""
    scenario = scenario_from_text(text).arms["main"]
    return run_one(path, scenario.model_copy(update=changes) if changes else scenario)


def run_words(path: Path, words: dict[str, Any]) -> VirtualRun:
    """Run a scenario given as a mapping."""
    return run_text(path, yaml.safe_dump(words, sort_keys=False))


def run_one(path: Path, scenario: Scenario) -> VirtualRun:
    """Run one scenario."""
    folder = ArmFolder(path)
    run_arm(folder, scenario, "virtual", silent)
    return VirtualRun(scenario, read_tables(folder.tables), load_outcome(folder.outcome), folder)
