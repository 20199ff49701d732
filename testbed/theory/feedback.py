"""The delayed loops of a scenario: every class and policy that acts on reports, at the optimum.

T, T/W and aT hold for any such policy. Flow routing also has a critical step: the factor by which all its steps
together would have to grow for the loop to oscillate, times the step. Sources: theory.md, section 2;
measures.md, sections 1, 2 and 5.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from testbed.scenario.policy_words import FlowPolicy, Policy
from testbed.scenario.quantity import Step
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import reads_reports
from testbed.serving.delayed_loop import Edge, Floats
from testbed.theory.line_step import line_steps
from testbed.theory.loop_delay import loop_delay_s
from testbed.theory.loop_edge import USED, loop_edges
from testbed.theory.operating_point import Demand, OperatingPoint
from testbed.theory.path_delays import PathDelays


class FlowStep(NamedTuple):
    """The step of a class of flow routing against its critical step.

    Attributes:
        step: as configured, or as predicted where it is derived in the run; the mean over roots, by requests.
        critical: at which the loop begins to oscillate, for the work of the scenario; infinite: never.
        critical_memoryless: the same if the work were memoryless, by equation (5) where the cells are equal.
        period_s: at the edge; NaN where it never oscillates.
        interval_s: between updates; the report period where every report triggers one.
    """

    step: Step
    critical: float
    critical_memoryless: float
    period_s: float
    interval_s: float

    @property
    def fraction(self) -> float:
        """Step over critical step; the same for all classes, since their steps are taken to grow together."""
        return self.step.value / self.critical


class Feedback(NamedTuple):
    """The loop of one class under one policy; means over its roots and the cells they use, by requests.

    Attributes:
        class_name: of traffic.
        policy: its name in the scenario.
        loop_delay_s: T; infinite where no report arrives.
        sojourn_s: W, in the cell.
        a_per_s: marginal service rate.
        flow: where the policy moves shares by steps.
    """

    class_name: str
    policy: str
    loop_delay_s: float
    sojourn_s: float
    a_per_s: float
    flow: FlowStep | None


def acts_on_reports(policy: Policy) -> bool:
    """Whether a root's policy uses what the cells report."""
    return isinstance(policy, FlowPolicy) or reads_reports(policy)


def feedbacks(
    scenario: Scenario, delays: PathDelays, wanted: Demand, point: OperatingPoint
) -> list[Feedback]:
    """One entry per class and policy that acts on reports, in the scenario's order; none where a cell is overfull."""
    if not point.is_sustained:
        return []
    groups: dict[tuple[str, str], list[int]] = {}
    for i, (root, index) in enumerate(wanted.lines):
        line = scenario.roots[root].traffic[index]
        if acts_on_reports(scenario.policies[line.policy]) and wanted.rates_per_s[i] > 0.0:
            groups.setdefault((line.class_, line.policy), []).append(i)
    steps = line_steps(scenario, delays, wanted, point)
    edges = loop_edges(scenario, delays, wanted, point, steps)
    return [
        _feedback(scenario, delays, wanted, point, names, lines, steps, edges)
        for names, lines in groups.items()
    ]


def interval_s(scenario: Scenario, policy: FlowPolicy) -> float:
    """The time between updates: as given, else the report period."""
    return scenario.reports.every if policy.interval is None else policy.interval


def step_of(scenario: Scenario, root: str, index: int) -> float:
    """The step of a line of traffic whose policy is flow, in the unit that its cost asks for."""
    policy = scenario.policies[scenario.roots[root].traffic[index].policy]
    assert isinstance(policy, FlowPolicy), f"{policy.kind} has no step"
    assert isinstance(policy.step, Step), f"{policy.step} is no fixed step"
    return policy.step.value


def _feedback(
    scenario: Scenario,
    delays: PathDelays,
    wanted: Demand,
    point: OperatingPoint,
    names: tuple[str, str],
    lines: list[int],
    steps: Sequence[float | None],
    edges: tuple[Edge, Edge],
) -> Feedback:
    policy = scenario.policies[names[1]]
    step = _mean_step(steps, lines, wanted.rates_per_s)
    weights = point.shares[lines] * wanted.rates_per_s[lines][:, None]
    weights = np.where(point.shares[lines] > USED, weights, 0.0) / weights.sum()
    weights /= weights.sum()
    loop_delays_s = np.array(
        [
            [loop_delay_s(scenario, delays, wanted.lines[i][0], cell, policy) for cell in wanted.cells]
            for i in lines
        ]
    )
    used = weights > 0.0
    of_cells = weights.sum(axis=0)
    return Feedback(
        *names,
        float((weights[used] * loop_delays_s[used]).sum()),
        float(of_cells @ [cell.sojourn_s for cell in point.cells]),
        float(of_cells @ [cell.a_per_s for cell in point.cells]),
        _flow_step(scenario, policy, step, edges)
        if isinstance(policy, FlowPolicy) and step is not None
        else None,
    )


def _flow_step(scenario: Scenario, policy: FlowPolicy, step: float, edges: tuple[Edge, Edge]) -> FlowStep:
    of_work, memoryless = edges
    return FlowStep(
        Step(step, policy.step_unit),
        step * of_work.gain,
        step * memoryless.gain,
        of_work.period_s,
        interval_s(scenario, policy),
    )


def _mean_step(steps: Sequence[float | None], lines: list[int], weights: Floats) -> float | None:
    """Over the lines that move shares, by requests; None where none does."""
    known = [(step, float(weights[i])) for i in lines if (step := steps[i]) is not None]
    total = sum(weight for _, weight in known)
    return sum(step * weight for step, weight in known) / total if total > 0.0 else None


def is_memoryless_enough(flow: FlowStep) -> bool:
    """Whether the critical step for the scenario's work is near that of memoryless work, within a tenth."""
    if not math.isfinite(flow.critical_memoryless):
        return True
    return abs(flow.critical / flow.critical_memoryless - 1.0) <= 0.1
