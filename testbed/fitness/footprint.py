"""What a live run of a scenario will need of the machine, found before anything starts; in wall time.

The traffic is taken to divide over the cells by their capacity, at mean rates.
"""

from __future__ import annotations

from typing import NamedTuple

from testbed.analysis.limits import Limit, lateness_limit
from testbed.record.run_folder import file_name
from testbed.scenario.process_map import homes, process_map
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import Topology, build_topology
from testbed.theory.operating_point import at_capacity_split, demand
from testbed.theory.path_delays import PathDelays
from testbed.theory.process_load import BUSY_MESSAGES_PER_S, process_rates, reports_per_s

BYTES_PER_REQUEST = 400.0  # logs and tables together: 280 were seen with sampled decisions
BYTES_PER_REPORT = 250.0
PROCESS_BYTES = 6e6  # of its own; the plan is shared
MERGED_BYTES_PER_REQUEST = (
    850.0  # of memory, for the plan and for merging and analysing: 0.85 GB of a million were seen
)


class Footprint(NamedTuple):
    """What it takes.

    Attributes:
        processes: of nodes.
        messages_per_s: (process, messages that it handles, as `theory.process_load` counts them).
        requests_per_s: mean rate.
        reports_per_s: frames.
        most_peers: processes that one process exchanges messages with, at most.
        longest_name: of a socket, bytes.
        transport: ipc or tcp.
        disk_bytes: of logs and tables.
        memory_bytes: of all processes' own, with the plan and the merging of its requests.
        limit: p99 of lateness that makes the run invalid.
        smallest_delay_s: of a link; infinite where none has any.
        time_scale: of the scenario.
        duration_s: of the run.
    """

    processes: int
    messages_per_s: tuple[tuple[str, float], ...]
    requests_per_s: float
    reports_per_s: float
    most_peers: int
    longest_name: int
    transport: str
    disk_bytes: float
    memory_bytes: float
    limit: Limit
    smallest_delay_s: float
    time_scale: float
    duration_s: float

    @property
    def limit_s(self) -> float:
        """The limit of lateness at the time scale of the scenario."""
        return self.limit.at(self.time_scale)

    @property
    def busy(self) -> list[str]:
        """The processes that will keep a quarter of a core busy, or more."""
        return [name for name, rate in self.messages_per_s if rate > BUSY_MESSAGES_PER_S]


def footprint(scenario: Scenario) -> Footprint:
    """Of an arm, unscaled.

    Raises:
        RunError: a trace is missing or malformed.
    """
    topology = build_topology(scenario)
    scale = scenario.time_scale
    wanted = demand(scenario, PathDelays(topology))
    processes = process_map(scenario, topology)
    requests_per_s = float(wanted.rates_per_s.sum()) / scale
    reports = reports_per_s(scenario, topology) / scale
    duration_s = scenario.duration * scale
    delays = [link.effect.delay_s * scale for link in topology.links if link.effect.delay_s > 0.0]
    return Footprint(
        len(processes),
        tuple(process_rates(scenario, topology, wanted, at_capacity_split(wanted).cells).items()),
        requests_per_s,
        reports,
        _most_peers(topology, processes),
        max(len(file_name(name).encode()) for name in processes),
        scenario.live.transport,
        duration_s * (requests_per_s * BYTES_PER_REQUEST + reports * BYTES_PER_REPORT),
        len(processes) * PROCESS_BYTES + duration_s * requests_per_s * MERGED_BYTES_PER_REQUEST,
        lateness_limit(scenario, topology),
        min(delays, default=float("inf")),
        scale,
        duration_s,
    )


def _most_peers(topology: Topology, processes: dict[str, tuple[str, ...]]) -> int:
    home = homes(processes)
    peers: dict[str, set[str]] = {name: set() for name in processes}
    for link in topology.links:
        peers[home[link.source]].add(home[link.target])
        peers[home[link.target]].add(home[link.source])
    return max(len(others - {name}) for name, others in peers.items())
