"""What the processes of the live engine will have to handle, at mean rates and in wall time.

A root meets each request twice (arrival and reply), a leaf twice (request and reply), a server once. A report is met at both
ends: prepared when it is due, and received. Probes, polls and retries come on top.
"""

from __future__ import annotations

from collections.abc import Sequence

from testbed.scenario.process_map import process_map
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import Topology, leaf_policy, reads_reports, reports_of, root_name
from testbed.theory.operating_point import CellState, Demand

BUSY_MESSAGES_PER_S = 4_000.0  # about 60 us of CPU each while wake-ups are not shared: a quarter of a core


def reports_per_s(scenario: Scenario, topology: Topology) -> float:
    """Report frames per second of scenario time: leaves to roots, and servers to leaves that read them."""
    return sum(_report_ends(scenario, topology).values()) / 2.0


def process_rates(
    scenario: Scenario, topology: Topology, wanted: Demand, cells: Sequence[CellState]
) -> dict[str, float]:
    """Messages a second of wall time that each process handles.

    Args:
        scenario: unscaled.
        topology: of the scenario.
        wanted: what its lines of traffic ask for.
        cells: what comes to each.
    """
    rates = _report_ends(scenario, topology)
    for (root, _), rate in zip(wanted.lines, wanted.rates_per_s.tolist(), strict=True):
        rates[root_name(root)] += 2.0 * rate
    for cell in cells:
        leaves, servers = topology.leaves[cell.cell], topology.servers[cell.cell]
        for leaf in leaves:
            rates[leaf] += 2.0 * cell.rate_per_s / len(leaves)
        for server in servers:
            rates[server] += cell.rate_per_s / len(servers)
    processes = process_map(scenario, topology)
    return {
        name: sum(rates[node] for node in nodes) / scenario.time_scale for name, nodes in processes.items()
    }


def _report_ends(scenario: Scenario, topology: Topology) -> dict[str, float]:
    """Report frames that each node sends or receives, a second of scenario time."""
    rates = dict.fromkeys(topology.nodes, 0.0)
    for name, cell in scenario.cells.items():
        leaves, servers = topology.leaves[name], topology.servers[name]
        pairs = [
            (leaf, root_name(root), reports_of(scenario, name).every)
            for leaf in leaves
            for root in scenario.roots
        ]
        if reads_reports(leaf_policy(scenario, name)):
            pairs += [(server, leaf, cell.server_reports.every) for server in servers for leaf in leaves]
        for sender, receiver, every_s in pairs:
            rates[sender] += 1.0 / every_s
            rates[receiver] += 1.0 / every_s
    return rates
