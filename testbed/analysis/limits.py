"""How late is too late: the limits of the verdict, and the words for what lies beyond them.

Source: the rule that a run is invalid where the 99th percentile of its lateness exceeds a tenth of the smallest delay or
period that it is about, with a floor; and suspect at half of that.

Lateness distorts a run in the scenario's own time. So at a time scale above 1, where the same experiment goes by a slower
clock, the floor of a limit grows with the scale as its other side does: of two runs, the one that is later in scenario
time is never the one that is let through. Below 1 the floor stays, as what a host can do at all.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from testbed.scenario.fault_plan import fault_plan, link_effects
from testbed.scenario.policy_words import FlowPolicy, ImitationPolicy, Policy, WeightedUtilisationPolicy
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import Topology, leaf_policy, reads_reports, reports_of
from testbed.scenario.view_words import ViewWords

LATENESS_FLOOR_S = 0.002
LATENESS_FRACTION = 0.1
STALL_FLOOR_S = 0.1
STALL_FRACTION = 0.5
SUSPECT_FRACTION = 0.5

WORDS = ("valid", "suspect", "invalid", "incomplete")


class Finding(NamedTuple):
    """Something that speaks against a run.

    Attributes:
        word: how gravely.
        reason: a sentence with its numbers and what to try.
        check: of which.
        least_scale: the least time scale at which it would be nothing to speak of; NaN: not a matter of that.
    """

    word: str
    reason: str
    check: str
    least_scale: float = math.nan


class Limit(NamedTuple):
    """What makes a run invalid, at any time scale.

    Attributes:
        floor_s: wall time, at a time scale of 1 or less.
        part_s: of the duration that is distorted, scenario time; 0: unknown, and the floor is the limit.
    """

    floor_s: float
    part_s: float

    def at(self, time_scale: float) -> float:
        """The limit, wall time."""
        return max(self.floor_s * max(1.0, time_scale), self.part_s * time_scale)

    def least_scale(self, late_s: float, from_scale: float) -> float:
        """The least time scale, from this one on, at which so much lateness of the clock is at most half of the limit."""
        if late_s <= SUSPECT_FRACTION * self.at(from_scale):
            return from_scale
        due_s = late_s / SUSPECT_FRACTION  # which the limit has to become
        by_part = due_s / self.part_s if self.part_s else math.inf
        return by_part if by_part < 1.0 else due_s / max(self.floor_s, self.part_s)


def lateness_limit(scenario: Scenario, topology: Topology) -> Limit:
    """Of the p99 of lateness, injection error, server step error and slip."""
    return Limit(LATENESS_FLOOR_S, LATENESS_FRACTION * smallest_duration_s(scenario, topology))


def lateness_limit_s(scenario: Scenario, topology: Topology) -> float:
    """The p99 of lateness that makes a run of this scenario invalid, wall time."""
    return lateness_limit(scenario, topology).at(scenario.time_scale)


def stall_limit(loop_delay_s: float) -> Limit:
    """Of a stall, the lag of a timer and the latency of a fault; the loop delay is in scenario time, NaN where unknown."""
    return Limit(STALL_FLOOR_S, STALL_FRACTION * loop_delay_s if math.isfinite(loop_delay_s) else 0.0)


STALL_FLOOR = Limit(STALL_FLOOR_S, 0.0)  # of a stall, whatever the loop delay


def round_scale(least: float, from_scale: float) -> float:
    """The time scale to run at: the present one where that is enough, else the next power of two.

    Only such scales leave a run under virtual time the same to the bit.
    """
    if least <= from_scale or not math.isfinite(least):
        return max(least, from_scale)
    return float(2.0 ** math.ceil(math.log2(least)))


def smallest_duration_s(scenario: Scenario, topology: Topology) -> float:
    """The smallest configured delay above 0, or period of what is in use, scenario time.

    Periods are those of reports, of updates of shares and weights, of health checks and of autoscalers; a delay is that of
    a link, also under a fault, or the time that a decision takes.
    """
    effects = link_effects(topology, fault_plan(scenario, topology))
    delays = [effect.delay_s for variants in effects.values() for effect in variants]
    periods = [reports_of(scenario, cell).every for cell in scenario.cells]
    periods += [
        words.server_reports.every
        for cell, words in scenario.cells.items()
        if reads_reports(leaf_policy(scenario, cell))
    ]
    checks = [root.health_checks for root in scenario.roots.values()]
    checks += [words.leaf.health_checks for words in scenario.cells.values()]
    periods += [each.every for each in checks if each is not None]
    periods += [words.autoscaler.every for words in scenario.cells.values() if words.autoscaler is not None]
    for policy in _policies_in_use(scenario):
        periods += _periods(policy)
        if isinstance(policy, ViewWords):
            delays.append(policy.decision_time)
    return min(each for each in (*delays, *periods) if each > 0)


def _policies_in_use(scenario: Scenario) -> list[Policy]:
    """Those of the traffic and of the leaves; a file may have others, which change nothing."""
    names = dict.fromkeys(line.policy for root in scenario.roots.values() for line in root.traffic)
    return [
        *(scenario.policies[name] for name in names),
        *(leaf_policy(scenario, cell) for cell in scenario.cells),
    ]


def _periods(policy: Policy) -> list[float]:
    """Between updates of its shares or weights; none where every report makes one, or it goes by the reports' period."""
    if isinstance(policy, WeightedUtilisationPolicy):
        return [policy.every]
    if isinstance(policy, ImitationPolicy) or (isinstance(policy, FlowPolicy) and not policy.is_on_report):
        return [] if policy.interval is None else [policy.interval]
    return []


def graded(value: float, limit: float) -> str:
    """The word for a figure against its limit; empty when there is nothing to say, as for NaN."""
    if value > limit:
        return "invalid"
    return "suspect" if value > limit * SUSPECT_FRACTION else ""


def exceeded(word: str, limit: float) -> float:
    """The limit that a figure exceeded: the whole or, for a suspect run, its half."""
    return limit if word == "invalid" else limit * SUSPECT_FRACTION
