"""`testbed compare`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from testbed.commands.options import console
from testbed.console.comparison import print_comparison
from testbed.errors import UsageError


def compare(
    runs: Annotated[list[Path], typer.Argument(help="Folders of runs, two or more.", metavar="RUN RUN...")],
) -> None:
    """List every key in which runs differ, and their figures side by side."""
    if len(runs) < 2:
        raise UsageError("compare takes two runs or more")
    print_comparison(console, runs)
