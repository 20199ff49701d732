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

    def _outage(self, rows: NDArray[np.bool_]) -> Outage | None:
        begun = self._applied["done_at_s"][rows & ~self._applied["healed"]]
        healed = self._applied["done_at_s"][rows & self._applied["healed"]]
        if not len(begun):
            return None
        return float(begun.min()), float(healed.max()) if len(healed) else math.inf
