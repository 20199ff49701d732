"""A scenario file at its full length under virtual time: the arms that its expectations look at, summarised."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from testbed.analysis.summary import summarize_arm, summarize_run
from testbed.scenario.expectation import Expectation
from testbed.scenario.load import load_scenario
from testbed.verification.trial import run_trial


class FullRun(NamedTuple):
    """What a file expects, and the summary of a run of it, as in `summary.json`."""

    expectations: tuple[Expectation, ...]
    summary: dict[str, Any]


def run_at_full_length(path: Path, seed: int) -> FullRun:
    """Run a scenario file with a seed.

    Raises:
        RunError: a trace that it replays is not there.
    """
    file = load_scenario(path, [("seed", str(seed))])
    needed = {arm for each in file.expectations for arm in each.arms}
    summaries = {}
    for arm, scenario in file.arms.items():
        if arm in needed:
            trial = run_trial(scenario)
            summaries[arm] = summarize_arm(trial.scenario, trial.tables, trial.outcome)
    return FullRun(file.expectations, summarize_run(file.name, summaries, file.expectations))
