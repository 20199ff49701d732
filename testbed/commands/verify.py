"""`testbed verify`."""

from __future__ import annotations

import json
from pathlib import Path
from time import monotonic
from typing import Annotated

import typer

from testbed.commands.options import JsonFlag, console, errors
from testbed.verification.finding import Finding
from testbed.verification.page import Page
from testbed.verification.table import all_met, as_json, as_line, as_table
from testbed.verification.work import Order, all_results


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
    json_: JsonFlag = False,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Also write the table and its figures as a page of Markdown; one that is there keeps its other targets."
        ),
    ] = None,
    workers: Annotated[
        int, typer.Option(min=1, help="Processes that work targets out beside each other.")
    ] = 1,
) -> None:
    """Reproduce the laws and published results; a table of expected, measured, tolerance, met or not."""
    order = Order(not full, live, tuple(only or ()), out is not None)
    page = None if out is None else Page(out)
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
