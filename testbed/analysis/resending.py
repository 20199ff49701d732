"""How often requests were sent again, and what came of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from testbed.analysis.records import Table, row_count


def resending_figures(attempts: Table, requests: Table) -> dict[str, Any]:
    """Retries and hedges of roots and leaves, and how many servers a request was given to in the mean.

    Args:
        attempts: the sendings of requests that were sent more than once.
        requests: all of them.
    """
    if not row_count(attempts):
        return {**dict.fromkeys(_FIGURES, 0), "servings_per_request": 1.0}
    by_leaf = attempts["leaf_attempt"] > 0
    counts = {
        f"{tier}_{plural}": int((mine & (attempts["cause"] == cause)).sum())
        for tier, mine in (("root", _sent_by_root(attempts)), ("leaf", by_leaf))
        for cause, plural in (("retry", "retries"), ("hedge", "hedges"))
    }
    won = (attempts["outcome"] == "completed") & (attempts["leaf_outcome"] == "completed")
    given = int((attempts["server"] != "").sum())
    again = len(np.unique(attempts["request_id"]))
    planned = row_count(requests)
    return {
        **counts,
        "hedges_won": int((won & (attempts["cause"] == "hedge")).sum()),
        "servings_per_request": (planned - again + given) / planned if planned else float("nan"),
    }


_FIGURES = ("root_retries", "root_hedges", "leaf_retries", "leaf_hedges", "hedges_won")


def _sent_by_root(attempts: Table) -> Any:
    """Each sending of a root counts once, however many servers got it."""
    return (attempts["leaf_attempt"] == 0) & (attempts["attempt"] > 0)
