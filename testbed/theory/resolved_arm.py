"""All that is known of an arm before it runs."""

from __future__ import annotations

from typing import NamedTuple

from testbed.scenario.schema import Scenario
from testbed.scenario.topology import Topology, build_topology
from testbed.theory.feedback import Feedback, feedbacks
from testbed.theory.line_step import with_steps
from testbed.theory.operating_point import (
    Demand,
    OperatingPoint,
    at_capacity_split,
    at_optimum,
    demand,
)
from testbed.theory.path_delays import PathDelays
from testbed.traffic.plan import Plan, build_plan


class ResolvedArm(NamedTuple):
    """An arm as it is to run, and where the theory sees it work; everything but `plan` in scenario time."""

    scenario: Scenario
    topology: Topology
    delays: PathDelays
    plan: Plan
    wanted: Demand
    by_capacity: OperatingPoint
    optimum: OperatingPoint
    loops: list[Feedback]
    cores: int


def resolve(scenario: Scenario, cores: int) -> ResolvedArm:
    """Work out everything about one arm.

    Raises:
        UsageError: a step is a multiple of a critical one that does not exist.
        RunError: a trace is missing or malformed.
    """
    scenario = with_steps(scenario)
    topology = build_topology(scenario)
    delays = PathDelays(topology)
    wanted = demand(scenario, delays)
    optimum = at_optimum(wanted)
    loops = feedbacks(scenario, delays, wanted, optimum)
    plan = build_plan(scenario.scaled())
    return ResolvedArm(
        scenario, topology, delays, plan, wanted, at_capacity_split(wanted), optimum, loops, cores
    )
