"""All that the theory says of one arm before it runs: optimum, loop delay, stability, cycles, trajectory, deviation.

Each line comes with what it supposes; where that does not hold, it is refused with a reason instead.
"""

from __future__ import annotations

from testbed.scenario.schema import Scenario
from testbed.theory.fluid_form import fluid_form
from testbed.theory.ground import ground_of
from testbed.theory.motion_statements import (
    deviation_statements,
    fluid_statements,
    followed,
    greedy_statements,
)
from testbed.theory.stability_statements import stability_statements
from testbed.theory.statement import Statement
from testbed.theory.static_statements import loop_delay_statements, optimum_statements


def predict(scenario: Scenario) -> list[Statement]:
    """Every statement about one arm.

    Raises:
        RunError: a trace is missing or malformed.
    """
    ground = ground_of(scenario)
    form = fluid_form(scenario)
    path = followed(ground, form)
    return [
        *optimum_statements(ground),
        *loop_delay_statements(ground),
        *stability_statements(ground),
        *greedy_statements(ground),
        *fluid_statements(ground, form, path),
        *deviation_statements(ground, form, path),
    ]
