"""A row per fault of the timeline: what was planned, and when the nodes that it touches did it."""

from __future__ import annotations

import math

import numpy as np

from testbed.record.gather import Rows, Texts
from testbed.record.outages import Outages
from testbed.scenario.fault_plan import Fault, fault_plan
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import Topology


def faults_table(scenario: Scenario, topology: Topology, applied: Rows) -> Rows:
    """The faults of an unscaled scenario, with what the nodes acknowledged."""
    plan = fault_plan(scenario, topology)
    outages = Outages(scenario, topology, applied)
    rows = [_row(fault, topology, applied, outages) for fault in plan]
    table: Rows = {
        "fault": np.arange(len(plan), dtype=np.int64),
        "line": np.array([fault.line for fault in plan], dtype=np.int64),
        "target": Texts.of([fault.target for fault in plan]),
        "parameters": Texts.of([fault.text for fault in plan]),
    }
    for name, kind in _COMPUTED.items():
        table[name] = np.array([row[name] for row in rows], dtype=kind)
    return table


_COMPUTED = {
    "planned_at_s": np.float64,
    "applied_at_s": np.float64,
    "heal_planned_at_s": np.float64,
    "healed_at_s": np.float64,
    "nodes_expected": np.int64,
    "nodes_applied": np.int64,
    "nodes_healed": np.int64,
    "nodes_missed": np.int64,
}


def _row(fault: Fault, topology: Topology, applied: Rows, outages: Outages) -> dict[str, float]:
    mine = applied["fault"] == fault.number
    begun, healed = mine & ~applied["healed"], mine & applied["healed"]
    appliers = sorted(fault.appliers(topology))
    done = set(applied["node"].places(appliers)[begun].tolist())
    left = [name for place, name in enumerate(appliers) if place not in done]
    return {
        "planned_at_s": fault.at_s,
        "applied_at_s": _last(applied["done_at_s"][begun]),
        "heal_planned_at_s": np.nan if math.isinf(fault.until_s) else fault.until_s,
        "healed_at_s": _last(applied["done_at_s"][healed]),
        "nodes_expected": len(appliers),
        "nodes_applied": len(np.unique(applied["node"].numbers[begun])),
        "nodes_healed": len(np.unique(applied["node"].numbers[healed])),
        "nodes_missed": sum(outages.cover(name, fault.at_s, fault.until_s) for name in left),
    }


def _last(instants_s: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    return float(instants_s.max()) if len(instants_s) else np.nan
