"""Scenarios at their full length under virtual time, against what their files expect."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import Any

from testbed.analysis.summary import summarize_arm, summarize_run
from testbed.experiment import run_arm
from testbed.record.read import read_tables
from testbed.record.run_folder import ArmFolder
from testbed.scenario.load import ScenarioFile


@contextmanager
def silent(arm, scenario, topology):
    """Progress that nobody watches."""

    class Silent:
        def show(self, progress):
            pass

    yield Silent()


def checked_expectations(file: ScenarioFile, place: Path) -> list[dict[str, Any]]:
    """Run every arm of the file; its expectations as the summary has them."""
    summaries = {}
    for arm, scenario in file.arms.items():
        folder = ArmFolder(place / arm)
        outcome = run_arm(folder, scenario, "virtual", silent)
        summaries[arm] = summarize_arm(scenario, read_tables(folder.tables), outcome)
    checked: list[dict[str, Any]] = summarize_run(file.name, summaries, file.expectations)["expectations"]
    return checked
