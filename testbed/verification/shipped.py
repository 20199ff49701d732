"""The scenarios that are shipped: whether each shows, over several seeds, what its file expects."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from testbed.errors import RunError
from testbed.scenario.data_file import find_data
from testbed.scenario.expectation import Outcome
from testbed.scenario.load import load_scenario
from testbed.verification.finding import Finding
from testbed.verification.full_length import run_at_full_length

FOLDER = Path(__file__).parents[2] / "scenarios"
SEEDS = (1, 2, 3, 4, 5)
QUICK = ("hedging",)  # the shortest
NOTE = (
    "An expectation holds where it does in the mean of the seeds and in 80 % of them, as with `testbed run --repeat 5`; what"
    " each is stands in its file in `scenarios`. A scenario whose trace is not on the machine has no row."
)


def as_expected(quick: bool) -> Iterator[Finding]:
    """A finding per scenario: how many of its expectations hold."""
    paths = sorted(FOLDER.glob("*.yaml"))
    assert paths, f"no scenario in {FOLDER}: those that are shipped are part of the checkout"
    for path in paths:
        if (path.stem in QUICK or not quick) and _has_its_traces(path):
            yield _finding(path, SEEDS[:1] if quick else SEEDS)


def _has_its_traces(path: Path) -> bool:
    try:
        for scenario in load_scenario(path).arms.values():
            for trace in scenario.traces.values():
                find_data(trace.path, "no trace", "")
    except RunError:
        return False
    return True


def outcomes(path: Path, seeds: tuple[int, ...]) -> list[Outcome]:
    """What came of each expectation of a file over the seeds."""
    runs = [run_at_full_length(path, seed) for seed in seeds]
    return [each.check_repeats([run.summary for run in runs]) for each in runs[0].expectations]


def _finding(path: Path, seeds: tuple[int, ...]) -> Finding:
    checked = outcomes(path, seeds)
    missed = "".join(f"; {each.text}" for each in checked if not each.met)
    held = sum(each.met for each in checked)
    return Finding(
        "shipped",
        f"{path.stem}: its expectations",
        f"scenarios/{path.name}",
        "virtual",
        f"all {len(checked)}",
        f"{held} of {len(checked)}{missed}",
        f"{len(seeds)} seeds" if len(seeds) > 1 else f"seed {seeds[0]}",
        held == len(checked),
    )
