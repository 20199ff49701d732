"""Which cells have a line and a colour of their own, the same in every figure over time."""

from __future__ import annotations

from collections.abc import Sequence

from testbed.figures.arm import DrawnArm
from testbed.figures.colours import cell_colours
from testbed.figures.crowd import is_crowd, noted


def named_cells(arms: Sequence[DrawnArm]) -> dict[str, str]:
    """The colour of each such cell: of all where they are few, else of some.

    Those are the ones that a fault is about, then those whose requests in flight stray furthest.
    """
    cells = list(arms[0].scenario.cells)
    if not is_crowd(len(cells)):
        return cell_colours(cells)
    struck = [fault.cell for arm in arms for fault in arm.scenario.faults if fault.cell is not None]
    return cell_colours(noted([arm.in_flight for arm in arms], struck))
