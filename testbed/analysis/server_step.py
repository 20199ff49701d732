"""How late servers answered what they had finished: the instant of the reply less the planned boundary of its step, wall time.

A server's service model plans when each request is finished; its process wakes up then, or later where the host is slow, and
answers. What the link and the leaf make of the reply is the injection error of that link.

Servers that a fault kills, stops or makes tell untruths are left out.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from testbed.analysis.hops import shaken_nodes
from testbed.analysis.host import HostSeries
from testbed.analysis.lateness import LEAST_MESSAGES
from testbed.analysis.limits import Finding, Limit
from testbed.analysis.reason import Places
from testbed.analysis.recorded_error import ErrorWords, RecordedError, error_findings, recorded_error
from testbed.analysis.records import Table, codes, positions_by
from testbed.scenario.process_map import homes, process_map
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import Topology

WORDS = ErrorWords("server step", "server step error (answered less finished)", "at", "replies")


def step_errors(scenario: Scenario, topology: Topology, requests: Table) -> list[RecordedError]:
    """Of every server with enough replies, then of the other servers of each process together, where these have enough.

    Nothing in runs of versions that did not write down when a server answered.
    """
    if "answered_at_s" not in requests:
        return []
    scale, shaken = scenario.time_scale, shaken_nodes(scenario, topology)
    errors_s = (requests["answered_at_s"] - requests["finished_at_s"]) * scale
    servers = [
        node.name for node in topology.nodes.values() if node.kind == "server" and node.name not in shaken
    ]
    server = np.where(np.isfinite(errors_s), codes(requests["server"], servers), -1)
    home = homes(process_map(scenario, topology))
    found: list[RecordedError] = []
    few: dict[str, list[int]] = {}  # of each process
    for number, rows in enumerate(positions_by(server, len(servers))):
        if len(rows) >= LEAST_MESSAGES:
            name = servers[number]
            found.append(recorded_error(name, errors_s[rows], requests["answered_at_s"][rows], name))
        elif len(rows):
            few.setdefault(home[servers[number]], []).append(number)
    for process, members in few.items():
        rows = np.flatnonzero(np.isin(server, members))
        if len(rows) >= LEAST_MESSAGES:
            name = f"{len(members)} servers in process {process}, together since each has fewer than {LEAST_MESSAGES} replies"
            found.append(recorded_error(name, errors_s[rows], requests["answered_at_s"][rows], ""))
    return found


def step_findings(
    errors: list[RecordedError], limit: Limit, time_scale: float, host: HostSeries, places: Places
) -> Iterator[Finding]:
    """The worst server against the limit.

    Args:
        errors: of all servers and pools.
        limit: of the verdict.
        time_scale: of the scenario.
        host: what the machine did.
        places: of the nodes.
    """
    yield from error_findings(errors, WORDS, limit, time_scale, host, places)
