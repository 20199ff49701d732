"""`testbed plot`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from testbed.commands.options import console
from testbed.console.comparison import runs_below
from testbed.experiment import redraw


def plot(runs: Annotated[list[Path], typer.Argument(help="Folders of runs.", metavar="RUN...")]) -> None:
    """Draw the figures of runs again, from their records alone."""
    for each in runs:
        for folder in runs_below(each):
            for path in redraw(folder):
                console.print(str(path), highlight=False, soft_wrap=True)
