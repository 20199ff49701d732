"""How much of the prompts the servers' prefix caches held: by requests, in all and by cell."""

from __future__ import annotations

import math
from typing import Any

from testbed.analysis.records import Table, row_count, rows
from testbed.scenario.schema import Scenario


def prefix_cache_figures(scenario: Scenario, requests: Table) -> dict[str, Any]:
    """Of the requests whose first token was made in cells with a prefix cache.

    `hit_fraction` is the share of their prompt tokens that was in the cache when they were admitted;
    `requests_hit_fraction` the share of them that found anything; `by_cell` the first of these, cell by cell. NaN where
    there are none.
    """
    caching = [name for name, cell in scenario.cells.items() if cell.prefix_cache_tokens is not None]
    started = requests["first_token_at_s"] == requests["first_token_at_s"]
    by_cell = {name: rows(requests, started & (requests["cell"] == name)) for name in caching}
    cached = sum(int(each["cached_tokens"].sum()) for each in by_cell.values())
    prompt = sum(int(each["prompt_tokens"].sum()) for each in by_cell.values())
    hit = sum(int((each["cached_tokens"] > 0).sum()) for each in by_cell.values())
    count = sum(row_count(each) for each in by_cell.values())
    return {
        "hit_fraction": _fraction(cached, prompt),
        "requests_hit_fraction": _fraction(hit, count),
        "by_cell": {
            name: _fraction(int(each["cached_tokens"].sum()), int(each["prompt_tokens"].sum()))
            for name, each in by_cell.items()
        },
    }


def _fraction(part: int, whole: int) -> float:
    return part / whole if whole else math.nan
