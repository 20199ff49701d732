"""A fault that was ordered by hand, as it travels to the processes that make it."""

from __future__ import annotations

from typing import Any, NamedTuple

from testbed.scenario.fault_plan import Fault, ordered_fault
from testbed.scenario.fault_words import FaultLine
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import Topology


class Ordered(NamedTuple):
    """One order.

    Attributes:
        number: how many were ordered before.
        at_s: run time at which it set in.
        until_s: when it heals, or did; infinite: not planned.
        words: of its line, in run time.
    """

    number: int
    at_s: float
    until_s: float
    words: dict[str, Any]

    def fault(self, scenario: Scenario, topology: Topology) -> Fault:
        """The fault; the scenario is in run time."""
        line = FaultLine.model_validate(self.words)
        return ordered_fault(scenario, topology, self.number, line, self.at_s, self.until_s)
