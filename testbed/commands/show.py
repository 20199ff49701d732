"""`testbed show`."""

from __future__ import annotations

from typing import Annotated

import typer

from testbed.commands.options import RunPath, console
from testbed.console.checks_table import print_checks
from testbed.console.comparison import runs_below
from testbed.console.link_table import print_links
from testbed.console.questions import print_questions
from testbed.console.routing_table import print_routing
from testbed.console.summary_table import print_summary
from testbed.record.summary_file import load_summary


def show(
    folder: RunPath,
    links: Annotated[
        bool, typer.Option("--links", help="Also every link: counts, drawn delay, lateness.")
    ] = False,
    checks: Annotated[
        bool,
        typer.Option(
            "--checks", help="Also what the verdict rests on: every check, and the machine meanwhile."
        ),
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
        if checks:
            print_checks(console, summary)
        if links:
            print_links(console, each)
