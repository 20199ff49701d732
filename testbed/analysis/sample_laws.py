"""Conservation at each instant: a server's own counts (table `cells`) against the requests that the records show there.

At the instant of each sample a server says how many requests it has received so far, and how many wait and run. By the
records it has received those with an earlier instant of arrival, and has those of them that finished later; one that
arrived or finished in that very instant may count or not. It is not asked of servers that may have had requests without
a row of them, nor of those that a fault kills, which count anew in each life; see `Gaps`.
"""

from __future__ import annotations

import numpy as np

from testbed.analysis.law import INSTANT_TOLERANCE_S, Law
from testbed.analysis.records import Floats, Table, Tables, codes, positions_by
from testbed.analysis.sendings import Ints, gaps_of, names_of, sendings_of
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import Topology


def sample_conservation(scenario: Scenario, topology: Topology, tables: Tables) -> list[Law]:
    """Every sample of every server; the top of this file says of which it is not asked."""
    samples, sendings = tables.get("cells", {}), sendings_of(scenario, topology, tables)
    if sendings is None or not {"arrivals", "queued", "running"} <= samples.keys():
        return []
    servers = names_of(topology, "server")
    silent = gaps_of(scenario, topology, tables["requests"]).silent
    of_sample = positions_by(codes(samples["server"], servers), len(servers))
    of_sending = positions_by(sendings.server, len(servers))
    return [
        _law(name, samples, rows, sendings.at_server_s[mine], sendings.finished_at_s[mine])
        for name, rows, mine in zip(servers, of_sample, of_sending, strict=True)
        if len(rows) and name not in silent
    ]


def _law(name: str, samples: Table, rows: Ints, at_server_s: Floats, finished_at_s: Floats) -> Law:
    at_s = samples["at_s"][rows]
    came_least, came_most = _by(at_s, at_server_s)
    left_least, left_most = _by(at_s, finished_at_s)
    arrivals, here = samples["arrivals"][rows], samples["queued"][rows] + samples["running"][rows]
    miscounted = (arrivals < came_least) | (arrivals > came_most)
    misplaced = (here < came_least - left_most) | (here > came_most - left_least)
    wrong = miscounted | misplaced
    detail = f"{int(wrong.sum())} of {len(rows)} samples count otherwise than the records"
    if not wrong.any():
        return Law("conservation", name, True, detail)
    i = int(np.argmax(wrong))
    detail += (
        f", the first {arrivals[i]} arrivals and {here[i]} here, where {came_most[i]} and "
        f"{came_most[i] - left_most[i]} are recorded"
    )
    return Law("conservation", name, False, detail, at_s=float(at_s[i]))


def _by(at_s: Floats, instants_s: Floats) -> tuple[Ints, Ints]:
    """How many of the instants lie before each of these, and how many do or are equal; shapes those of `at_s`."""
    instants_s = np.sort(instants_s[np.isfinite(instants_s)])
    return (
        np.searchsorted(instants_s, at_s - INSTANT_TOLERANCE_S, side="left"),
        np.searchsorted(instants_s, at_s + INSTANT_TOLERANCE_S, side="right"),
    )
