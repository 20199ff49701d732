"""What `testbed check` says of how a scenario will work: load, loops, decisions of `dlb`, steps, warnings."""

from __future__ import annotations

import math

from testbed.console.section import Row, Section
from testbed.routing.discrete_or_flow import Decision
from testbed.scenario.policy_words import DlbPolicy
from testbed.scenario.quantity import format_s
from testbed.theory.caution import cautions
from testbed.theory.feedback import Feedback, FlowStep
from testbed.theory.line_step import line_decision
from testbed.theory.operating_point import (
    CellState,
)
from testbed.theory.resolved_arm import ResolvedArm


def load_section(arm: ResolvedArm) -> Section:
    """How the cells are loaded, by capacity and at the optimum."""
    rows = [
        (word, *_load_row(cell))
        for word, point in (("by capacity", arm.by_capacity), ("optimum", arm.optimum))
        for cell in point.cells
    ]
    columns = ("split", "cell", "rate", "capacity", "share", "rho_cap", "rho", "N", "W")
    capacity = sum(cell.capacity_per_s for cell in arm.optimum.cells)
    offered = float(arm.wanted.rates_per_s.sum())
    share = offered / capacity if capacity > 0.0 else math.inf
    note = (
        f"offered {offered:.4g} /s, {share:.3g} of the capacity of all cells, at mean rates;"
        " rho_cap = rate / capacity, rho = rate * beta / servers, N in flight, W sojourn in the cell"
    )
    return Section("Load", columns, tuple(rows), note)


def _load_row(cell: CellState) -> Row:
    is_full = math.isinf(cell.in_flight)
    return (
        cell.cell,
        f"{cell.rate_per_s:.4g} /s",
        f"{cell.capacity_per_s:.4g} /s",
        f"{cell.share:.3f}",
        f"{cell.of_capacity:.3f}",
        f"{cell.utilisation:.3f}",
        "grows" if is_full else f"{cell.in_flight:.4g}",
        "grows" if is_full else format_s(cell.sojourn_s),
    )


def loops_section(arm: ResolvedArm) -> Section:
    """The delays of the loops against the time in the cells."""
    if not arm.optimum.is_sustained:
        return Section("Loops", (), (("a cell is asked for more than it can carry: no operating point",),))
    rows = tuple(_loop_row(loop) for loop in arm.loops)
    columns = ("class", "policy", "loop delay T", "sojourn W", "T/W", "aT")
    note = "at the optimum and mean rates; a is the marginal service rate of the cells"
    return Section("Loops", columns, rows, note if rows else "")


def _loop_row(loop: Feedback) -> Row:
    delay_s = loop.loop_delay_s
    if math.isinf(delay_s):
        return loop.class_name, loop.policy, "no report arrives", format_s(loop.sojourn_s), "", ""
    return (
        loop.class_name,
        loop.policy,
        format_s(delay_s),
        format_s(loop.sojourn_s),
        f"{delay_s / loop.sojourn_s:.3g}",
        f"{loop.a_per_s * delay_s:.3g}",
    )


def modes_section(arm: ResolvedArm) -> Section:
    """What `dlb` decides, one row for all lines of a class that decide alike."""
    rows: dict[Row, None] = {}
    for i, (root, index) in enumerate(arm.wanted.lines):
        line = arm.scenario.roots[root].traffic[index]
        policy = arm.scenario.policies[line.policy]
        if isinstance(policy, DlbPolicy) and arm.optimum.is_sustained:
            decision = line_decision(arm.scenario, arm.delays, arm.wanted, arm.optimum, i)
            rows[(line.class_, line.policy, *_mode_words(policy, decision))] = None
    columns = ("class", "policy", "routing", "decisions within T", "discrete up to")
    note = "decisions of all roots for the class within one loop delay; discrete up to sqrt(3 Lambda / a)"
    return Section("Discrete or flow", columns, tuple(rows), note if rows else "")


def _mode_words(policy: DlbPolicy, decision: Decision | None) -> Row:
    if decision is None:
        return "flow" if policy.mode == "auto" else f"{policy.mode} (forced)", "no report arrives", ""
    chosen = "discrete" if decision.is_discrete else "flow"
    word = chosen if policy.mode == "auto" else f"{policy.mode} (forced; auto: {chosen})"
    return word, f"{decision.decisions:.3g}", f"{decision.most:.3g}"


def steps_section(arm: ResolvedArm) -> Section:
    """The steps of flow routing against the critical ones."""
    rows = tuple(_step_row(loop, loop.flow) for loop in arm.loops if loop.flow is not None)
    columns = (
        "class",
        "policy",
        "step",
        "critical",
        "step / critical",
        "period there",
        "interval",
        "product",
    )
    note = (
        "critical: all flow steps raised together until shares oscillate, for the work of the scenario;"
        " product: step * interval"
    )
    return Section("Steps of flow routing", columns, rows, note if rows else "")


def _step_row(loop: Feedback, flow: FlowStep) -> Row:
    unit = flow.step.unit
    oscillates = math.isfinite(flow.critical)
    product = f"{flow.step.value * flow.interval_s:.3g}"
    return (
        loop.class_name,
        loop.policy,
        f"{flow.step.value:.3g} {unit}",
        f"{flow.critical:.3g} {unit}" if oscillates else "none",
        f"{flow.fraction:.3g}",
        format_s(flow.period_s) if oscillates else "none",
        format_s(flow.interval_s),
        f"{product} /s" if unit == "/s^2" else product,
    )


def cautions_section(arm: ResolvedArm) -> Section:
    """What is to be feared."""
    found = cautions(
        arm.scenario,
        arm.topology,
        arm.delays,
        arm.wanted,
        arm.optimum,
        arm.loops,
        planned=arm.plan.requests,
        cores=arm.cores,
    )
    return Section("Warnings", (), tuple((text,) for text in found))
