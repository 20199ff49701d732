"""How often requests were sent again, and what came of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from testbed.analysis.records import Floats, Table, Tables, Window, row_count


def resending_figures(attempts: Table, requests: Table) -> dict[str, Any]:
    """Retries and hedges of roots and leaves, and how many servers a request was given to in the mean, until it was over.

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


def given_per_request(tables: Tables, window: Window) -> float:
    """Copies that leaves gave to servers in a window, of whatever requests, over the requests planned in it; NaN: none."""
    given = int(window.holds(given_at_s(tables["requests"], tables.get("attempts", {}))).sum())
    planned = int(window.holds(tables["requests"]["planned_at_s"]).sum())
    return given / planned if planned else float("nan")


def given_at_s(requests: Table, attempts: Table) -> Floats:
    """When leaves gave copies of requests to servers: the first one when it was received, each further one when sent."""
    was_given = requests["server"] != ""
    if not row_count(attempts):
        return np.asarray(requests["at_leaf_s"][was_given], np.float64)
    once = was_given & ~np.isin(requests["request_id"], attempts["request_id"])
    again = attempts["server"] != ""
    return np.concatenate([requests["at_leaf_s"][once], attempts["at_leaf_s"][again]])


_FIGURES = ("root_retries", "root_hedges", "leaf_retries", "leaf_hedges", "hedges_won")


def _sent_by_root(attempts: Table) -> Any:
    """Each sending of a root counts once, however many servers got it."""
    return (attempts["leaf_attempt"] == 0) & (attempts["attempt"] > 0)
