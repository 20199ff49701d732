"""`testbed plot`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from testbed.commands.options import ArmNames, console
from testbed.console.comparison import runs_below
from testbed.errors import UsageError
from testbed.experiment import redraw
from testbed.scenario.quantity import parse_duration_s


def plot(
    runs: Annotated[list[Path], typer.Argument(help="Folders of runs.", metavar="RUN...")],
    arm: ArmNames = None,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", help="Only this figure, such as servers (may be given again)."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the files, small and named after their scenarios there.")
    ] = None,
    from_: Annotated[
        str | None, typer.Option("--from", help="Show the time from here on, such as '5 s'.")
    ] = None,
    to: Annotated[str | None, typer.Option("--to", help="Show the time up to here.")] = None,
) -> None:
    """Draw the figures of runs again, from their records alone."""
    span_s = _span_s(from_, to)
    for each in runs:
        for folder in runs_below(each):
            for path in redraw(folder, arm or (), only or (), out, span_s):
                console.print(str(path), highlight=False, soft_wrap=True)


def _span_s(from_: str | None, to: str | None) -> tuple[float, float] | None:
    if from_ is None and to is None:
        return None
    if to is None:
        raise UsageError("--from goes with --to; accepted: both, such as --from '5 s' --to '8 s'")
    span_s = (_time_s("--from", from_ or "0 s"), _time_s("--to", to))
    if span_s[0] >= span_s[1]:
        raise UsageError(f"--to: {to!r} does not lie after --from; accepted: a later time")
    return span_s


def _time_s(option: str, text: str) -> float:
    try:
        return parse_duration_s(text)
    except ValueError as error:
        raise UsageError(f"{option}: {error}; accepted: a time such as '10 s'") from error
