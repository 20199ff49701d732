"""`testbed bench`."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Annotated, Any, TypeAlias

import typer

from testbed import FORM
from testbed.benchmark.catalogue import all_figures
from testbed.benchmark.figure import Figure
from testbed.benchmark.header import header
from testbed.benchmark.neighbours import refuse_busy_host
from testbed.benchmark.soak import soak, soak_figures
from testbed.benchmark.table import figure_data, figure_table
from testbed.benchmark.verdict_trials import COUNT, RUN_S, trial_data, trial_figures, trial_table, trials
from testbed.commands.options import JsonFlag, console, errors
from testbed.errors import UsageError
from testbed.scenario.quantity import parse_duration_s

NOT_REACHED = 3
Header: TypeAlias = dict[str, Any] | None  # None: the figures are for people
FORMS = {
    "compiled": "measured with compiled modules",
    "interpreted": "measured without compiled modules: scripts/compile makes them",
    "stale": "measured without compiled modules, since a source has changed: scripts/compile makes them",
}


def bench(
    full: Annotated[
        bool, typer.Option("--full/--quick", help="Long enough to publish, or a first impression.")
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", help="Only throughput, injection, start, virtual, merging or decision."),
    ] = None,
    verdict: Annotated[
        bool,
        typer.Option(
            "--verdict", help="Instead: runs alone and beside four hogs, and what the verdict says of them."
        ),
    ] = False,
    count: Annotated[int, typer.Option("--count", help="So many of each, with --verdict.", min=1)] = COUNT,
    soaked: Annotated[
        str | None,
        typer.Option(
            "--soak", help="Instead: a run of this length, such as '30 min', and how its processes grow."
        ),
    ] = None,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Measure even beside a busy neighbour; the figures say little.")
    ] = False,
    json_: JsonFlag = False,
) -> None:
    """Measure what this machine carries, both sides of a ratio in the same run; 3 where an aim is missed."""
    if verdict and soaked is not None:
        raise UsageError("--verdict and --soak are two measurements: give one of them")
    length_s = 0.0 if soaked is None else _length_s(soaked)
    if not anyway:
        refuse_busy_host()
    made = header() if json_ else None
    if verdict:
        _verdict(count, made)
    elif soaked is not None:
        _soak(length_s, made)
    else:
        _measure(full, tuple(only or ()), made)


def _measure(full: bool, only: Sequence[str], made: Header) -> None:
    figures = []
    with errors.status("measuring") as status:
        for figure in all_figures(quick=not full, only=only):
            figures.append(figure)
            status.update(f"measured: {figure.name}")
    _conclude(figures, made, {})


def _verdict(count: int, made: Header) -> None:
    found = []
    with errors.status(f"{2 * count} runs of {RUN_S:.0f} s") as status:
        for trial in trials(count):
            found.append(trial)
            status.update(
                f"{len(found)} of {2 * count} runs, or more where some are repeated; the last, beside {trial.hogs} hogs: {trial.verdict}"
            )
    if made is None:
        console.print(trial_table(found))
    _conclude(trial_figures(found), made, {"trials": trial_data(found)})


def _soak(length_s: float, made: Header) -> None:
    with errors.status(f"a run of {length_s:.0f} s"):
        growths, ran = soak(length_s)
    _conclude(soak_figures(growths, ran), made, {"verdict": ran.summary["verdict"]})


def _conclude(figures: Sequence[Figure], made: Header, more: dict[str, Any]) -> None:
    """Print, and end with 3 where an aim was missed."""
    if made is not None:
        print(json.dumps({"header": made, "figures": figure_data(figures), **more}, indent=1))
    else:
        console.print(figure_table(figures))
        console.print(FORMS[FORM])
    raise typer.Exit(NOT_REACHED if any(each.reached is False for each in figures) else 0)


def _length_s(text: str) -> float:
    """Of a soak; 'm' stands for minutes here, which no other unit begins with."""
    try:
        length_s = parse_duration_s(re.sub(r"(\d)\s*m$", r"\1 min", text))
    except ValueError as error:
        raise UsageError(f"--soak: {error}; accepted: a time such as '30 min'") from error
    if length_s <= 0.0:
        raise UsageError(f"--soak: {text!r} is out of range; accepted: a time above 0")
    return length_s
