"""The shares that a line of traffic gets from weights: where static policies stay, and where flow routing starts."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from testbed.theory.operating_point import Demand, Floats


def split_by(weights: str | Mapping[str, float], wanted: Demand, line: int) -> Floats:
    """Shares of a line over all cells, proportional to the weights of its allowed ones; shape (cells,).

    Args:
        weights: `even`, `capacity`, or a weight by the name of the cell, where a name left out counts 0. If no allowed
            cell has a weight above 0 the split is even.
        wanted: what the lines ask for.
        line: position of the line in `wanted.lines`.
    """
    if isinstance(weights, Mapping):
        raw = np.array([weights.get(cell, 0.0) for cell in wanted.cells])
    elif weights == "capacity":
        raw = wanted.servers * [curve.capacity_per_s for curve in wanted.curves[line]]
    else:
        raw = np.ones(len(wanted.cells))
    raw = np.where(wanted.allowed[line], raw, 0.0)
    total = float(raw.sum())
    return raw / total if total > 0.0 else split_by("even", wanted, line)
