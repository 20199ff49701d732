"""The scenario of tests in which each cell is there for its link alone: what faults do to one shows on no other."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

BASE_S = 0.010  # delay of every link, where no fault changes it


def one_link_each(
    name: str,
    cells: Iterable[str],
    *,
    rate_per_s: float,
    seconds: float,
    seed: int,
    faults: list[dict[str, Any]],
) -> dict[str, Any]:
    """The words of a scenario: cells that share a process, and a root in another that splits by the request's key.

    Args:
        name: of the scenario.
        cells: each with one server that is never full.
        rate_per_s: requests a second to each cell.
        seconds: how long it runs.
        seed: of the run.
        faults: its lines.
    """
    cell = {"servers": 1, "service": {"slots": 64, "fixed": "1 ms"}}
    all_cells = dict.fromkeys(cells, cell)
    rate = f"{rate_per_s * len(all_cells)} /s"
    return {
        "name": name,
        "duration": f"{seconds} s",
        "drain": "2 s",
        "seed": seed,
        "dating": "due",
        "cells": all_cells,
        "roots": {"r": {"traffic": [{"class": "c", "rate": rate, "policy": "split"}]}},
        "classes": {"c": {"timeout": "1 s"}},
        "policies": {"split": {"kind": "weighted", "draw": "request"}},
        "links": [{"from": "*", "to": "*", "delay": f"{BASE_S * 1000:g} ms"}],
        "faults": faults,
        "processes": {"roots": 1, "cells": 1},
        "records": {"decisions": "0 %"},
    }
