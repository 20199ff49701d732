"""A fault that was ordered by hand, as it travels to the processes that make it."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from testbed.record.outcome import SurgeWords
from testbed.scenario.fault_plan import Fault, ordered_fault
from testbed.scenario.fault_words import FaultLine
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import Topology
from testbed.traffic.surge import BY_HAND


class Ordered(NamedTuple):
    """One order.

    Attributes:
        number: how many were ordered before.
        at_s: run time at which it set in.
        until_s: when it heals, or did; infinite: not planned.
        words: of its line, in run time.
        first_id: of the requests that it adds, where it adds some.
    """

    number: int
    at_s: float
    until_s: float
    words: dict[str, Any]
    first_id: int = 0

    def fault(self, scenario: Scenario, topology: Topology) -> Fault:
        """The fault; the scenario is in run time."""
        line = FaultLine.model_validate(self.words)
        return ordered_fault(scenario, topology, self.number, line, self.at_s, self.until_s)

    @classmethod
    def of_words(cls, words: SurgeWords) -> Ordered:
        """From the record of a run."""
        number, at_s, until_s, line, first_id = words
        return cls(number, at_s, math.inf if until_s is None else until_s, line, first_id)

    def as_words(self) -> SurgeWords:
        """For the record of a run, in which no number is infinite."""
        until_s = None if math.isinf(self.until_s) else self.until_s
        return self.number, self.at_s, until_s, self.words, self.first_id

    @property
    def is_surge(self) -> bool:
        """Whether it adds requests."""
        return bool(BY_HAND & self.words["set"].keys())
