"""How busy the servers of each cell were."""

from __future__ import annotations

import math

import numpy as np

from testbed.analysis.records import Table, Window, codes, mean, positions_by, row_count
from testbed.scenario.topology import Topology


def utilisations(topology: Topology, samples: Table, window: Window) -> dict[str, float]:
    """Share of the time that a cell's servers were busy, their mean, from their first and last samples in the window.

    Args:
        topology: of the arm.
        samples: of the truth at the servers.
        window: in which they are looked at.

    Returns:
        By cell; NaN for one without two samples of a server.
    """
    if not row_count(samples):
        return dict.fromkeys(topology.servers, math.nan)
    inside = window.holds(samples["at_s"])
    at_s, busy_s = samples["at_s"][inside], samples["busy_s"][inside]
    names = [name for servers in topology.servers.values() for name in servers]
    server = codes(samples["server"][inside], names)
    order = np.argsort(at_s, kind="stable")
    groups = positions_by(server[order], len(names))
    shares = {name: _busy_share(at_s, busy_s, order[rows]) for name, rows in zip(names, groups, strict=True)}
    return {
        cell: mean(np.array([shares[name] for name in servers])) for cell, servers in topology.servers.items()
    }


def _busy_share(
    at_s: np.ndarray[tuple[int], np.dtype[np.float64]],
    busy_s: np.ndarray[tuple[int], np.dtype[np.float64]],
    rows: np.ndarray[tuple[int], np.dtype[np.intp]],
) -> float:
    """Of one server, whose rows are in order of time."""
    if len(rows) < 2:
        return math.nan
    first, last = rows[0], rows[-1]
    return float((busy_s[last] - busy_s[first]) / (at_s[last] - at_s[first]))
