"""`testbed check`."""

from __future__ import annotations

from testbed.commands.options import ArmNames, Overrides, ScenarioPath, Seed, console
from testbed.console.resolved_plan import describe
from testbed.scenario.overrides import load_file


def check(
    scenario: ScenarioPath, arm: ArmNames = None, seed: Seed = None, overrides: Overrides = None
) -> None:
    """Print the resolved plan of a scenario, with warnings, or all that is wrong with it."""
    for part in describe(load_file(scenario, overrides, seed, arm)):
        console.print(part)
