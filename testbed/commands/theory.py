"""`testbed theory`."""

from __future__ import annotations

import json

from testbed.commands.options import ArmNames, JsonFlag, Overrides, ScenarioPath, Seed, console
from testbed.console.prediction_table import as_data, print_predictions
from testbed.scenario.overrides import load_file
from testbed.theory.prediction import predict


def theory(
    scenario: ScenarioPath,
    arm: ArmNames = None,
    seed: Seed = None,
    overrides: Overrides = None,
    json_: JsonFlag = False,
) -> None:
    """Print what the theory says of a scenario: optimum, stability, cycles; each with what it assumes, or why not."""
    said = {name: predict(each) for name, each in load_file(scenario, overrides, seed, arm).arms.items()}
    if json_:
        print(
            json.dumps(
                {name: as_data(statements) for name, statements in said.items()}, indent=1, allow_nan=False
            )
        )
        return
    for name, statements in said.items():
        print_predictions(console, name, statements)
