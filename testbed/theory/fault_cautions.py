"""Warnings about faults that change nothing, since nobody hears what they change."""

from __future__ import annotations

from collections.abc import Iterator

from testbed.scenario.fault_findings import fault_actions
from testbed.scenario.fault_plan import named_nodes, target_text
from testbed.scenario.fault_words import GAUGE_KEYS, FaultAction
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import Topology, leaf_policy, sends_probes


def fault_cautions(scenario: Scenario, topology: Topology) -> Iterator[str]:
    """Faults of what servers tell, where their leaves listen to nothing of it."""
    for _, action in fault_actions(scenario):
        keys = [key for key in action.setting.given if key in GAUGE_KEYS]
        if action.server is None or not keys:
            continue
        servers = named_nodes(scenario, topology.nodes, action.server, "server")
        unheard = [name for name in servers if not _is_heard(scenario, topology, name, action)]
        for cell in dict.fromkeys(topology.nodes[name].cell for name in unheard):
            yield (
                f"the fault of {target_text(action)} sets {', '.join(keys)} to no effect in {cell}:"
                " its leaves read no reports of their servers, and ask them nothing that this would change"
            )


def _is_heard(scenario: Scenario, topology: Topology, server: str, action: FaultAction) -> bool:
    """Whether a leaf hears of a server what this fault changes: reports, answers of probes, or the lack of an answer."""
    if any(link.path == "observation" for link in topology.outgoing(server)):
        return True
    cell = topology.nodes[server].cell
    is_checked = scenario.cells[cell].leaf.health_checks is not None
    return sends_probes(leaf_policy(scenario, cell)) or (is_checked and action.setting.telemetry == "silent")
