"""`testbed run`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from testbed.campaign import Orders, refuse_scales, run_folder, run_scales, run_seeds
from testbed.commands.options import ArmNames, Overrides, Seed, TimeScale, console, with_time_scale
from testbed.errors import UsageError
from testbed.experiment import new_folder, refuse_oracles
from testbed.scenario.quantity import parse_duration_s

DurationText = Annotated[
    str | None,
    typer.Option("--duration", help="Another duration; warm-up, faults and stages move in proportion."),
]


class Engine(StrEnum):
    """The engines that a run may use."""

    live = "live"
    virtual = "virtual"


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
    time_scale: TimeScale = None,
    repeat: Annotated[int, typer.Option(help="Run this many seeds, one after the other.", min=1)] = 1,
    strict: Annotated[
        bool, typer.Option("--strict", help="A suspect run fails like an invalid one.")
    ] = False,
    figures: Annotated[bool, typer.Option(help="Draw the figures.")] = True,
    check_scale: Annotated[
        bool, typer.Option("--check-scale", help="Run at the time scale and at twice that, and compare.")
    ] = False,
    check_spread: Annotated[
        bool,
        typer.Option(
            "--check-spread",
            help="Run the same plan twice, or --repeat times: by how much does each figure differ?",
        ),
    ] = False,
    null: Annotated[
        bool,
        typer.Option(
            "--null",
            help="Without delays, waits and faults, at the planned rate: what does the testbed itself take?",
        ),
    ] = False,
) -> None:
    """Run every arm of a scenario: progress, then a table, the verdict and figures."""
    words = with_time_scale(overrides, time_scale)
    if check_scale and (scenario.is_dir() or repeat > 1 or check_spread):
        raise UsageError("--check-scale takes one scenario file, no --repeat and no --check-spread")
    orders = Orders(
        engine.value,
        tuple(arm or ()),
        seed,
        words,
        _duration_s(duration),
        max(repeat, 2) if check_spread else repeat,
        figures,
        strict,
        check_spread,
        null,
        time_scale,
    )
    if scenario.is_dir():
        raise typer.Exit(run_folder(console, scenario, out, orders))
    first = orders.load(scenario, seed)
    if engine is Engine.live:
        refuse_oracles(first)
    if check_scale:
        refuse_scales(first)
    base = new_folder(out, first.name)
    status = (
        run_scales(console, scenario, base, orders)
        if check_scale
        else run_seeds(console, scenario, base, orders)[0]
    )
    console.print(f"records and figures: {base.path}", highlight=False, soft_wrap=True)
    raise typer.Exit(status)


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
