"""A run from the file to the figures: every arm in turn, records merged, summary, verdict, expectations."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from testbed import __version__
from testbed.analysis.summary import summarize_arm, summarize_run
from testbed.errors import InterruptError, RunError, UsageError
from testbed.figures.drawing import STEMS, DrawnArm, draw_all
from testbed.figures.files import save_figures
from testbed.figures.page import zoom
from testbed.record.log import log_header
from testbed.record.manifest import manifest, save_manifest, scenario_hash
from testbed.record.merge import merge_run
from testbed.record.outcome import RunOutcome
from testbed.record.read import read_tables, tables_there
from testbed.record.run_folder import ArmFolder, RunFolder
from testbed.record.split_file import load_split, save_split
from testbed.record.summary_file import load_summary
from testbed.record.whole_file import write_whole
from testbed.roles.build import World
from testbed.runtime.interrupts import counted_interrupts
from testbed.runtime.launch import run_live
from testbed.runtime.ordered import Ordered
from testbed.runtime.progress import Progress
from testbed.runtime.virtual import VirtualEngine
from testbed.scenario.expectation import Expectation
from testbed.scenario.fault_words import FaultLine
from testbed.scenario.load import ScenarioFile, dump_scenario, load_scenario
from testbed.scenario.schema import Scenario
from testbed.scenario.series import check_series
from testbed.scenario.shorten import with_duration
from testbed.scenario.topology import Topology, build_topology, oracles_of
from testbed.theory.line_step import with_steps
from testbed.theory.optimal_split import optimal_shares
from testbed.traffic.plan import Plan, build_plan
from testbed.traffic.surge import surge, with_surges

MOST_OF_NAME = 100  # letters of a scenario's name in that of its folder, which may have 255 bytes


class Display(Protocol):
    """Shows the progress of one arm."""

    def show(self, progress: Progress) -> None:
        """Draw the newest state."""


DisplayFactory = Callable[[str, Scenario, Topology], AbstractContextManager[Display]]


@dataclass(frozen=True)
class Options:
    """What the command line asks for, besides the scenario.

    Attributes:
        engine: 'live' or 'virtual'.
        duration_s: another duration; warm-up, faults and stages move in proportion.
        overrides: what `--set` and `--seed` changed, for the manifest.
        figures: draw the figures at the end.
    """

    engine: str = "live"
    duration_s: float | None = None
    overrides: tuple[tuple[str, str], ...] = ()
    figures: bool = True


@dataclass
class Finished:
    """What came of a run.

    Attributes:
        folder: of the run.
        summary: of the arms that were run.
        interrupted: whether the user stopped it.
        skipped: the arms that were not run, or of which nothing is known since running them failed.
        error: what ended an arm after others had been run, and is still to be told.
    """

    folder: RunFolder
    summary: dict[str, Any]
    interrupted: bool = False
    skipped: list[str] = field(default_factory=list)
    error: RunError | None = None


def new_folder(out: Path | None, name: str) -> RunFolder:
    """The folder for a new run: `out`, or `runs/NAME-DATE-TIME` with a number where that exists already.

    Raises:
        UsageError: `out` exists and is not empty, or cannot be made; nothing is ever written over.
        RunError: no folder can be made below `runs`.
    """
    if out is not None:
        try:
            if out.exists() and not out.is_dir():
                raise UsageError(f"--out {out}: is a file; accepted: a new or empty folder")
            if out.exists() and any(out.iterdir()):
                raise UsageError(f"--out {out}: exists and is not empty; accepted: a new or empty folder")
            out.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise UsageError(
                f"--out {out}: cannot be made ({error.strerror}); accepted: a new or empty folder"
            ) from error
        return RunFolder(out)
    # a name is free text: whatever could lead out of the folder `runs` becomes a dash, and its end may be cut
    words = re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip(".-")[:MOST_OF_NAME]
    stem = f"{words or 'run'}-{datetime.now():%Y%m%d-%H%M%S}"
    for number in range(1, 1000):
        path = Path("runs") / (stem if number == 1 else f"{stem}-{number}")
        try:
            path.mkdir(parents=True, mode=0o700)
        except FileExistsError:
            continue
        except OSError as error:
            raise RunError(
                f"making a folder for the run: {path}: {error.strerror}; accepted with --out: a new or empty folder"
            ) from error
        return RunFolder(path)
    raise RunError(f"making a folder for the run: runs/{stem} and 999 more exist already")


def refuse_oracles(file: ScenarioFile) -> None:
    """Raise UsageError where an arm has an oracle; for the live engine, before anything is made."""
    for arm, scenario in file.arms.items():
        for policy in oracles_of(scenario):
            raise UsageError(
                f"arm {arm} uses the oracle {policy}: under --engine live no process knows the truth about another;"
                " accepted: --engine virtual, or --arm with arms that have no oracle"
            )


def run_scenario(
    file: ScenarioFile, folder: RunFolder, options: Options, display: DisplayFactory
) -> Finished:
    """Run every arm of a scenario file into a folder, and summarise.

    After an arm that the user interrupted, or that failed, the others are left out; what was recorded is kept and
    summarised. Ctrl-C does not break off merging, summary and figures, unless it is pressed again.

    Raises:
        RunError: the world failed (a trace is missing, the disk is full, no process would start) in the first arm.
        InterruptError: the user stopped the run before anything of it could be summarised.
    """
    scenarios = _timed(file, options)
    _write_manifest(file, folder, options, scenarios)
    summaries: dict[str, dict[str, Any]] = {}
    interrupted, error = False, None
    with counted_interrupts(most=1) as pressed:
        for arm, scenario in scenarios.items():
            try:
                summaries[arm] = _summarized(folder.arm(arm), scenario, options.engine, display)
            except (KeyboardInterrupt, InterruptError) as raised:
                if not summaries:
                    raise InterruptError(str(raised) or "stopped before an arm was summarised") from raised
                interrupted = True
            except RunError as raised:
                if not summaries:
                    raise
                error = raised
            if interrupted or pressed.count or error is not None:
                break
        skipped = [arm for arm in scenarios if arm not in summaries]
        summary = summarize_run(file.name, summaries, file.expectations)
        write_whole(folder.summary, json.dumps(summary, indent=1, allow_nan=False) + "\n")
        if options.figures:
            try:
                save_figures(draw_all(_drawn(folder, scenarios, summary)), folder.figures)
            except KeyboardInterrupt:
                interrupted = True  # `testbed plot` draws them from what is kept
    return Finished(folder, summary, interrupted or pressed.count > 0, skipped, error)


def _summarized(
    folder: ArmFolder, scenario: Scenario, engine: str, display: DisplayFactory
) -> dict[str, Any]:
    """Run one arm; its summary."""
    outcome = run_arm(folder, scenario, engine, display)
    scenario = with_orders(scenario, outcome)
    tables = read_tables(folder.tables, numbered=True)
    return summarize_arm(scenario, tables, outcome, outcome.log_problems)


def run_arm(folder: ArmFolder, scenario: Scenario, engine: str, display: DisplayFactory) -> RunOutcome:
    """Run one arm, merge its records and write how it ended. Ctrl-C ends the run early, and what there is is merged.

    Raises:
        RunError: the world failed.
        InterruptError: Ctrl-C came before the run began, or live and twice.
        KeyboardInterrupt: it was pressed again.
    """
    with counted_interrupts(most=1):
        return _merge(folder, scenario, _play(folder, scenario, engine, display))


def _play(folder: ArmFolder, scenario: Scenario, engine: str, display: DisplayFactory) -> RunOutcome:
    """Run one arm, and write how it ended."""
    scenario = with_steps(scenario)
    folder.make()
    text = dump_scenario(scenario)
    folder.scenario.write_text(text)
    topology = build_topology(scenario)
    save_split(folder, optimal_shares(scenario, topology))
    with display(folder.name, scenario, topology) as shown:
        outcome = _run_engine(folder, scenario, text, engine, shown)
    outcome.save(folder.outcome)  # before merging: should that fail, how the run ended is known
    return outcome


def _merge(folder: ArmFolder, scenario: Scenario, outcome: RunOutcome) -> RunOutcome:
    """Merge the records of an arm that has been run, and write down what was wrong with its logs."""
    scenario = with_steps(scenario)
    topology = build_topology(scenario)
    plan = _plan_as_it_went(scenario.scaled(), topology, outcome)
    if outcome.by_hand:
        scenario = with_orders(scenario, outcome)
        folder.scenario.write_text(dump_scenario(scenario))
    problems = merge_run(folder, scenario, topology, plan)
    outcome = replace(outcome, log_problems=problems)
    outcome.save(folder.outcome)
    return outcome


def _plan_as_it_went(scaled: Scenario, topology: Topology, outcome: RunOutcome) -> Plan:
    """The plan of a run, of which faults ordered by hand are no part, and the requests that they added."""
    plan = build_plan(scaled)
    if not outcome.surges:
        return plan
    faults = [Ordered.of_words(each).fault(scaled, topology) for each in outcome.surges]
    return with_surges(plan, [surge(scaled, fault) for fault in faults])


def with_orders(scenario: Scenario, outcome: RunOutcome) -> Scenario:
    """The scenario as it went: with the faults that were ordered by hand."""
    lines = tuple(FaultLine.model_validate(words) for words in outcome.by_hand)
    return scenario.model_copy(update={"faults": (*scenario.faults, *lines)}) if lines else scenario


def redraw(
    folder: RunFolder,
    arms: Sequence[str] = (),
    only: Sequence[str] = (),
    out: Path | None = None,
    span_s: tuple[float, float] | None = None,
) -> list[Path]:
    """Draw the figures of a finished run again, from what lies in its folder alone; the paths of the files.

    Args:
        folder: of the run.
        arms: to be drawn, in this order; all unless given.
        only: stems of the figures; all unless given.
        out: another folder for the files, whose names begin with the scenario's there; small ones, for a page.
        span_s: the part of the time that figures over time show; all unless given.

    Raises:
        RunError: the folder is not a finished run.
        UsageError: an arm or a figure that the run has not.
    """
    summary = load_summary(folder.summary)
    scenarios = {arm.name: load_scenario(arm.scenario).arms["main"] for arm in folder.arms()}
    lost = [arm for arm in summary["arms"] if arm not in scenarios]
    if lost:
        raise RunError(f"{folder.path} is damaged: the folders of the arms {', '.join(lost)} are missing")
    for asked, known, option in ((arms, summary["arms"], "--arm"), (only, STEMS, "--only")):
        for name in asked:
            if name not in known:
                raise UsageError(f"{option} {name}: not in {folder.path}; accepted: {', '.join(known)}")
    chosen = {**summary, "arms": {arm: summary["arms"][arm] for arm in arms or summary["arms"]}}
    figures = draw_all(_drawn(folder, scenarios, chosen), only)
    if span_s is not None:
        for figure in figures.values():
            zoom(figure, *span_s)
    if out is None:
        return save_figures(figures, folder.figures)
    return save_figures(
        {f"{summary['name']}_{stem}": each for stem, each in figures.items()}, out, small=True
    )


def _drawn(folder: RunFolder, scenarios: dict[str, Scenario], summary: dict[str, Any]) -> list[DrawnArm]:
    drawn = []
    for arm, words in summary["arms"].items():
        tables = folder.arm(arm).tables
        drawn.append(
            DrawnArm(arm, scenarios[arm], read_tables(tables, tables_there(tables), numbered=True), words)
        )
    return drawn


def _run_engine(folder: ArmFolder, scenario: Scenario, text: str, engine: str, shown: Display) -> RunOutcome:
    scaled = scenario.scaled()
    topology = build_topology(scaled)
    plan = build_plan(scaled)
    check_series(scaled)
    if engine == "live":
        return run_live(folder, scaled, topology, plan, on_progress=shown.show)
    header = log_header(
        scenario=scenario.name,
        scenario_hash=scenario_hash(text),
        seed=scenario.seed,
        version=__version__,
        engine="virtual",
        node="",
        started="virtual",  # the same in every run: logs of one seed are equal to the byte
    )
    return VirtualEngine(folder, World(scaled, topology, plan, load_split(folder)), header).run(shown.show)


def _timed(file: ScenarioFile, options: Options) -> dict[str, Scenario]:
    scenarios = {arm: with_steps(scenario) for arm, scenario in file.arms.items()}
    if options.duration_s is None:
        return scenarios
    return {arm: with_duration(scenario, options.duration_s) for arm, scenario in scenarios.items()}


def _write_manifest(
    file: ScenarioFile, folder: RunFolder, options: Options, scenarios: dict[str, Scenario]
) -> None:
    try:
        shutil.copyfile(file.path, folder.scenario)
    except OSError as error:
        raise RunError(f"{folder.scenario}: cannot be written: {error.strerror}") from error
    words = manifest(
        name=file.name,
        scenario_text=folder.scenario.read_text(),
        engine=options.engine,
        seed=next(iter(scenarios.values())).seed,
        arms=list(scenarios),
        overrides=list(options.overrides),
    )
    save_manifest(folder.manifest, words)


def exit_status(finished: Sequence[Finished], expectations: Sequence[Expectation], *, strict: bool) -> int:
    """The exit status of a command that ran scenarios.

    130 after Ctrl-C, 5 if something died unplanned, 4 if an arm is invalid (with `strict`, suspect too), 3 if an
    expectation was not met, else 0; the first of these that holds.
    """
    verdicts = {arm["verdict"] for each in finished for arm in each.summary["arms"].values()}
    if any(each.interrupted for each in finished):
        return 130
    if "incomplete" in verdicts:
        return 5
    if "invalid" in verdicts or (strict and "suspect" in verdicts):
        return 4
    return 0 if expectations_met(finished, expectations) else 3


def expectations_met(finished: Sequence[Finished], expectations: Sequence[Expectation]) -> bool:
    """Whether every expectation holds: in the one run, or in the mean and in 80 % of the seeds of several."""
    summaries = [each.summary for each in finished]
    return all(expectation.check_repeats(summaries).met for expectation in expectations)
