"""How requests were routed in a window: every figure of it, as it stands in `summary.json`."""

from __future__ import annotations

import math
from typing import Any

from testbed.analysis.deviation import Deviation, deviation
from testbed.analysis.herd import largest_herd
from testbed.analysis.imbalance import imbalance_of_cells, imbalance_within_cells, server_loads
from testbed.analysis.movement import bounces_per_minute, migration_per_minute
from testbed.analysis.records import Table, Tables, Window, mean
from testbed.analysis.regret import regret
from testbed.analysis.routing_shares import period_edges, report_period_s, stream_shares
from testbed.analysis.synchrony import synchrony
from testbed.scenario.schema import Scenario


def routing_figures(scenario: Scenario, tables: Tables, counted: Table, window: Window) -> dict[str, Any]:
    """Synchrony, herd, movement, deviation, regret and imbalance.

    Args:
        scenario: of the arm, unscaled.
        tables: its merged tables.
        counted: the requests planned in the window.
        window: in which they are looked at; empty (no time in it): nothing is known.
    """
    if window.to_s <= window.from_s:
        return {}
    streams = stream_shares(scenario, tables, window)
    edges_s = period_edges(window, report_period_s(scenario))
    together = synchrony(scenario, tables, window)
    herd = largest_herd(scenario, tables["requests"], window)
    lost = regret(scenario, tables, window)
    return {
        "synchrony": {**together._asdict(), "above_chance": together.above_chance},
        "herd": herd._asdict(),
        "bounces_per_minute": bounces_per_minute(streams, window, edges_s),
        "migration_per_minute": migration_per_minute(streams, window),
        "deviation": _deviation_figures(deviation(scenario, tables, streams, window)),
        "regret_s": {
            "staleness": lost.staleness,
            "transit": lost.transit,
            "rule": lost.rule,
            "total": lost.total,
            "decisions": lost.decisions,
        },
        "wrong_choice_fraction": lost.wrong_choice_fraction,
        "imbalance": _imbalance_figures(scenario, tables, counted, window),
    }


def _deviation_figures(found: Deviation) -> dict[str, Any]:
    figures: dict[str, Any] = {
        "dev_F": found.dev_f,
        "dev_F_shares": found.dev_f_shares,
        "dev_x": found.dev_x,
        "in_system": found.in_system,
        "in_system_optimum": found.in_system_optimum,
    }
    bound = found.bound
    if bound is None or bound.fraction is None:
        return {**figures, "bound": None, "bound_refused": "" if bound is None else bound.refused_because}
    return {
        **figures,
        "bound": bound.fraction,
        "bound_from_start": bound.from_start,
        "bound_from_steps": bound.from_steps,
        "bound_is": "conjecture" if bound.conjecture_because else "proven",
        "bound_conjecture_because": list(bound.conjecture_because),
    }


def _imbalance_figures(scenario: Scenario, tables: Tables, counted: Table, window: Window) -> dict[str, Any]:
    prompt, output = mean(counted["prompt_tokens"]), mean(counted["output_tokens"])
    loads = server_loads(scenario, tables.get("cells", {}), window)
    if not loads or math.isnan(prompt):
        return {"requests": None, "work": None, "within_cells": {"requests": None, "work": None}}
    cells = imbalance_of_cells(scenario, loads, prompt, output)
    return {**cells._asdict(), "within_cells": imbalance_within_cells(loads)._asdict()}
