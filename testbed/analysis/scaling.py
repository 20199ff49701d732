"""How many servers an autoscaler kept in use, and how steadily."""

from __future__ import annotations

from typing import Any

import numpy as np

from testbed.analysis.records import Table, Window, row_count


def server_counts(scalings: Table, cell: str, window: Window) -> dict[str, Any] | None:
    """Servers in use over the looks of a cell's autoscaler in a window; None where it has none.

    Args:
        scalings: a row per look.
        cell: name of the cell.
        window: which looks count.

    Returns:
        Mean, standard deviation, least and most; `turns`: how often the number turned from rising to falling or back;
        `starting_mean`: servers that were starting up.
    """
    if not row_count(scalings):
        return None
    mine = (scalings["cell"] == cell) & window.holds(scalings["at_s"])
    in_use = scalings["in_use"][mine].astype(float)
    if not len(in_use):
        return None
    moves = np.sign(np.diff(in_use))
    moves = moves[moves != 0]
    return {
        "mean": float(in_use.mean()),
        "sd": float(in_use.std()),
        "min": int(in_use.min()),
        "max": int(in_use.max()),
        "turns": int((np.diff(moves) != 0).sum()),
        "starting_mean": float(scalings["starting"][mine].mean()),
    }
