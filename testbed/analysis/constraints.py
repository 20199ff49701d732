"""The audit of the constraints: no request and no probability where a root may not send a class.

Source: measures.md, section 4.
"""

from __future__ import annotations

import numpy as np

from testbed.analysis.records import Mask, Table, Tables, codes, row_count
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import root_name
from testbed.traffic.capacity import allowed_cells


def audit(scenario: Scenario, tables: Tables) -> dict[str, float]:
    """Breaches over the whole run.

    Returns:
        violations: requests sent to a forbidden cell, and rows of updates that give one a probability above 0.
        forbidden_probability_max: the largest such probability; 0 when all is well.
    """
    sent = _forbidden(scenario, tables["requests"])
    updates = tables.get("updates", {})
    if not row_count(updates):
        return {"violations": int(sent.sum()), "forbidden_probability_max": 0.0}
    forbidden = _forbidden(scenario, updates) | ~updates["allowed"].astype(bool)
    probabilities = updates["probability"][forbidden]
    return {
        "violations": int(sent.sum()) + int((probabilities > 0).sum()),
        "forbidden_probability_max": float(probabilities.max(initial=0.0)),
    }


def _forbidden(scenario: Scenario, table: Table) -> Mask:
    """Rows that name a cell which their root may not use for their class; rows without a cell break nothing."""
    roots, classes, cells = list(scenario.roots), list(scenario.classes), list(scenario.cells)
    allowed = np.zeros((len(roots), len(classes), len(cells)), bool)
    for i, root in enumerate(roots):
        for j, name in enumerate(classes):
            for cell in _allowed(scenario, root, name):
                allowed[i, j, cells.index(cell)] = True
    at_root = codes(table["root"], [root_name(root) for root in roots])
    is_allowed = allowed[at_root, codes(table["class"], classes), codes(table["cell"], cells)]
    return np.asarray((table["cell"] != "") & ~is_allowed, np.bool_)


def _allowed(scenario: Scenario, root: str, class_name: str) -> set[str]:
    """The cells that any line of this class at this root may use; the root's where it has no such line."""
    lines = [i for i, line in enumerate(scenario.roots[root].traffic) if line.class_ == class_name]
    sets = [allowed_cells(scenario, root, i) for i in lines] or [allowed_cells(scenario, root)]
    return set().union(*sets)
