"""Effective delays of the paths between roots and cells, and the loop delay that follows from them.

Source: measures.md, section 2. Faults are not considered.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from testbed.links.delay import least_delay_s, mean_delay_s, mean_loss
from testbed.scenario.policy_words import FlowPolicy, Policy
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import Effect, Topology, reports_of, root_name
from testbed.theory.report_gap import Reporter, mean_wait_s


class PathDelay(NamedTuple):
    """One-way delay of a path, over its links: mean of the means, least of the least, mean loss."""

    mean_s: float
    least_s: float
    loss: float


class PathDelays:
    """The delays of all paths of a topology, gathered in one pass over its links."""

    def __init__(self, topology: Topology) -> None:
        """Sort the links by the pair of nodes that they serve."""
        groups: dict[tuple[str, str, str], list[Effect]] = {}
        for link in topology.links:
            source, target = topology.nodes[link.source], topology.nodes[link.target]
            root = next((node.name for node in (source, target) if node.kind == "root"), "")
            cell = source.cell or target.cell
            groups.setdefault((root, cell, link.path), []).append(link.effect)
        self._delays = {key: of_effects(effects) for key, effects in groups.items()}

    def between(self, root: str, cell: str, path: str) -> PathDelay:
        """The delay between a root and the leaves of a cell on a path (`request`, `reply`, `observation`)."""
        return self._delays[root_name(root), cell, path]

    def inside(self, cell: str, path: str) -> PathDelay | None:
        """The delay between the leaves and the servers of a cell; None where they have no such path."""
        return self._delays.get(("", cell, path))


def of_effects(effects: list[Effect]) -> PathDelay:
    """The delay over several links taken together."""
    return PathDelay(
        sum(mean_delay_s(effect) for effect in effects) / len(effects),
        min(least_delay_s(effect) for effect in effects),
        sum(mean_loss(effect) for effect in effects) / len(effects),
    )


def observation_age_s(scenario: Scenario, delays: PathDelays, root: str, cell: str, policy: Policy) -> float:
    """Mean age of a cell's observation when a root's policy uses it; infinite where all reports are lost.

    At a random instant it is delay + R (1/2 + p / (1 - p)), R the report period, p the loss of reports; so it is
    for a policy with a timer of its own. Where every report triggers an update, the observation is used at the
    beginning of each gap between reports of any cell, for as long as that gap lasts, and the mean time from there,
    which is the mean wait for the next report, does not count. (One cell: the delay alone. K cells that report in
    turn: delay + (K - 1)/K R (1/2 + p / (1 - p)).)

    With several leaves it is the mean over them, since each has a part of the cell's requests.
    """
    news = delays.between(root, cell, "observation")
    if news.loss >= 1.0:
        return math.inf
    age_s = news.mean_s + reports_of(scenario, cell).every * (0.5 + news.loss / (1.0 - news.loss))
    if isinstance(policy, FlowPolicy) and policy.update == "on_report":
        return age_s - mean_wait_s(reporters(scenario, delays, root))
    return age_s


def reporters(scenario: Scenario, delays: PathDelays, root: str) -> list[Reporter]:
    """The leaves whose reports can reach a root, at their mean delays; jitter is left out."""
    found = []
    leaves = sum(cell.leaf.count for cell in scenario.cells.values())
    place = 0
    for name, cell in scenario.cells.items():
        reports, news = reports_of(scenario, name), delays.between(root, name, "observation")
        for _ in range(cell.leaf.count):
            phase_s = 0.0 if reports.phase == "in_phase" else reports.every * place / leaves
            place += 1
            if news.loss < 1.0:
                found.append(Reporter(reports.every, phase_s + news.mean_s, news.loss))
    return found


def loop_delay_s(scenario: Scenario, delays: PathDelays, root: str, cell: str, policy: Policy) -> float:
    """T_ij: mean travel of a request plus the mean age of the observation when it is used."""
    travel_s = delays.between(root, cell, "request").mean_s
    return travel_s + observation_age_s(scenario, delays, root, cell, policy)
