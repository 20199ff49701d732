"""What several commands share: their options, and where they print."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

WIDTH = 160  # of tables that go into a file or a pipe, where nobody knows the width
console = Console(width=None if sys.stdout.isatty() else WIDTH, emoji=False)
errors = Console(stderr=True, emoji=False)  # `my_module:A: ...` is no picture of a letter

ScenarioPath = Annotated[Path, typer.Argument(help="A scenario file.", metavar="SCENARIO")]
RunPath = Annotated[Path, typer.Argument(help="The folder of a run.", metavar="RUN")]
ArmNames = Annotated[list[str] | None, typer.Option("--arm", help="Only this arm (may be given again).")]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", help="PATH=VALUE: override a key, such as policies.flow.step='0.2 /s^2'."),
]
Seed = Annotated[int | None, typer.Option(help="Another seed.", min=0)]
JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
TimeScale = Annotated[
    float | None, typer.Option("--time-scale", help="Another time scale: 2 doubles every duration.")
]


def with_time_scale(overrides: list[str] | None, time_scale: float | None) -> list[str]:
    """The overrides, with that of the time scale behind them where one is given."""
    return [*(overrides or ()), *([f"time_scale={time_scale}"] if time_scale is not None else [])]
