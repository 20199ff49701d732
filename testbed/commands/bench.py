"""`testbed bench`."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from testbed.benchmark.catalogue import all_figures
from testbed.benchmark.neighbours import refuse_busy_host
from testbed.benchmark.table import figure_data, figure_table
from testbed.commands.options import JsonFlag, console, errors


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
    json_: JsonFlag = False,
) -> None:
    """Measure what this machine carries; both sides of a ratio in the same run."""
    if not anyway:
        refuse_busy_host()
    figures = []
    with errors.status("measuring") as status:
        for figure in all_figures(quick=not full, only=tuple(only or ())):
            figures.append(figure)
            status.update(f"measured: {figure.name}")
    if json_:
        print(json.dumps(figure_data(figures), indent=1))
    else:
        console.print(figure_table(figures))
