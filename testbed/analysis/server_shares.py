"""How the requests of a cell were spread over its servers: over a window, and within each report period.

Arrivals are receipts by the servers. Within one report period the servers' reports stay as they are, so a balancer that
believes them alone sends all of the period's requests to one server: the top share of that period is 1. With few
arrivals in a period much of a top share is chance: m arrivals have a top share of at least 1/m.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from testbed.analysis.records import Floats, Table, Window, codes, quantile
from testbed.analysis.routing_shares import period_edges
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import build_topology


def server_share_figures(scenario: Scenario, requests: Table, window: Window) -> dict[str, dict[str, Any]]:
    """The figures of each cell, as they stand in its entry of `summary.json`.

    `servers` has the `requests` that each server received in the window, and its `share` of the cell's, in all and in
    the window's first period of the servers' reports (`first_period_share`);
    `top_share_per_period` the `mean`, `p20` and `p80` of the largest share of one server over the periods in
    which any came (`periods`). NaN where nothing came.

    Args:
        scenario: of the arm, unscaled.
        requests: the merged table, all of it.
        window: in which arrivals count.
    """
    at_s: Floats = requests["at_server_s"]
    came = window.holds(at_s)
    at_s, names = at_s[came], requests["server"][came]
    return {
        cell: _of_cell(at_s, codes(names, servers), servers, _edges(scenario, cell, window))
        for cell, servers in build_topology(scenario).servers.items()
    }


def top_shares(at_s: Floats, server: npt.NDArray[np.int64], edges_s: Floats) -> Floats:
    """The largest share of one server in each period that saw an arrival; shape (such periods,).

    Args:
        at_s: arrivals, in any order.
        server: number of the server of each, from 0.
        edges_s: of the periods, which are equal; the last edge is not in the last period.
    """
    period = np.searchsorted(edges_s, at_s, side="right") - 1
    inside = (period >= 0) & (period < len(edges_s) - 1)
    period, server = period[inside], server[inside]
    arrivals = np.bincount(period, minlength=len(edges_s) - 1)
    # One number for each pair of period and server that occurs, so that memory follows the arrivals.
    servers = int(server.max(initial=0)) + 1
    pairs, counts = np.unique(period * servers + server, return_counts=True)
    top = np.zeros(len(arrivals))
    np.maximum.at(top, pairs // servers, counts)
    return np.asarray(top[arrivals > 0] / arrivals[arrivals > 0], np.float64)


def _of_cell(
    at_s: Floats, server: npt.NDArray[np.int64], servers: tuple[str, ...], edges_s: Floats
) -> dict[str, Any]:
    mine = server >= 0
    at_s, server = at_s[mine], server[mine]
    counts = np.bincount(server, minlength=len(servers))
    first = np.bincount(server[at_s < edges_s[1]], minlength=len(servers))
    tops = top_shares(at_s, server, edges_s)
    return {
        "servers": {
            name.rpartition("/")[2]: {
                "requests": int(counts[i]),
                "share": _ratio(counts, i),
                "first_period_share": _ratio(first, i),
            }
            for i, name in enumerate(servers)
        },
        "top_share_per_period": {
            "mean": float(tops.mean()) if len(tops) else math.nan,
            "p20": quantile(tops, 0.2),
            "p80": quantile(tops, 0.8),
            "periods": len(tops),
        },
    }


def _ratio(counts: npt.NDArray[np.int64], i: int) -> float:
    total = int(counts.sum())
    return int(counts[i]) / total if total else math.nan


def _edges(scenario: Scenario, cell: str, window: Window) -> Floats:
    return period_edges(window, scenario.cells[cell].server_reports.every)
