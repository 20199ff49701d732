"""How late is too late: the limits of the verdict, and the words for what lies beyond them.

Source: the rule that a run is invalid where the 99th percentile of its lateness exceeds a tenth of the smallest delay or
period that it is about, with a floor; and suspect at half of that.
"""

from __future__ import annotations

from typing import NamedTuple

from testbed.scenario.fault_plan import fault_plan, link_effects
from testbed.scenario.policy_words import FlowPolicy
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import Topology, leaf_policy, reads_reports, reports_of

LATENESS_FLOOR_S = 0.002
LATENESS_FRACTION = 0.1
STALL_FLOOR_S = 0.1
STALL_FRACTION = 0.5
SUSPECT_FRACTION = 0.5

WORDS = ("valid", "suspect", "invalid", "incomplete")


class Finding(NamedTuple):
    """Something that speaks against a run: how gravely, a sentence with its numbers and what to try, of which check."""

    word: str
    reason: str
    check: str


def lateness_limit_s(scenario: Scenario, topology: Topology) -> float:
    """The p99 of lateness that makes a run invalid, wall time."""
    return max(
        LATENESS_FLOOR_S, LATENESS_FRACTION * smallest_duration_s(scenario, topology) * scenario.time_scale
    )


def stall_limit_s(loop_delay_wall_s: float) -> float:
    """The stall that makes a run invalid, wall time; the floor where the loop delay is unknown (NaN)."""
    half_s = STALL_FRACTION * loop_delay_wall_s
    return half_s if half_s > STALL_FLOOR_S else STALL_FLOOR_S


def smallest_duration_s(scenario: Scenario, topology: Topology) -> float:
    """The smallest configured delay above 0, report period or interval of a policy, scenario time."""
    effects = link_effects(topology, fault_plan(scenario, topology))
    delays = [effect.delay_s for variants in effects.values() for effect in variants]
    periods = [reports_of(scenario, cell).every for cell in scenario.cells]
    periods += [
        words.server_reports.every
        for cell, words in scenario.cells.items()
        if reads_reports(leaf_policy(scenario, cell))
    ]
    flows = [policy for policy in scenario.policies.values() if isinstance(policy, FlowPolicy)]
    periods += [flow.interval for flow in flows if flow.interval is not None]
    return min(each for each in (*delays, *periods) if each > 0)


def graded(value: float, limit: float) -> str:
    """The word for a figure against its limit; empty when there is nothing to say, as for NaN."""
    if value > limit:
        return "invalid"
    return "suspect" if value > limit * SUSPECT_FRACTION else ""


def exceeded(word: str, limit: float) -> float:
    """The limit that a figure exceeded: the whole or, for a suspect run, its half."""
    return limit if word == "invalid" else limit * SUSPECT_FRACTION
