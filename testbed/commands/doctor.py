"""`testbed doctor`."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Annotated, Any

import typer

from testbed.benchmark.baseline import measure_baseline
from testbed.benchmark.capability import measure, measured_checks
from testbed.commands.options import (
    ArmNames,
    JsonFlag,
    Overrides,
    Seed,
    TimeScale,
    console,
    errors,
    with_time_scale,
)
from testbed.fitness.check import Check
from testbed.fitness.footprint import Footprint, footprint
from testbed.fitness.machine_checks import machine_checks
from testbed.fitness.scenario_checks import cheap_checks, speed_checks
from testbed.fitness.table import all_fit, check_data, check_table
from testbed.fitness.time_scale import advised_scale, scale_check
from testbed.host.machine import look_at_machine
from testbed.scenario.overrides import load_file

RUNS = Path("runs")  # where records go unless told otherwise


def doctor(
    scenario: Annotated[
        Path | None, typer.Argument(help="A scenario file: does it fit?", metavar="[SCENARIO]")
    ] = None,
    arm: ArmNames = None,
    seed: Seed = None,
    overrides: Overrides = None,
    time_scale: TimeScale = None,
    json_: JsonFlag = False,
) -> None:
    """Tell what this machine can carry, in some twenty seconds, and whether a scenario fits; 4 where it does not."""
    words = with_time_scale(overrides, time_scale)
    arms = load_file(scenario, words, seed, arm).arms if scenario is not None else {}
    needs = {name: footprint(each) for name, each in arms.items()}
    machine = look_at_machine(RUNS)
    with errors.status("measuring") as status:
        found = measure(lambda what: status.update(f"measuring: {what}"))
    tables: dict[str, list[Check]] = {
        "machine": machine_checks(machine),
        "measured": measured_checks(found, machine),
    }
    scales = []
    for each, names in _alike(needs).items():
        cheap, speed = cheap_checks(each, machine), found.speed
        if all_fit(cheap):
            with errors.status("measuring: a hop at the planned rate"):
                baseline = measure_baseline(arms[names[0]])
            speed = baseline.worsen(speed)
            cheap.append(baseline.check())
        scales.append(advised_scale(each, machine, speed))
        title = f"{'arm' if len(names) == 1 else 'arms'} {', '.join(names)}"
        tables[title] = [
            *cheap,
            *speed_checks(each, machine, speed),
            scale_check(each, machine, speed),
        ]
    fits = all(all_fit(checks) for checks in tables.values())
    if json_:
        data: dict[str, Any] = {name: check_data(checks) for name, checks in tables.items()}
        scale = max(scales, default=math.inf)
        data["time_scale"] = scale if math.isfinite(scale) else None
        print(json.dumps({"fits": fits, **data}, indent=1))
    else:
        for name, checks in tables.items():
            console.print(check_table(name, checks))
    raise typer.Exit(0 if fits else 4)


def _alike(needs: dict[str, Footprint]) -> dict[Footprint, list[str]]:
    """The arms that need each footprint: most arms differ in a policy alone."""
    found: dict[Footprint, list[str]] = {}
    for name, each in needs.items():
        found.setdefault(each, []).append(name)
    return found
