"""The bound on the time mean of F - F* for delayed projected gradient steps.

    (1/K) sum_k (F(x_k) - F*) <= sum_i lambda_i |x_i0 - x_i*|^2 / (2 eta_i dt_i K)
                                 + sum_i dt_i (d_i + 1/2) lambda_i eta_i G_i^2

with K updates of the interval dt_i that use costs d_i updates old, and G_i the largest norm of a line's centred
gradient. It is proven for a cost that depends on the rate alone, fixed delays and rates, and convex F; elsewhere it is
a conjecture, and `conjecture_because` says why. There is none for policies that choose request by request.

Source: measures.md, section 3.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from testbed.scenario.policy_words import FlowPolicy
from testbed.scenario.quantity import Step
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import build_topology
from testbed.theory.feedback import interval_s, step_of
from testbed.theory.loop_delay import loop_delay_s
from testbed.theory.operating_point import Demand, Floats, OperatingPoint, at_optimum, demand
from testbed.theory.path_delays import PathDelays
from testbed.theory.static_split import split_by


class SteppedLine(NamedTuple):
    """One line of traffic whose shares move by gradient steps.

    Attributes:
        rate_per_s: lambda.
        step_per_s2: eta, for a cost in seconds.
        interval_s: dt, between its updates.
        delay_updates: d, the age of the costs that an update uses, in intervals.
        start: its shares at the beginning, shape (cells,).
        optimum: its shares at the optimum.
        gradient_norm_s: G, the largest norm of its centred gradient (see `centred_norm`).
    """

    rate_per_s: float
    step_per_s2: float
    interval_s: float
    delay_updates: float
    start: Floats
    optimum: Floats
    gradient_norm_s: float


class DeviationBound(NamedTuple):
    """The bound on the time mean of (F - F*)/F* of a scenario; `fraction` is None where there is none.

    Attributes:
        fraction: of F*.
        from_start: the part of it that the distance of the start makes, which falls as 1/time.
        from_steps: the part that the size of the steps makes, which stays.
        conjecture_because: what the proof needs and the scenario has not; empty: proven.
        refused_because: why there is no bound; empty where there is one.
    """

    fraction: float | None
    from_start: float = math.nan
    from_steps: float = math.nan
    conjecture_because: tuple[str, ...] = ()
    refused_because: str = ""


def deviation_bound(
    scenario: Scenario,
    span_s: float,
    gradient_norms_s: Mapping[tuple[str, int], float],
    starts: Mapping[tuple[str, int], Sequence[float]] | None = None,
) -> DeviationBound:
    """The bound of a scenario over a stretch of time.

    Args:
        scenario: in scenario time.
        span_s: length of the stretch.
        gradient_norms_s: G of each line, (root name, index in its traffic) -> seconds; the largest `centred_norm` of
            the costs that its updates used.
        starts: shares of each line at the beginning of the stretch, over the scenario's cells; as the policy starts,
            unless given.

    Raises:
        RunError: a trace is missing or malformed.
    """
    delays = PathDelays(build_topology(scenario))
    wanted = demand(scenario, delays)
    optimum = at_optimum(wanted)
    refused = _refusal(scenario, optimum)
    if refused:
        return DeviationBound(None, refused_because=refused)
    lines = [
        _line(scenario, delays, wanted, optimum, i, gradient_norms_s, starts)
        for i in range(len(wanted.lines))
    ]
    from_start = start_term(lines, span_s) / optimum.in_system
    from_steps = step_term(lines) / optimum.in_system
    reasons = tuple(_unproven(scenario))
    return DeviationBound(from_start + from_steps, from_start, from_steps, reasons)


def start_term(lines: Sequence[SteppedLine], span_s: float) -> float:
    """sum_i lambda_i |x_i0 - x_i*|^2 / (2 eta_i dt_i K), dt_i K the span; requests."""
    return sum(
        line.rate_per_s * float(((line.start - line.optimum) ** 2).sum()) / (2 * line.step_per_s2 * span_s)
        for line in lines
    )


def step_term(lines: Sequence[SteppedLine]) -> float:
    """sum_i dt_i (d_i + 1/2) lambda_i eta_i G_i^2; requests."""
    return sum(
        line.interval_s
        * (line.delay_updates + 0.5)
        * line.rate_per_s
        * line.step_per_s2
        * line.gradient_norm_s**2
        for line in lines
    )


def centred_norm(costs_s: Floats, allowed: NDArray[np.bool_]) -> float:
    """The norm of a line's gradient over its allowed cells, less its mean there: what the projection lets through."""
    kept = costs_s[allowed]
    return float(np.linalg.norm(kept - kept.mean())) if len(kept) else 0.0


def _refusal(scenario: Scenario, optimum: OperatingPoint) -> str:
    for root, words in scenario.roots.items():
        for index, line in enumerate(words.traffic):
            policy = scenario.policies[line.policy]
            if not isinstance(policy, FlowPolicy):
                return f"{line.policy} does not move shares by gradient steps"
            if policy.cost != "marginal":
                return f"{line.policy} moves by {policy.cost}, which is not the gradient of F"
            if not isinstance(policy.step, Step):
                return f"the step of {line.policy} is not fixed"
            if step_of(scenario, root, index) <= 0.0:
                return f"the step of {line.policy} is 0"
    if not optimum.is_sustained:
        return "a cell is asked for more than it can carry: there is no optimum"
    return ""


def _unproven(scenario: Scenario) -> list[str]:
    reasons = ["the cost depends on requests in flight, not on the rate alone"]
    if scenario.faults:
        reasons.append("faults change delays or speeds")
    lines = [line for root in scenario.roots.values() for line in root.traffic]
    if any(line.stages is not None or line.trace is not None for line in lines):
        reasons.append("the rates change")
    if any(words.jitter or words.replay or words.reorder or words.rate for words in scenario.links):
        reasons.append("the delays vary")
    if any(words.loss or words.flap or words.replay for words in scenario.links):
        reasons.append("reports or requests are lost")
    return reasons


def _line(
    scenario: Scenario,
    delays: PathDelays,
    wanted: Demand,
    optimum: OperatingPoint,
    i: int,
    gradient_norms_s: Mapping[tuple[str, int], float],
    starts: Mapping[tuple[str, int], Sequence[float]] | None,
) -> SteppedLine:
    root, index = wanted.lines[i]
    policy = scenario.policies[scenario.roots[root].traffic[index].policy]
    assert isinstance(policy, FlowPolicy), "the others are refused"
    used = optimum.shares[i] > 0.0
    delay_s = max(
        loop_delay_s(scenario, delays, root, cell, policy)
        for cell, is_used in zip(wanted.cells, used, strict=True)
        if is_used
    )
    between_s = interval_s(scenario, policy)
    start = (
        split_by(policy.start, wanted, i) if starts is None else np.asarray(starts[root, index], np.float64)
    )
    return SteppedLine(
        float(wanted.rates_per_s[i]),
        step_of(scenario, root, index),
        between_s,
        delay_s / between_s,
        start,
        optimum.shares[i],
        gradient_norms_s[root, index],
    )
