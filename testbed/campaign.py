"""What one command may run: the seeds of a scenario, the scenarios of a folder, a scenario at two time scales."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from testbed.analysis.limits import lateness_limit_s
from testbed.analysis.scale import compare_scales, unequal_keys
from testbed.console.overhead_table import print_overheads
from testbed.console.progress import ProgressDisplay
from testbed.console.spread_table import print_spread
from testbed.console.suite_table import SuiteLine, print_scales, print_suite
from testbed.console.summary_table import print_repeats, print_summary
from testbed.errors import TOLD, InterruptError, UsageError, told
from testbed.experiment import Finished, Options, exit_status, new_folder, refuse_oracles, run_scenario
from testbed.fitness.at_start import start_warnings
from testbed.fitness.null_run import null_file
from testbed.record.run_folder import RunFolder
from testbed.scenario.load import ScenarioFile
from testbed.scenario.overrides import load_file, pairs_of
from testbed.scenario.schema import MOST_TIME_SCALE, Scenario
from testbed.scenario.topology import build_topology, oracles_of

INTERRUPTED = InterruptError.exit_status
UNEQUAL = 3  # figures that are to agree do not
PRECEDENCE = (2, 1, INTERRUPTED, 5, 4, 3)  # of exit statuses, where several hold
NOT_RUN = {2: "the scenario or the command line is wrong", 1: "could not be run", INTERRUPTED: "interrupted"}


@dataclass(frozen=True)
class Orders:
    """What the command line of `run` asks for, whatever the scenario."""

    engine: str  # live or virtual
    arms: tuple[str, ...]
    seed: int | None
    overrides: list[str]
    duration_s: float | None
    repeat: int
    figures: bool
    strict: bool
    one_plan: bool = False  # runs of the same seed, whose figures are to be compared
    null: bool = False  # the scenario without all that takes time but the testbed itself
    time_scale: float | None = None  # of every arm, whatever it says itself; among the overrides, too
    stretch: float = 1.0  # on the time scale of each arm

    def load(self, scenario: Path, seed: int | None) -> ScenarioFile:
        """The scenario as it is to be run.

        Raises:
            ScenarioError: the file is wrong; UsageError: an override is none; RunError: a trace is missing.
        """
        file = load_file(scenario, self.overrides, seed, list(self.arms))
        arms = {name: self._scaled(arm) for name, arm in file.arms.items()}
        file = replace(file, arms=arms)
        return null_file(file) if self.null else file

    def changed(self, seed: int | None) -> tuple[tuple[str, str], ...]:
        """What it changes in the file, by path, for the manifest."""
        stretched = (("time_scale", f"times {self.stretch:g}"),) if self.stretch != 1.0 else ()
        return (*pairs_of(self.overrides, seed), *stretched)

    def _scaled(self, arm: Scenario) -> Scenario:
        """An arm at the time scale of the orders: an arm may set its own, and overrides are made before the arms."""
        own = arm.time_scale if self.time_scale is None else self.time_scale
        return arm.model_copy(update={"time_scale": own * self.stretch})


def run_seeds(
    console: Console, scenario: Path, base: RunFolder, orders: Orders
) -> tuple[int, list[dict[str, Any]]]:
    """Every seed of a scenario into a folder, or the same one again; the exit status and the summaries.

    Raises:
        RunError: an arm could not be run; the arms before it are summarised and told.
    """
    first = orders.load(scenario, orders.seed)
    if orders.engine == "live":
        refuse_oracles(first)
        for text in start_warnings(first.arms.values(), base.path):
            console.print(f"warning: {text}", style="yellow", highlight=False, markup=False, soft_wrap=True)
    finished: list[Finished] = []
    for number in range(orders.repeat):
        is_first = number == 0 or orders.one_plan
        each_seed = orders.seed if is_first else _seed_of(first) + number
        file = first if is_first else orders.load(scenario, each_seed)
        name = f"run-{number + 1}" if orders.one_plan else f"seed-{_seed_of(file)}"
        folder = base if orders.repeat == 1 else RunFolder(base.path / name)
        folder.path.mkdir(parents=True, exist_ok=True)
        options = Options(orders.engine, orders.duration_s, orders.changed(each_seed), orders.figures)
        finished.append(run_scenario(file, folder, options, partial(ProgressDisplay, console)))
        print_summary(console, finished[-1].summary)
        if finished[-1].skipped:
            console.print(f"not run: {', '.join(finished[-1].skipped)}", highlight=False, markup=False)
        if finished[-1].error is not None:
            raise finished[-1].error
        if orders.null:
            limit_s = _least_limit_s(replace(orders, null=False).load(scenario, each_seed))
            print_overheads(console, folder, finished[-1].summary, limit_s)
        if finished[-1].interrupted:
            break
    summaries = [each.summary for each in finished]
    status = exit_status(finished, first.expectations, strict=orders.strict)
    if orders.one_plan and not finished[-1].interrupted:
        is_sound = print_spread(console, summaries, orders.engine)
        return status or (0 if is_sound else UNEQUAL), summaries
    if orders.repeat > 1:
        print_repeats(console, summaries, first.expectations)
    return status, summaries


def run_folder(console: Console, scenarios: Path, out: Path | None, orders: Orders) -> int:
    """Every scenario of a folder, whatever became of the others, unless the user stops one of them.

    An error of one scenario is told where it comes, and is that scenario's exit status; the folder's is the first of all
    by precedence.
    """
    paths = sorted(scenarios.glob("*.yaml"))
    if not paths:
        raise UsageError(f"{scenarios}: has no scenario; accepted: a scenario file or a folder with *.yaml")
    base = new_folder(out, scenarios.name)
    lines: list[SuiteLine] = []
    for path in paths:
        folder = RunFolder(base.path / path.stem)
        folder.path.mkdir()
        try:
            can_run = without_oracles(console, path, orders)
            lines.append(SuiteLine(path, *run_seeds(console, path, folder, can_run)))
        except TOLD as error:
            console.print(told(error), markup=False, highlight=False, soft_wrap=True)
            lines.append(SuiteLine(path, error.exit_status, [], NOT_RUN[error.exit_status]))
        except KeyboardInterrupt:  # between two runs
            lines.append(SuiteLine(path, INTERRUPTED, [], NOT_RUN[INTERRUPTED]))
        if lines[-1].status == INTERRUPTED:
            break
    print_suite(console, lines)
    console.print(f"records and figures: {base.path}", highlight=False, soft_wrap=True)
    statuses = {line.status for line in lines}
    return next((status for status in PRECEDENCE if status in statuses), 0)


def without_oracles(console: Console, path: Path, orders: Orders) -> Orders:
    """The orders for one scenario of a folder: with real processes, arms that want to know the truth are left out.

    Where such arms are asked for, or there are no others, nothing is: the run is refused.
    """
    if orders.engine != "live" or orders.arms or orders.null:
        return orders
    arms = load_file(path, orders.overrides, orders.seed, []).arms
    kept = tuple(name for name, scenario in arms.items() if not oracles_of(scenario))
    left = [name for name in arms if name not in kept]
    if not left or not kept:
        return orders
    said = f"{path.name}: left out, since under --engine live no process knows the truth: {', '.join(left)}"
    console.print(said, markup=False, highlight=False, soft_wrap=True)
    return replace(orders, arms=kept)


def refuse_scales(file: ScenarioFile) -> None:
    """Raise UsageError if an arm could not be run at twice its time scale too."""
    for name, arm in file.arms.items():
        if 2.0 * arm.time_scale > MOST_TIME_SCALE:
            raise UsageError(
                f"--check-scale: arm {name} has a time_scale of {arm.time_scale:g}, and twice that is above {MOST_TIME_SCALE}; "
                f"accepted: a time scale up to {MOST_TIME_SCALE // 2}, such as by --time-scale {MOST_TIME_SCALE // 2}"
            )


def run_scales(console: Console, scenario: Path, base: RunFolder, orders: Orders) -> int:
    """A scenario at its time scale and at twice that, arm by arm; 3 where a figure does not agree, or an expectation is not met."""
    scale = next(iter(orders.load(scenario, orders.seed).arms.values())).time_scale
    statuses, summaries = [], []
    for factor in (1, 2):
        folder = RunFolder(base.path / f"scale-{scale * factor:g}")
        folder.path.mkdir()
        status, found = run_seeds(console, scenario, folder, replace(orders, stretch=float(factor)))
        statuses.append(status)
        summaries += found
        if status == INTERRUPTED:
            return status
    findings = compare_scales(summaries[0], summaries[1], orders.engine)
    unequal = unequal_keys(summaries[0], summaries[1]) if orders.engine == "virtual" else []
    print_scales(console, findings, unequal)
    if unequal or not all(each.agrees for each in findings):
        statuses.append(UNEQUAL)
    return next((status for status in PRECEDENCE if status in statuses), 0)


def _least_limit_s(file: ScenarioFile) -> float:
    """The least limit of lateness of its arms, wall time."""
    return min(lateness_limit_s(arm, build_topology(arm)) for arm in file.arms.values())


def _seed_of(file: ScenarioFile) -> int:
    return next(iter(file.arms.values())).seed
