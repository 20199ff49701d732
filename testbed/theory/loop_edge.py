"""The edge of stability of a whole scenario: the factor on all steps at which its shares begin to oscillate."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from testbed.scenario.policy_words import FlowPolicy
from testbed.scenario.schema import Scenario
from testbed.serving.delayed_loop import CellResponse, Edge, Floats
from testbed.theory.loop_delay import observation_age_s, request_delay_s
from testbed.theory.operating_point import CellState, Demand, OperatingPoint
from testbed.theory.path_delays import PathDelays
from testbed.theory.stability import Source, critical_factor
from testbed.traffic.work_transform import cell_transform

USED = 1e-3  # a share below this is no part of a root's choice at the optimum


def cost_slope(policy: FlowPolicy, cell: CellState) -> float:
    """d cost / d in flight of a cell, for the policy's cost; per request, in the unit of the cost."""
    if policy.cost == "marginal":
        return cell.sigma_s
    if policy.cost == "latency":
        return cell.curve.latency_s(1.0) - cell.curve.latency_s(0.0)
    return 1.0 if policy.cost == "in_flight" else 1.0 / cell.capacity_per_s


def loop_edges(
    scenario: Scenario,
    delays: PathDelays,
    wanted: Demand,
    point: OperatingPoint,
    steps: Sequence[float | None],
) -> tuple[Edge, Edge]:
    """The factor on all steps at the edge, for the scenario's work and for memoryless work.

    `steps` are those of the lines of traffic, in the order of `wanted.lines`; None for a line that moves no shares.
    """
    sources = sources_of(scenario, delays, wanted, point, steps)
    responses = responses_of(scenario, wanted, point)
    memoryless = critical_factor([response._replace(transform=None) for response in responses], sources)
    return critical_factor(responses, sources), memoryless


def responses_of(scenario: Scenario, wanted: Demand, point: OperatingPoint) -> list[CellResponse]:
    """How each cell answers its arrivals at an operating point."""
    rates = point.shares * wanted.rates_per_s[:, None]
    responses = []
    for j, cell in enumerate(point.cells):
        arriving = float(rates[:, j].sum())
        shares = {
            line: float(rates[i, j]) / arriving for i, line in enumerate(wanted.lines) if arriving > 0.0
        }
        transform = cell_transform(scenario, cell.cell, shares)
        responses.append(CellResponse(cell.a_per_s, cell.sojourn_s, transform))
    return responses


def sources_of(
    scenario: Scenario,
    delays: PathDelays,
    wanted: Demand,
    point: OperatingPoint,
    steps: Sequence[float | None],
) -> list[Source]:
    """The lines that move their shares; a line to which no report comes never moves."""
    sources = []
    for i, ((root, index), step) in enumerate(zip(wanted.lines, steps, strict=True)):
        policy = scenario.policies[scenario.roots[root].traffic[index].policy]
        if not isinstance(policy, FlowPolicy) or step is None:
            continue
        travel_s: Floats = np.array([request_delay_s(delays, root, cell, policy) for cell in wanted.cells])
        age_s = np.array([observation_age_s(scenario, delays, root, cell, policy) for cell in wanted.cells])
        support = (point.shares[i] > USED) & np.isfinite(age_s)
        slope = np.array([cost_slope(policy, cell) for cell in point.cells])
        gain = float(wanted.rates_per_s[i]) * step
        sources.append(Source(gain, slope, travel_s, np.where(support, age_s, 0.0), support))
    return sources
