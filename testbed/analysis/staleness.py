"""How old the observations were: when they came, while they waited, and when they were used.

Staleness = used - measured, of the chosen cell's observation at each request. Transit age = received - measured, of
the report that was the newest of the chosen cell then; waiting = used - received. Percentiles are weighted by requests:
a report counts as often as requests went to its cell while it was the newest; reports count alike where none did.

Source: measures.md, section 2.
"""

from __future__ import annotations

import math

import numpy as np

from testbed.analysis.records import (
    Floats,
    Table,
    Window,
    codes,
    mean,
    positions_by,
    quantile,
    row_count,
    weighted_quantile,
)

QUANTILES = {"p50": 0.50, "p99": 0.99}


def staleness_s(requests: Table) -> dict[str, float]:
    """Mean and percentiles of the age of the chosen cell's observation over these requests, seconds."""
    ages_s = requests["staleness_s"]
    return {"mean": mean(ages_s), **{name: quantile(ages_s, part) for name, part in QUANTILES.items()}}


def transit_s(observations: Table, requests: Table, window: Window) -> dict[str, float]:
    """Mean and percentiles of the age of reports on receipt, seconds.

    Args:
        observations: every report received.
        requests: that used them.
        window: in which reports were received.
    """
    if not row_count(observations):
        return dict.fromkeys(("mean", *QUANTILES), math.nan)
    inside = window.holds(observations["received_at_s"])
    ages_s = (observations["received_at_s"] - observations["measured_at_s"])[inside]
    uses = report_uses(observations, requests)[inside]
    weights = uses if uses.any() else np.ones(len(ages_s))
    found = {name: weighted_quantile(ages_s, weights, part) for name, part in QUANTILES.items()}
    return {"mean": float(ages_s @ weights / weights.sum()) if len(ages_s) else math.nan, **found}


def report_uses(observations: Table, requests: Table) -> Floats:
    """How many requests were sent to each report's cell, by its root, while it was the newest: shape (reports,)."""
    uses = np.zeros(row_count(observations))
    roots = list(dict.fromkeys(observations["root"].tolist()))
    cells = list(dict.fromkeys(observations["cell"].tolist()))
    pair = codes(observations["root"], roots) * len(cells) + codes(observations["cell"], cells)
    root, cell = codes(requests["root"], roots), codes(requests["cell"], cells)
    sent_to = np.where((root >= 0) & (cell >= 0), root * len(cells) + cell, -1)
    pairs = len(roots) * len(cells)
    for reports, sent in zip(positions_by(pair, pairs), positions_by(sent_to, pairs), strict=True):
        reports = reports[np.argsort(observations["received_at_s"][reports], kind="stable")]
        sent_at_s = np.sort(requests["sent_at_s"][sent])
        known = np.searchsorted(sent_at_s, observations["received_at_s"][reports])
        uses[reports] = np.diff(known, append=np.isfinite(sent_at_s).sum())
    return uses
