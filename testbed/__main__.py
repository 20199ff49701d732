"""The command line: turns errors into exit statuses.

0 valid and every expectation met; 1 the run failed; 2 the scenario or the command line is wrong; 3 an expectation,
or a target of `verify`, was not met; 4 invalid; 5 incomplete; 130 interrupted, data kept.
"""

from __future__ import annotations

import json
import os
import sys
from enum import StrEnum
from pathlib import Path
from time import monotonic
from typing import Annotated

import typer
from rich.console import Console

from testbed.benchmark.catalogue import all_figures
from testbed.benchmark.neighbours import refuse_busy_host
from testbed.benchmark.table import figure_data, figure_table
from testbed.campaign import Orders, load_file, run_folder, run_scales, run_seeds
from testbed.console.comparison import print_comparison, runs_below
from testbed.console.control import ACTIONS, order
from testbed.console.link_table import print_links
from testbed.console.prediction_table import as_data, print_predictions
from testbed.console.questions import print_questions
from testbed.console.routing_table import print_routing
from testbed.console.summary_table import print_summary
from testbed.errors import InterruptError, RunError, ScenarioError, UsageError
from testbed.experiment import new_folder, redraw, refuse_oracles
from testbed.record.summary_file import load_summary
from testbed.scenario.json_schema import json_schema
from testbed.scenario.quantity import parse_duration_s
from testbed.theory.check import describe
from testbed.theory.prediction import predict
from testbed.verification.finding import Finding
from testbed.verification.page import Page
from testbed.verification.table import all_met, as_json, as_line, as_table
from testbed.verification.work import Order, all_results

WIDTH = 160  # of tables that go into a file or a pipe, where nobody knows the width
console = Console(width=None if sys.stdout.isatty() else WIDTH, emoji=False)
errors = Console(stderr=True, emoji=False)  # `my_module:A: ...` is no picture of a letter
app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Distributed load balancing under delayed feedback, emulated with real processes or in virtual time.",
)


class Engine(StrEnum):
    """The engines that a run may use."""

    live = "live"
    virtual = "virtual"


ScenarioPath = Annotated[Path, typer.Argument(help="A scenario file.", metavar="SCENARIO")]
RunPath = Annotated[Path, typer.Argument(help="The folder of a run.", metavar="RUN")]
ArmNames = Annotated[list[str] | None, typer.Option("--arm", help="Only this arm (may be given again).")]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", help="PATH=VALUE: override a key, such as policies.flow.step='0.2 /s^2'."),
]
Seed = Annotated[int | None, typer.Option(help="Another seed.", min=0)]
DurationText = Annotated[
    str | None,
    typer.Option("--duration", help="Another duration; warm-up, faults and stages move in proportion."),
]


@app.command()
def run(
    scenario: Annotated[
        Path, typer.Argument(help="A scenario file, or a folder of them.", metavar="SCENARIO")
    ],
    engine: Annotated[Engine, typer.Option(help="Real processes, or virtual time.")] = Engine.live,
    arm: ArmNames = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the run; new or empty.")] = None,
    seed: Seed = None,
    overrides: Overrides = None,
    duration: DurationText = None,
    time_scale: Annotated[
        float | None, typer.Option("--time-scale", help="Another time scale: 2 doubles every duration.")
    ] = None,
    repeat: Annotated[int, typer.Option(help="Run this many seeds, one after the other.", min=1)] = 1,
    strict: Annotated[
        bool, typer.Option("--strict", help="A suspect run fails like an invalid one.")
    ] = False,
    figures: Annotated[bool, typer.Option(help="Draw the figures.")] = True,
    check_scale: Annotated[
        bool, typer.Option("--check-scale", help="Run at the time scale and at twice that, and compare.")
    ] = False,
) -> None:
    """Run every arm of a scenario: progress, then a table, the verdict and figures."""
    words = [*(overrides or ()), *([f"time_scale={time_scale}"] if time_scale is not None else [])]
    orders = Orders(
        engine.value, tuple(arm or ()), seed, words, _duration_s(duration), repeat, figures, strict
    )
    if check_scale and (scenario.is_dir() or repeat > 1):
        raise UsageError("--check-scale takes one scenario file and no --repeat")
    if scenario.is_dir():
        raise typer.Exit(run_folder(console, scenario, out, orders))
    first = load_file(scenario, words, seed, arm)
    if engine is Engine.live:
        refuse_oracles(first)
    base = new_folder(out, first.name)
    status = (
        run_scales(console, scenario, base, orders)
        if check_scale
        else run_seeds(console, scenario, base, orders)[0]
    )
    console.print(f"records and figures: {base.path}", highlight=False, soft_wrap=True)
    raise typer.Exit(status)


@app.command()
def check(
    scenario: ScenarioPath, arm: ArmNames = None, seed: Seed = None, overrides: Overrides = None
) -> None:
    """Print the resolved plan of a scenario, with warnings, or all that is wrong with it."""
    for part in describe(load_file(scenario, overrides, seed, arm)):
        console.print(part)


@app.command()
def theory(
    scenario: ScenarioPath,
    arm: ArmNames = None,
    seed: Seed = None,
    overrides: Overrides = None,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Print what the theory says of a scenario: optimum, stability, cycles; each with what it assumes, or why not."""
    said = {name: predict(each) for name, each in load_file(scenario, overrides, seed, arm).arms.items()}
    if json_:
        print(
            json.dumps(
                {name: as_data(statements) for name, statements in said.items()}, indent=1, allow_nan=False
            )
        )
        return
    for name, statements in said.items():
        print_predictions(console, name, statements)


@app.command()
def schema() -> None:
    """Print the JSON Schema of a scenario file, for editors."""
    print(json.dumps(json_schema(), indent=1))


@app.command()
def plot(runs: Annotated[list[Path], typer.Argument(help="Folders of runs.", metavar="RUN...")]) -> None:
    """Draw the figures of runs again, from their records alone."""
    for each in runs:
        for folder in runs_below(each):
            for path in redraw(folder):
                console.print(str(path), highlight=False, soft_wrap=True)


@app.command()
def show(
    folder: RunPath,
    links: Annotated[
        bool, typer.Option("--links", help="Also every link: counts, drawn delay, lateness.")
    ] = False,
    questions: Annotated[
        bool, typer.Option("--questions", help="Only the five questions, without the tables.")
    ] = False,
) -> None:
    """Print the summary of a run, and the answers to five questions on it."""
    for each in runs_below(folder):
        summary = load_summary(each.summary)
        if not questions:
            print_summary(console, summary)
            print_routing(console, summary)
        print_questions(console, summary)
        if links:
            print_links(console, each)


@app.command()
def compare(
    runs: Annotated[list[Path], typer.Argument(help="Folders of runs, two or more.", metavar="RUN RUN...")],
) -> None:
    """List every key in which runs differ, and their figures side by side."""
    if len(runs) < 2:
        raise UsageError("compare takes two runs or more")
    print_comparison(console, runs)


@app.command(context_settings={"ignore_unknown_options": False})
def control(
    folder: RunPath,
    action: Annotated[str, typer.Argument(help=f"One of {', '.join(ACTIONS)}.", metavar="ACTION")],
    words: Annotated[
        list[str] | None,
        typer.Argument(help="KEY=VALUE of set, the factor of speed, numbers to heal.", metavar="[WORD...]"),
    ] = None,
    cell: Annotated[str | None, typer.Option(help="Whom: cells, by name or glob.")] = None,
    server: Annotated[str | None, typer.Option(help="Whom: servers.")] = None,
    leaf: Annotated[str | None, typer.Option(help="Whom: leaves.")] = None,
    root: Annotated[str | None, typer.Option(help="Whom: roots.")] = None,
    source: Annotated[str | None, typer.Option("--from", help="Links: of these senders.")] = None,
    to: Annotated[str | None, typer.Option(help="Links: to these receivers.")] = None,
    path: Annotated[str | None, typer.Option(help="Links: on this path alone.")] = None,
    lasts: Annotated[str | None, typer.Option("--for", help="Heal after this long.")] = None,
) -> None:
    """Change a live run while it goes on; it answers within a second, and what it did is in its records."""
    target = {
        "cell": cell,
        "server": server,
        "leaf": leaf,
        "root": root,
        "from": source,
        "to": to,
        "path": path,
    }
    done, said = order(folder, action, words or (), target, lasts)
    for line in said:
        (console if done else errors).print(line, markup=False, highlight=False, soft_wrap=True)
    raise typer.Exit(0 if done else 1)


@app.command()
def verify(
    full: Annotated[
        bool, typer.Option("--full/--quick", help="Longer runs and more settings, for publication.")
    ] = False,
    live: Annotated[
        bool, typer.Option("--live", help="With real processes: herds and limit cycles, in minutes.")
    ] = False,
    only: Annotated[
        list[str] | None, typer.Option("--only", help="Only this target, such as V5 (may be given again).")
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON instead of the table.")] = False,
    out: Annotated[
        Path | None, typer.Option(help="Also write the table and its figures as a page of Markdown.")
    ] = None,
    workers: Annotated[
        int, typer.Option(min=1, help="Processes that work targets out beside each other.")
    ] = 1,
) -> None:
    """Reproduce the laws and published results; a table of expected, measured, tolerance, met or not."""
    order = Order(not full, live, tuple(only or ()), out is not None)
    page = None if out is None else Page(out, quick=not full, live=live)
    findings, begun_s = [], monotonic()
    with errors.status("verifying"):
        for result in all_results(order, workers):
            if page is not None:
                page.add(result)
            if isinstance(result, Finding):
                findings.append(result)
                said = as_line(result, monotonic() - begun_s)
                errors.print(said, markup=False, highlight=False, soft_wrap=True)
    if json_:
        print(json.dumps(as_json(findings), indent=1))
    else:
        console.print(as_table(findings))
    if page is not None:
        page.finish()
        for path in page.files:
            errors.print(str(path), highlight=False, soft_wrap=True)
    raise typer.Exit(0 if all_met(findings) else 3)


@app.command()
def bench(
    full: Annotated[
        bool, typer.Option("--full/--quick", help="Long enough to publish, or a first impression.")
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", help="Only throughput, injection, start, virtual, merging or decision."),
    ] = None,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Measure even beside a busy neighbour; the figures say little.")
    ] = False,
    as_data: Annotated[bool, typer.Option("--json", help="Print JSON instead of the table.")] = False,
) -> None:
    """Measure what this machine carries; both sides of a ratio in the same run."""
    if not anyway:
        refuse_busy_host()
    figures = []
    with errors.status("measuring") as status:
        for figure in all_figures(quick=not full, only=tuple(only or ())):
            figures.append(figure)
            status.update(f"measured: {figure.name}")
    if as_data:
        print(json.dumps(figure_data(figures), indent=1))
    else:
        console.print(figure_table(figures))


def main() -> None:
    """Run the command line; errors become one message and an exit status, never a traceback."""
    try:
        app(standalone_mode=True)
    except ScenarioError as error:
        errors.print(str(error), markup=False, highlight=False, soft_wrap=True)
        sys.exit(2)
    except UsageError as error:
        errors.print(f"testbed: {error}", markup=False, highlight=False, soft_wrap=True)
        sys.exit(2)
    except InterruptError as error:
        errors.print(f"testbed: {error}", markup=False, highlight=False, soft_wrap=True)
        sys.exit(130)
    except RunError as error:
        errors.print(f"testbed: {error}", markup=False, highlight=False, soft_wrap=True)
        sys.exit(1)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nobody reads on; say nothing more
        sys.exit(1)


def _duration_s(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        duration_s = parse_duration_s(text)
    except ValueError as error:
        raise UsageError(f"--duration: {error}; accepted: a time such as '10 s'") from error
    if duration_s <= 0:
        raise UsageError(f"--duration: {text!r} is out of range; accepted: a time above 0")
    return duration_s


if __name__ == "__main__":
    main()
