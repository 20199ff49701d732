"""How large the largest herd was.

The herd size is the largest share of one report period's arrivals that came to one cell, less that cell's share over
the run. Arrivals are receipts by the cells' leaves; periods are those of the cell's reports, from the start of the
window on. 0 would be a split that never strays; with few arrivals in a period much of it is chance, so their number is
given with it.

Source: measures.md, section 3.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from testbed.analysis.records import Floats, Table, Window
from testbed.analysis.routing_shares import period_edges
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import reports_of


class Herd(NamedTuple):
    """The largest herd: its size (a share), where and when it came, and all arrivals of that report period."""

    size: float
    cell: str
    at_s: float
    arrivals: int


def largest_herd(scenario: Scenario, requests: Table, window: Window) -> Herd:
    """Over all cells and whole report periods of the window; its size is NaN where nothing arrived."""
    came = window.holds(requests["at_leaf_s"])
    at_s = requests["at_leaf_s"][came]
    herds = [
        _of_cell(cell, at_s, at_s[(requests["cell"] == cell)[came]], _edges(scenario, cell, window))
        for cell in scenario.cells
    ]
    known = [herd for herd in herds if math.isfinite(herd.size)]
    return max(known, key=lambda herd: herd.size, default=Herd(math.nan, "", math.nan, 0))


def _of_cell(cell: str, all_at_s: Floats, mine_at_s: Floats, edges: Floats) -> Herd:
    everyone, _ = np.histogram(all_at_s, edges)
    mine, _ = np.histogram(mine_at_s, edges)
    if not everyone.any():
        return Herd(math.nan, cell, math.nan, 0)
    shares = np.divide(mine, everyone, out=np.full(len(mine), -1.0), where=everyone > 0)
    period = int(np.argmax(shares))
    usual = len(mine_at_s) / len(all_at_s)
    return Herd(float(shares[period]) - usual, cell, float(edges[period]), int(everyone[period]))


def _edges(scenario: Scenario, cell: str, window: Window) -> Floats:
    return period_edges(window, reports_of(scenario, cell).every)
