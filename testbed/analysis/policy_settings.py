"""What the policies of the roots were set to in an arm."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from testbed.analysis.loop_delay import PairDelay, overall_loop_delay_s
from testbed.analysis.records import Floats, Table, Tables, Window, mean, row_count, rows
from testbed.scenario.policy_words import FlowPolicy
from testbed.scenario.quantity import Step
from testbed.scenario.schema import Scenario, Traffic
from testbed.scenario.topology import reports_of

Json = dict[str, Any]


def policy_settings(scenario: Scenario, tables: Tables, pairs: list[PairDelay], window: Window) -> Json:
    """What the roots' policies were set to, in all and per class; null where lines of traffic differ."""
    updates = tables.get("updates", {})
    lines = [(line, root) for root, spec in scenario.roots.items() for line in spec.traffic]
    classes = {
        name: {
            **_settings(
                scenario, [line for line, _ in lines if line.class_ == name], _of_class(updates, name), window
            ),
            "loop_delay_s": overall_loop_delay_s([pair for pair in pairs if pair.class_name == name]),
        }
        for name in dict.fromkeys(line.class_ for line, _ in lines)
    }
    return {
        **_settings(scenario, [line for line, _ in lines], updates, window),
        "loop_delay_s": overall_loop_delay_s(pairs),
        "classes": classes,
    }


def _of_class(updates: Table, name: str) -> Table:
    return rows(updates, updates["class"] == name) if row_count(updates) else {}


def _settings(scenario: Scenario, lines: list[Traffic], updates: Table, window: Window) -> Json:
    names = {line.policy for line in lines}
    policy = scenario.policies[next(iter(names))] if len(names) == 1 else None
    is_flow = isinstance(policy, FlowPolicy)
    step = _step(policy, updates, window) if isinstance(policy, FlowPolicy) else math.nan
    interval_s = (
        _interval_s(scenario, policy, updates, window) if isinstance(policy, FlowPolicy) else math.nan
    )
    return {
        "name": next(iter(names)) if len(names) == 1 else None,
        "kind": policy.kind if policy is not None else None,
        "step": step,
        "step_unit": policy.step_unit if isinstance(policy, FlowPolicy) else None,
        "interval_s": interval_s,
        "product": step * interval_s,
        "cost_clipped_fraction": _clipped_fraction(updates, window) if is_flow else math.nan,
    }


def _step(policy: FlowPolicy, updates: Table, window: Window) -> float:
    """The step as configured; where it is derived in the run, its mean over the updates."""
    if isinstance(policy.step, Step):
        return policy.step.value
    return mean(updates["step"][window.holds(updates["used_at_s"])]) if row_count(updates) else math.nan


def _interval_s(scenario: Scenario, policy: FlowPolicy, updates: Table, window: Window) -> float:
    """Mean interval that the updates stood for, or the configured one where there were none."""
    configured = policy.interval
    if configured is None:
        configured = float(np.mean([reports_of(scenario, cell).every for cell in scenario.cells]))
    if not row_count(updates):
        return configured
    intervals: Floats = updates["interval_s"][window.holds(updates["used_at_s"])]
    measured = mean(intervals)
    return measured if math.isfinite(measured) else configured


def _clipped_fraction(updates: Table, window: Window) -> float:
    """Share of the costs in updates that were cut at their ceiling."""
    if not row_count(updates):
        return math.nan
    inside = window.holds(updates["used_at_s"]) & updates["allowed"].astype(bool)
    return mean(updates["clipped"][inside].astype(np.float64))
