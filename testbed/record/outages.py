"""When the process of a node was dead or stopped, as the records of a run tell."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from testbed.record.gather import Rows
from testbed.scenario.fault_plan import fault_plan
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import Topology

Outage = tuple[float, float]  # from, until, seconds; infinite: to the end


class Outages:
    """The outages of every node of a run in scenario time, from what the nodes acknowledged."""

    def __init__(self, scenario: Scenario, topology: Topology, applied: Rows) -> None:
        """Find them; the scenario is not scaled."""
        plan = fault_plan(scenario, topology)
        self._applied = applied
        self._planned_at_s = {fault.number: fault.at_s for fault in plan}
        self._of_key = {
            key: {fault.number: set(fault.nodes) for fault in plan if getattr(fault.words, key)}
            for key in ("kill", "pause")
        }

    def of(self, node: str, key: str) -> list[Outage]:
        """When faults with this key, `kill` or `pause`, had the node out; one for each fault."""
        faults = [number for number, nodes in self._of_key[key].items() if node in nodes]
        if not faults:
            return []
        mine = self._applied["node"].places([node]) == 0
        return [
            outage for fault in faults if (outage := self._outage(mine & (self._applied["fault"] == fault)))
        ]

    def cover(self, node: str, from_s: float, until_s: float) -> bool:
        """Whether the process of a node was dead or stopped all the time from one instant to another."""
        reached_s = from_s
        for begun_s, ended_s in sorted(self._spans(node)):
            if begun_s <= reached_s:
                reached_s = max(reached_s, ended_s)
        return reached_s >= until_s > from_s

    def _spans(self, node: str) -> list[Outage]:
        """Outages from their planned onset, for a fault that falls due just after one is not made any more.

        A stop ends at the latest when the process dies: nobody says that it goes on.
        """
        dead = self._planned_spans(node, "kill")
        stopped = self._planned_spans(node, "pause")
        ends = [
            min((died_s for died_s, _ in dead if died_s >= at_s), default=math.inf) for at_s, _ in stopped
        ]
        return dead + [
            (at_s, min(until_s, end_s)) for (at_s, until_s), end_s in zip(stopped, ends, strict=True)
        ]

    def _planned_spans(self, node: str, key: str) -> list[Outage]:
        """Of every fault with this key that the node said anything of: the planned onset, and when it healed."""
        faults = [number for number, nodes in self._of_key[key].items() if node in nodes]
        if not faults:
            return []
        mine = self._applied["node"].places([node]) == 0
        found = []
        for fault in faults:
            rows = mine & (self._applied["fault"] == fault)
            if rows.any():
                healed = self._applied["done_at_s"][rows & self._applied["healed"]]
                found.append((self._planned_at_s[fault], float(healed.max()) if len(healed) else math.inf))
        return found

    def _outage(self, rows: NDArray[np.bool_]) -> Outage | None:
        begun = self._applied["done_at_s"][rows & ~self._applied["healed"]]
        healed = self._applied["done_at_s"][rows & self._applied["healed"]]
        if not len(begun):
            return None
        return float(begun.min()), float(healed.max()) if len(healed) else math.inf
