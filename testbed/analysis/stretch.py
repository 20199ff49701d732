"""The figures of merit of a stretch of a run: the whole of its window, or the part before, during or after a change."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from testbed.analysis.in_flight import grid_edges, in_flight_by_cell
from testbed.analysis.measured_arm import MeasuredArm
from testbed.analysis.oscillation import Oscillation, oscillation
from testbed.analysis.records import Table, Tables, Window, mean, row_count, rows
from testbed.analysis.resending import given_per_request, resending_figures
from testbed.analysis.routing import routing_figures
from testbed.analysis.scaling import server_counts
from testbed.analysis.server_shares import server_share_figures
from testbed.analysis.sojourn import (
    first_tokens,
    goodput_per_s,
    known_percentiles,
    outcome_counts,
    percentiles,
    sojourns,
    token_gaps_s,
    was_answered,
)
from testbed.analysis.utilisation import utilisations
from testbed.scenario.schema import Scenario

Json = dict[str, Any]


def stretch_figures(arm: MeasuredArm, part: Window) -> Json:
    """All that is told of a part of a run, over the requests planned in it."""
    scenario, tables, requests = arm.scenario, arm.tables, arm.tables["requests"]
    counted = rows(requests, part.holds(requests["planned_at_s"]))
    good_per_s = [
        goodput_per_s(
            rows(counted, counted["class"] == name), scenario, words.slo, part.to_s - part.from_s, arm.end_s
        )
        for name, words in scenario.classes.items()
        if words.slo is not None
    ]
    return {
        "from_s": part.from_s,
        "to_s": part.to_s,
        "requests": outcome_counts(counted),
        "resendings": {
            **resending_figures(_attempts_of(tables, counted), counted),
            "given_per_request": given_per_request(tables, part),
        },
        "goodput_per_s": sum(good_per_s) if good_per_s else math.nan,
        **waits(arm, counted),
        "oscillation": oscillation_in(arm, part),
        "cells": cell_figures(arm, counted, part),
        **routing_figures(scenario, tables, counted, part),
    }


def _attempts_of(tables: Tables, counted: Table) -> Table:
    """The sendings of some requests."""
    attempts = tables.get("attempts", {})
    if not row_count(attempts):
        return {}
    return rows(attempts, np.isin(attempts["request_id"], counted["request_id"]))


def waits(arm: MeasuredArm, requests: Table) -> Json:
    """Percentiles of the sojourn, of the time to the first token and of that between tokens, seconds."""
    return {
        "sojourn_s": percentiles(sojourns(requests, arm.scenario, arm.end_s)),
        "first_token_s": percentiles(first_tokens(requests, arm.scenario, arm.end_s)),
        "token_gap_s": known_percentiles(token_gaps_s(requests)),
    }


def oscillation_in(arm: MeasuredArm, window: Window) -> Json:
    """Amplitude, period and coherence of the requests in flight; null where the window is empty."""
    scenario, requests = arm.scenario, arm.tables["requests"]
    if window.to_s <= window.from_s:
        return _oscillation_figures(scenario, None)
    stays_s = requests["replied_at_s"] - requests["sent_at_s"]
    edges = grid_edges(window.from_s, window.to_s, arm.loop_delay_s, mean(stays_s[was_answered(requests)]))
    in_flight = in_flight_by_cell(requests, list(scenario.cells), edges)
    return _oscillation_figures(scenario, oscillation(in_flight, float(edges[1] - edges[0]), scenario.seed))


def _oscillation_figures(scenario: Scenario, found: Oscillation | None) -> Json:
    if found is None:
        return dict.fromkeys(("amplitude", "period_s", "significant", "coherence"))
    return {
        "amplitude": found.amplitude,
        "period_s": found.period_s,
        "significant": found.significant,
        "coherence": found.coherence,
        "coherence_threshold": found.threshold,
        "by_cell": dict(zip(scenario.cells, found.by_cell, strict=True)),
    }


def cell_figures(arm: MeasuredArm, counted: Table, window: Window) -> Json:
    """Share, requests in flight and utilisation of each cell, and the shares of its servers."""
    scenario, tables = arm.scenario, arm.tables
    sent = int((counted["cell"] != "").sum())
    busy = utilisations(arm.topology, tables.get("cells", {}), window)
    by_server = server_share_figures(scenario, tables["requests"], window)
    figures: Json = {}
    for cell in scenario.cells:
        requests = int((counted["cell"] == cell).sum())
        in_flight, deviation = _in_flight(tables["requests"], cell, window)
        figures[cell] = {
            "share": requests / sent if sent else math.nan,
            "requests": requests,
            "in_flight_mean": in_flight,
            "in_flight_sd": deviation,
            "utilisation": busy[cell],
            **by_server[cell],
        }
        scaled = server_counts(tables.get("scalings", {}), cell, window)
        if scaled is not None:
            figures[cell]["scaling"] = scaled
    return figures


def _in_flight(requests: Table, cell: str, window: Window) -> tuple[float, float]:
    """Time mean of the requests in flight, and the standard deviation of their means over 400 bins."""
    if window.to_s <= window.from_s:
        return math.nan, math.nan
    edges = grid_edges(window.from_s, window.to_s, math.nan, math.nan)
    means = in_flight_by_cell(requests, [cell], edges)[0]
    return float(means.mean()), float(means.std())
