"""The loop delay of each root and cell: measured from the records, and predicted from the scenario.

T_ij = request travel (root's sending to leaf's receipt) + mean age of the observation when it is used. It is used
at the updates of policies that move probabilities, and at every request by policies that choose anew each time.
The reply path and the update interval are not part of it.

Source: measures.md, section 2.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from testbed.analysis.records import Floats, Mask, Table, Tables, Window, mean
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import Topology, root_name
from testbed.theory import loop_delay as theory
from testbed.traffic.capacity import allowed_cells


class PairDelay(NamedTuple):
    """The loop delay between a root and a cell, for one class of traffic."""

    root: str
    class_name: str
    cell: str
    travel_s: float
    age_s: float
    requests: int

    @property
    def loop_delay_s(self) -> float:
        """Request travel and age of the observation together."""
        return self.travel_s + self.age_s


def measured_loop_delays(scenario: Scenario, tables: Tables, window: Window) -> list[PairDelay]:
    """One entry per root, class and cell that requests were sent to in the window."""
    requests = tables["requests"]
    inside = window.holds(requests["planned_at_s"])
    pairs = []
    for root, spec in scenario.roots.items():
        of_root = inside & (requests["root"] == root_name(root))
        for name in dict.fromkeys(line.class_ for line in spec.traffic):
            of_class = of_root & (requests["class"] == name)
            for cell in scenario.cells:
                chosen = of_class & (requests["cell"] == cell)
                if chosen.any():
                    pairs.append(_pair(tables, window, root_name(root), name, cell, chosen))
    return pairs


def overall_loop_delay_s(pairs: list[PairDelay]) -> float:
    """Mean over roots, classes and cells, weighted by requests; NaN when nothing was measured."""
    known = [pair for pair in pairs if math.isfinite(pair.loop_delay_s)]
    total = sum(pair.requests for pair in known)
    return sum(pair.loop_delay_s * pair.requests for pair in known) / total if total else math.nan


def predicted_loop_delay_s(scenario: Scenario, topology: Topology) -> float:
    """The prediction of the theory, the mean over lines of traffic and cells alike; NaN where all reports are lost."""
    paths = theory.PathDelays(topology)
    delays = [
        theory.loop_delay_s(scenario, paths, root, cell, scenario.policies[line.policy])
        for root, spec in scenario.roots.items()
        for index, line in enumerate(spec.traffic)
        for cell in allowed_cells(scenario, root, index)
    ]
    return mean(np.array(delays))


def best_loop_delay_s(scenario: Scenario, topology: Topology, pairs: list[PairDelay]) -> float:
    """The measured loop delay, or the predicted one where no observation was used."""
    measured_s = overall_loop_delay_s(pairs)
    return measured_s if math.isfinite(measured_s) else predicted_loop_delay_s(scenario, topology)


def _pair(tables: Tables, window: Window, root: str, name: str, cell: str, chosen: Mask) -> PairDelay:
    requests = tables["requests"]
    travel_s = mean(requests["at_leaf_s"][chosen] - requests["sent_at_s"][chosen])
    ages_s = _ages_at_updates(tables.get("updates", {}), window, root, name, cell)
    age_s = mean(ages_s if len(ages_s) else requests["staleness_s"][chosen])
    return PairDelay(root, name, cell, travel_s, age_s, int(chosen.sum()))


def _ages_at_updates(updates: Table, window: Window, root: str, name: str, cell: str) -> Floats:
    if not updates:
        return np.empty(0)
    mine = (updates["root"] == root) & (updates["class"] == name) & (updates["cell"] == cell)
    mine &= window.holds(updates["used_at_s"])
    return np.asarray(updates["used_at_s"][mine] - updates["measured_at_s"][mine])
