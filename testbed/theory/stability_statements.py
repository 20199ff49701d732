"""What the theory says of stability: critical steps, their discrete form, the design rule, and damping."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from testbed.scenario.policy_words import FlowPolicy
from testbed.scenario.quantity import format_s
from testbed.theory.damping import slowest_mode
from testbed.theory.discrete import critical_held_gain
from testbed.theory.feedback import Feedback, FlowStep, acts_on_reports, is_memoryless_enough
from testbed.theory.ground import Ground
from testbed.theory.loop_edge import USED, cost_slope, responses_of, sources_of
from testbed.theory.rule_nine import rule_nine_factor
from testbed.theory.statement import Statement

CRITICAL = "critical step"
_ASSUMES = (
    "the optimum is interior and all that move follow it by small steps",
    "mean rates and delays, no noise",
)


def stability_statements(ground: Ground) -> Iterator[Statement]:
    """Of every flow policy; a refusal for every other."""
    for name in dict.fromkeys(ground.policy(i) for i in range(len(ground.wanted.lines))):
        if not isinstance(ground.scenario.policies[name], FlowPolicy):
            yield Statement(
                "stability", CRITICAL, name,
                refused_because=f"{name} chooses request by request: there is no step, and no claim of stability",
            )  # fmt: skip
    for loop in ground.loops:
        if loop.flow is not None:
            why = _no_stability(ground, loop)
            if why:
                yield Statement("stability", CRITICAL, _whose(loop), refused_because=why)
            else:
                yield from _steps(ground, loop, loop.flow)


def _whose(loop: Feedback) -> str:
    return f"{loop.class_name} by {loop.policy}"


def _no_stability(ground: Ground, loop: Feedback) -> str:
    """Why the linear loop does not speak for a policy; empty if it does."""
    scenario, wanted = ground.scenario, ground.wanted
    if scenario.faults:
        return "faults move the optimum or the delays during the run"
    for i in range(len(wanted.lines)):
        name = ground.policy(i)
        policy = scenario.policies[name]
        if acts_on_reports(policy) and not isinstance(policy, FlowPolicy):
            return f"{name} reacts to the same cells, and has no linear answer"
        unused = [
            cell
            for cell, share, allowed in zip(
                wanted.cells, ground.optimum.shares[i], wanted.allowed[i], strict=True
            )
            if allowed and share <= USED
        ]
        if name == loop.policy and unused:
            return f"the optimum of {ground.name(i)} leaves {', '.join(unused)} unused: it is on the boundary, not interior"
    return ""


def _steps(ground: Ground, loop: Feedback, flow: FlowStep) -> Iterator[Statement]:
    unit = flow.step.unit
    if math.isinf(flow.critical):
        yield Statement(
            "stability",
            CRITICAL,
            _whose(loop),
            "none: without a delay or a choice nothing oscillates",
            _ASSUMES,
        )
        return
    memoryless = is_memoryless_enough(flow)
    alike = "equation (5)" if not ground.not_alike() else "the loop through all cells and roots"
    work = (
        f"memoryless work: {alike}"
        if memoryless
        else "work of the classes: the general loop of shared servers"
    )
    figures = {"critical_step": flow.critical, "period_s": flow.period_s, "fraction": flow.fraction}
    yield Statement(
        "stability", CRITICAL, _whose(loop),
        f"{flow.critical:.3g} {unit}, period there {format_s(flow.period_s)}; the step is {flow.fraction:.3g} of it",
        (*_ASSUMES, work, "all steps grow together"), figures=figures,
    )  # fmt: skip
    factor = _rule_nine(ground)
    yield Statement(
        "stability", "step by rule (9)", _whose(loop), f"{factor * flow.step.value:.3g} {unit}",
        ("sufficient in every instance tried; proven for equal delays and slow cells", "memoryless work"),
        figures={"step": factor * flow.step.value},
    )  # fmt: skip
    yield _held(ground, loop, flow)
    yield _damping(ground, loop, flow)


def _rule_nine(ground: Ground) -> float:
    sources = sources_of(ground.scenario, ground.delays, ground.wanted, ground.optimum, ground.steps)
    return rule_nine_factor(
        np.array([cell.a_per_s for cell in ground.optimum.cells]),
        np.array([source.slope for source in sources]),
        np.array([source.gain for source in sources]),
        np.array([np.where(source.support, source.travel_s + source.age_s, 0.0) for source in sources]),
    )


def _held(ground: Ground, loop: Feedback, flow: FlowStep) -> Statement:
    """The discrete form, for equal cells at equal delays that all roots update at the same interval."""
    what, whose = "critical step in updates (8)", _whose(loop)
    why = ground.not_alike()
    held = flow.interval_s
    delay = round(loop.loop_delay_s / held) - 1
    policies = {ground.policy(i) for i in range(len(ground.wanted.lines))}
    if not why and policies != {loop.policy}:
        why = "other policies share the cells"
    if not why and not is_memoryless_enough(flow):
        why = "the work is not memoryless"
    if not why and delay < 0:
        why = f"an update stands for {format_s(held)}, more than the loop delay: every cost is used once, and fresh"
    if why:
        return Statement("stability", what, whose, refused_because=why)
    cell = ground.optimum.cells[0]
    policy = ground.scenario.policies[loop.policy]
    assert isinstance(policy, FlowPolicy), "only flow has a step"
    edge = critical_held_gain(cell.a_per_s * held, delay)
    rate = float(ground.wanted.rates_per_s.sum())
    step = edge.gain * cell.a_per_s / (rate * cost_slope(policy, cell) * held)
    return Statement(
        "stability", what, whose, f"{step:.3g} {flow.step.unit}, period there {format_s(edge.period_s * held)}",
        (
            "equal cells, equal delays, memoryless work",
            f"costs {delay + 1} intervals old when used (T / interval is {loop.loop_delay_s / held:.3g})",
        ),
        figures={"critical_step": step, "period_s": edge.period_s * held, "delay_updates": delay},
    )  # fmt: skip


def _damping(ground: Ground, loop: Feedback, flow: FlowStep) -> Statement:
    what, whose = "damping at its step", _whose(loop)
    if not is_memoryless_enough(flow):
        return Statement(
            "stability", what, whose, refused_because="the work is not memoryless: cells answer with a memory"
        )
    mode = slowest_mode(
        responses_of(ground.scenario, ground.wanted, ground.optimum),
        sources_of(ground.scenario, ground.delays, ground.wanted, ground.optimum, ground.steps),
    )
    if mode is None:
        return Statement(
            "stability",
            what,
            whose,
            refused_because="nothing moves, or too many lines and cells for its matrix",
        )
    grows = mode.growth_per_s > 0.0
    swing = (
        f"with a period of {format_s(mode.period_s)}" if mode.frequency_per_s > 0.0 else "without oscillation"
    )
    return Statement(
        "stability", what, whose,
        f"a disturbance {'grows' if grows else 'shrinks'} e-fold in {format_s(mode.fold_s)}, {swing};"
        f" damping ratio {mode.damping_ratio:.2g}",
        (*_ASSUMES, "memoryless work", "updates as frequent as one likes"),
        figures={
            "growth_per_s": mode.growth_per_s,
            "frequency_per_s": mode.frequency_per_s,
            "damping_ratio": mode.damping_ratio,
        },
    )  # fmt: skip
