"""A row per fault of the scenario: what was planned, and when the nodes that it touches did it."""

from __future__ import annotations

import numpy as np

from testbed.record.gather import Rows, Texts
from testbed.scenario.quantity import format_s
from testbed.scenario.schema import FaultLine, Jitter, Scenario, Setting
from testbed.scenario.topology import Topology, matching_links, matching_servers


def faults_table(scenario: Scenario, topology: Topology, applied: Rows) -> Rows:
    """The faults of an unscaled scenario, with what the nodes acknowledged."""
    lines = scenario.faults
    rows = [_row(scenario, topology, applied, fault) for fault in range(len(lines))]
    table: Rows = {
        "fault": np.arange(len(lines), dtype=np.int64),
        "target": Texts.of([target_text(line) for line in lines]),
        "parameters": Texts.of([setting_text(line.set_) for line in lines]),
    }
    for name, kind in _COMPUTED.items():
        table[name] = np.array([row[name] for row in rows], dtype=kind)
    return table


def target_text(line: FaultLine) -> str:
    """Whom a fault touches, in the words of the scenario: 'cell eu', 'link cell.us -> root.* observation'."""
    if line.link is not None:
        path = "" if line.link.path is None else f" {line.link.path}"
        return f"link {line.link.from_} -> {line.link.to}{path}"
    return f"cell {line.cell}" if line.cell is not None else f"server {line.server}"


def setting_text(words: Setting) -> str:
    """What a fault sets: 'speed 0.4', 'delay 2 s, loss 1 %'."""
    texts = {
        "speed": None if words.speed is None else f"{words.speed:g}",
        "delay": None if words.delay is None else format_s(words.delay),
        "jitter": None if words.jitter is None else _jitter_text(words.jitter),
        "loss": None if words.loss is None else f"{words.loss * 100:g} %",
        "order": words.order,
    }
    return ", ".join(f"{key} {text}" for key, text in texts.items() if text is not None)


_COMPUTED = {
    "planned_at_s": np.float64,
    "applied_at_s": np.float64,
    "heal_planned_at_s": np.float64,
    "healed_at_s": np.float64,
    "nodes_expected": np.int64,
    "nodes_applied": np.int64,
    "nodes_healed": np.int64,
}


def _row(scenario: Scenario, topology: Topology, applied: Rows, fault: int) -> dict[str, float]:
    line = scenario.faults[fault]
    senders = {link.source for link in matching_links(scenario, topology, line)}
    mine = applied["fault"] == fault
    begun, healed = mine & ~applied["healed"], mine & applied["healed"]
    return {
        "planned_at_s": line.at,
        "applied_at_s": _last(applied["done_at_s"][begun]),
        "heal_planned_at_s": np.nan if line.for_ is None else line.at + line.for_,
        "healed_at_s": _last(applied["done_at_s"][healed]),
        "nodes_expected": len(senders) + len(matching_servers(scenario, topology, line)),
        "nodes_applied": len(np.unique(applied["node"].numbers[begun])),
        "nodes_healed": len(np.unique(applied["node"].numbers[healed])),
    }


def _last(instants_s: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    return float(instants_s.max()) if len(instants_s) else np.nan


def _jitter_text(jitter: Jitter) -> str:
    if jitter.table is not None:
        return f"table of {len(jitter.table)} from {format_s(min(jitter.table))} to {format_s(max(jitter.table))}"
    name, spread_s = next(
        (name, value)
        for name in ("normal", "uniform", "lognormal")
        if (value := getattr(jitter, name)) is not None
    )
    return f"{name} {format_s(spread_s)}"
