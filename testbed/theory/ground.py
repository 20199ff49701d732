"""What all that the theory says of one arm builds on: demand, optimum, loops; and how it is put into words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from testbed.scenario.schema import Scenario
from testbed.scenario.topology import build_topology
from testbed.theory.feedback import Feedback, feedbacks
from testbed.theory.line_step import line_steps, with_steps
from testbed.theory.loop_delay import loop_delay_s
from testbed.theory.operating_point import Demand, Floats, OperatingPoint, at_optimum, demand
from testbed.theory.path_delays import PathDelays

_ALIKE = 1e-6  # relative: cells, or delays, that differ by no more are equal


@dataclass(frozen=True)
class Ground:
    """What all statements about one arm build on; in scenario time."""

    scenario: Scenario
    delays: PathDelays
    wanted: Demand
    optimum: OperatingPoint
    loops: list[Feedback]
    steps: list[float | None]  # of each line, None where it moves no shares

    def policy(self, line: int) -> str:
        """The name of the policy of a line."""
        root, index = self.wanted.lines[line]
        return self.scenario.roots[root].traffic[index].policy

    def name(self, line: int) -> str:
        """A line in words: root and class."""
        root, index = self.wanted.lines[line]
        return f"{root} {self.scenario.roots[root].traffic[index].class_}"

    def loop_delays_s(self, line: int) -> Floats:
        """T of a line and each cell."""
        policy = self.scenario.policies[self.policy(line)]
        root = self.wanted.lines[line][0]
        return np.array(
            [loop_delay_s(self.scenario, self.delays, root, cell, policy) for cell in self.wanted.cells]
        )

    def by_cell(self, words: list[str]) -> str:
        """A word for each cell."""
        return ", ".join(f"{cell} {word}" for cell, word in zip(self.wanted.cells, words, strict=True))

    def figures(self, values: list[float] | list[float | None]) -> dict[str, float | None]:
        """A number for each cell."""
        return dict(zip(self.wanted.cells, values, strict=True))

    def not_alike(self) -> str:
        """Why cells and delays are not all equal; empty if they are."""
        cells = self.optimum.cells
        for values in ([cell.a_per_s for cell in cells], [cell.sigma_s for cell in cells]):
            if np.ptp(values) > _ALIKE * max(values):
                return "the cells differ"
        delays_s = np.array([self.loop_delays_s(i) for i in range(len(self.wanted.lines))])
        if not np.isfinite(delays_s).all():
            return "no report arrives"
        if np.ptp(delays_s) > _ALIKE * delays_s.max():
            return "the loop delays differ"
        return "" if self.wanted.allowed.all() else "some roots may not use all cells"


def ground_of(scenario: Scenario) -> Ground:
    """Work it out for one arm.

    Raises:
        UsageError: a step is a multiple of a critical one that does not exist.
        RunError: a trace is missing or malformed.
    """
    scenario = with_steps(scenario)
    delays = PathDelays(build_topology(scenario))
    wanted = demand(scenario, delays)
    optimum = at_optimum(wanted)
    loops = feedbacks(scenario, delays, wanted, optimum)
    steps = line_steps(scenario, delays, wanted, optimum)
    return Ground(scenario, delays, wanted, optimum, loops, steps)
