"""What a live run says of the machine before it starts: warnings, at the price of some milliseconds."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from testbed.fitness.footprint import footprint
from testbed.fitness.machine_checks import machine_checks
from testbed.fitness.scenario_checks import cheap_checks, warnings
from testbed.host.machine import look_at_machine
from testbed.scenario.schema import Scenario


def start_warnings(arms: Iterable[Scenario], folder: Path) -> list[str]:
    """What does not fit or only just, of the machine and of any arm; each said once.

    Raises:
        RunError: a trace is missing or malformed.
    """
    machine = look_at_machine(folder)
    found = warnings(machine_checks(machine))
    for arm in arms:
        found += warnings(cheap_checks(footprint(arm), machine))
    return list(dict.fromkeys(found))
