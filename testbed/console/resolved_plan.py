"""The resolved plan that `testbed check` prints before anything starts: sections of text, made for each arm."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rich.console import RenderableType

from testbed.console.operation_sections import (
    cautions_section,
    load_section,
    loops_section,
    modes_section,
    steps_section,
)
from testbed.console.scenario_sections import (
    arms_section,
    delays_section,
    faults_section,
    nodes_section,
    traffic_section,
)
from testbed.console.section import Section, as_table, shared
from testbed.host.cores import usable_cores
from testbed.scenario.load import ScenarioFile
from testbed.scenario.schema import Scenario
from testbed.theory.resolved_arm import ResolvedArm, resolve

_BUILDERS: tuple[Callable[[ResolvedArm], Section], ...] = (
    nodes_section,
    traffic_section,
    delays_section,
    load_section,
    loops_section,
    modes_section,
    steps_section,
    faults_section,
    cautions_section,
)


def describe(file: ScenarioFile) -> list[RenderableType]:
    """The resolved plan of all arms of a scenario file, ready to print with rich.

    Raises:
        RunError: a trace is missing or malformed.
    """
    return [as_table(section) for section in sections(file.arms)]


def sections(arms: Mapping[str, Scenario], cores: int | None = None) -> list[Section]:
    """The sections of the plan, in the order of reading; `cores` are this machine's unless given.

    Raises:
        RunError: a trace is missing or malformed.
    """
    cores = max(1, int(usable_cores().usable)) if cores is None else cores
    resolved = {name: resolve(scenario, cores) for name, scenario in arms.items()}
    found = [arms_section(resolved)]
    for build in _BUILDERS:
        found += shared({name: build(arm) for name, arm in resolved.items()})
    return [section for section in found if section.rows or section.note]
