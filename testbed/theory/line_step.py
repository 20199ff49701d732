"""The step of every line of traffic, however the scenario gives it: absolute, relative to the critical one, or auto.

A multiple of the critical step is worked out before a run, at the load that stands beside it: all lines of traffic
grow or shrink together until they make up that share of the capacity, and all that move shares take one step. An
`auto` step is predicted by the rule that a root follows as it runs, from the rates and delays of the scenario.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from testbed.errors import UsageError
from testbed.routing.discrete_or_flow import Decision, decide
from testbed.routing.step_rule import Loop, derive_step, relaxation_per_s, utilisation
from testbed.scenario.policy_words import CriticalStep, DlbPolicy, FlowPolicy
from testbed.scenario.quantity import Step
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import build_topology
from testbed.theory.loop_delay import loop_delay_s
from testbed.theory.loop_edge import loop_edges
from testbed.theory.operating_point import Demand, OperatingPoint, at_capacity_split, at_optimum, demand
from testbed.theory.path_delays import PathDelays
from testbed.traffic.capacity import cell_curve, line_means
from testbed.traffic.work_transform import cell_transform


def with_steps(scenario: Scenario) -> Scenario:
    """The scenario with every step that is a multiple of the critical one made absolute.

    Args:
        scenario: in scenario time.

    Raises:
        UsageError: there is no critical step at the load given.
        RunError: a trace is missing or malformed.
    """
    relative = {
        name: policy
        for name, policy in scenario.policies.items()
        if isinstance(policy, FlowPolicy) and isinstance(policy.step, CriticalStep)
    }
    if not relative:
        return scenario
    delays = PathDelays(build_topology(scenario))
    wanted = demand(scenario, delays)
    policies = dict(scenario.policies)
    for name, policy in relative.items():
        assert isinstance(policy.step, CriticalStep), "only those are relative"
        critical = _critical_step(scenario, delays, wanted, name, policy.step.load)
        step = Step(policy.step.critical * critical, policy.step_unit)
        policies[name] = policy.model_copy(update={"step": step})
    return scenario.model_copy(update={"policies": policies})


def line_steps(
    scenario: Scenario, delays: PathDelays, wanted: Demand, point: OperatingPoint
) -> list[float | None]:
    """The step of each line of traffic at an operating point, in the order of `wanted.lines`.

    None for a line that moves no shares: another policy, or `dlb` in discrete routing.
    """
    return [_line_step(scenario, delays, wanted, point, i) for i in range(len(wanted.lines))]


def line_decision(
    scenario: Scenario, delays: PathDelays, wanted: Demand, point: OperatingPoint, i: int
) -> Decision | None:
    """What `dlb` decides for a line of traffic at an operating point; None for other policies, and without reports."""
    root, index = wanted.lines[i]
    line = scenario.roots[root].traffic[index]
    if not isinstance(scenario.policies[line.policy], DlbPolicy):
        return None
    loops = _loops(scenario, delays, wanted, i)
    rate_per_s = sum(
        float(rate)
        for (other, k), rate in zip(wanted.lines, wanted.rates_per_s, strict=True)
        if scenario.roots[other].traffic[k].class_ == line.class_
    )
    if not loops or rate_per_s <= 0.0:
        return None
    busy = utilisation(loops, _arriving_per_s(wanted, point, i))
    a_per_s = sum(relaxation_per_s(loop.class_curve, busy) for loop in loops) / len(loops)
    return decide(rate_per_s, sum(loop.loop_delay_s for loop in loops) / len(loops), a_per_s)


def _critical_step(scenario: Scenario, delays: PathDelays, wanted: Demand, name: str, load: float) -> float:
    capacity = sum(cell.capacity_per_s for cell in at_capacity_split(wanted).cells)
    total = float(wanted.rates_per_s.sum())
    if not capacity > 0.0 or not total > 0.0:
        raise UsageError(f"policies.{name}.step: there is no traffic or no capacity to take a load of")
    loaded = replace(wanted, rates_per_s=wanted.rates_per_s * (load * capacity / total))
    point = at_optimum(loaded)
    if not point.is_sustained:
        raise UsageError(
            f"policies.{name}.step.load: at {load:g} a cell is asked for more than it can carry;"
            " accepted: a lower load, or an absolute step"
        )
    edge, _ = loop_edges(scenario, delays, loaded, point, [1.0] * len(wanted.lines))
    if math.isinf(edge.gain):
        raise UsageError(
            f"policies.{name}.step: nothing oscillates at load {load:g}, so there is no critical step;"
            " accepted: an absolute step"
        )
    return edge.gain


def _line_step(
    scenario: Scenario, delays: PathDelays, wanted: Demand, point: OperatingPoint, i: int
) -> float | None:
    root, index = wanted.lines[i]
    policy = scenario.policies[scenario.roots[root].traffic[index].policy]
    if not isinstance(policy, FlowPolicy):
        return None
    if isinstance(policy, DlbPolicy) and policy.mode != "flow":
        decision = line_decision(scenario, delays, wanted, point, i)
        if policy.mode == "discrete" or (decision is not None and decision.is_discrete):
            return None
    if isinstance(policy.step, Step):
        return policy.step.value
    assert policy.step == "auto", f"{policy.step} has to be resolved first"
    loops = _loops(scenario, delays, wanted, i)
    rate_per_s = _arriving_per_s(wanted, point, i)
    floor = 0.0 if policy.step_floor is None else policy.step_floor.value
    ceiling = math.inf if policy.step_ceiling is None else policy.step_ceiling.value
    if not loops or not rate_per_s > 0.0:
        return floor
    return min(max(derive_step(loops, rate_per_s, policy.cost).step, floor), ceiling)


def _arriving_per_s(wanted: Demand, point: OperatingPoint, i: int) -> float:
    """What comes from all roots to the cells that a line may use."""
    return float((point.shares * wanted.rates_per_s[:, None])[:, wanted.allowed[i]].sum())


def _loops(scenario: Scenario, delays: PathDelays, wanted: Demand, i: int) -> list[Loop]:
    """The cells that a line may use as its root sees them; none unless all of them report."""
    root, index = wanted.lines[i]
    line = scenario.roots[root].traffic[index]
    policy = scenario.policies[line.policy]
    mine = [k for k, (other, _) in enumerate(wanted.lines) if other == root]
    total = float(wanted.rates_per_s[mine].sum())
    shares = {wanted.lines[k]: float(wanted.rates_per_s[k]) / total for k in mine if total > 0.0}
    loops = [
        Loop(
            float(wanted.servers[j]),
            wanted.curves[i][j],
            cell_curve(scenario, cell, *line_means(scenario, line)),
            cell_transform(scenario, cell, shares),
            loop_delay_s(scenario, delays, root, cell, policy),
        )
        for j, cell in enumerate(wanted.cells)
        if wanted.allowed[i, j]
    ]
    return loops if np.isfinite([loop.loop_delay_s for loop in loops]).all() else []
