"""How old the observations were: when they were used, and when they came.

Staleness = used - measured, of the chosen cell at each request, so that percentiles are weighted by requests.
Transit age = received - measured, of each report. Source: measures.md, section 2.
"""

from __future__ import annotations

import numpy as np

from testbed.analysis.records import Floats, Table, Window, mean, quantile, row_count


def staleness_s(requests: Table) -> dict[str, float]:
    """Mean and percentiles of the age of the chosen cell's observation over these requests, seconds."""
    return _figures(requests["staleness_s"])


def transit_s(observations: Table, window: Window) -> dict[str, float]:
    """Mean and percentiles of the age of reports on receipt, seconds, over those received in the window."""
    if not row_count(observations):
        return _figures(np.empty(0))
    inside = window.holds(observations["received_at_s"])
    return _figures((observations["received_at_s"] - observations["measured_at_s"])[inside])


def _figures(ages_s: Floats) -> dict[str, float]:
    return {"mean": mean(ages_s), "p50": quantile(ages_s, 0.50), "p99": quantile(ages_s, 0.99)}
