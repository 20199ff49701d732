"""Where only changes are reported, the loop is as long as if every look were: what is believed is the last look's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from testbed.analysis.loop_delay import predicted_loop_delay_s
from testbed.scenario.topology import build_topology
from tests.laws.virtual_run import VirtualRun, run_text

WARM_S, PERIOD_S, LATE_S, TRAVEL_S = 2.0, 0.1, 0.2, 0.01
LOOKS_FROM_S = {"us": 0.0, "eu": PERIOD_S / 2}  # two leaves that look in turn
CHANGES = """
name: changes
duration: 20 s
warmup: 2 s
seed: 8
cells: {us: {servers: 2, service: {slots: 2, exponential: 60 ms}}, eu: {servers: 2, service: {slots: 2, exponential: 60 ms}}}
roots:
  near: {traffic: [{class: c, rate: 30 /s, policy: p}]}
  far: {traffic: [{class: c, rate: 30 /s, policy: p}]}
classes: {c: {}}
reports: {every: 100 ms, send: on_change, threshold: THRESHOLD}
policies: {p: {kind: flow, step: 0.01 /s^2, interval: 73 ms}}
links:
  - {from: root.*, to: cell.*, delay: 10 ms}
  - {from: cell.*, to: root.*, path: observation, delay: 200 ms}
records: {samples: 10 s, decisions: 0 %}
"""


def looks_s(run: VirtualRun, cell: str, used_at_s: np.ndarray) -> np.ndarray:
    """The instant of the last look at a cell of which there was news at each of these, had every look been reported."""
    phase_s = LOOKS_FROM_S[cell]
    return phase_s + PERIOD_S * np.floor((used_at_s - LATE_S - phase_s) / PERIOD_S)


def in_cell(run: VirtualRun, cell: str, at_s: np.ndarray) -> np.ndarray:
    """Requests at a cell's leaf at these instants."""
    requests = run.tables["requests"]
    mine = requests["cell"] == cell
    entered, left = np.sort(requests["at_leaf_s"][mine]), np.sort(requests["left_leaf_s"][mine])
    return np.searchsorted(entered, at_s, side="right") - np.searchsorted(left, at_s, side="right")


def used(run: VirtualRun, cell: str) -> dict[str, Any]:
    """The updates of all roots, as they saw a cell after the warm-up."""
    updates = run.tables["updates"]
    mine = (updates["cell"] == cell) & (updates["used_at_s"] > WARM_S)
    return {name: column[mine] for name, column in updates.items()}


@pytest.mark.parametrize("threshold", [1, 2, 4])
def test_what_is_believed_is_the_last_look_s_to_within_the_threshold(tmp_path, threshold):
    """Silence is news: with a threshold of 1 every belief is exact, however old the report that it stands in."""
    run = run_text(tmp_path, CHANGES.replace("THRESHOLD", str(threshold)))

    for cell in LOOKS_FROM_S:
        uses = used(run, cell)
        looked_s = looks_s(run, cell, uses["used_at_s"])
        off = np.abs(uses["believed_in_flight"] - in_cell(run, cell, looked_s))
        assert len(off) > 400
        assert off.max() == threshold - 1
        assert (
            uses["measured_at_s"] < looked_s - PERIOD_S / 2
        ).mean() > 0.05 * threshold  # looks without a report


def test_the_loop_from_the_last_look_is_the_predicted_one(tmp_path):
    """Travel + delay of observations + R/2, within 1 %; the report itself is older, by the looks that were silent."""
    run = run_text(tmp_path, CHANGES.replace("THRESHOLD", "4"))

    for cell in LOOKS_FROM_S:
        uses = used(run, cell)
        age_s = uses["used_at_s"] - looks_s(run, cell, uses["used_at_s"])
        predicted_s = predicted_loop_delay_s(run.scenario, build_topology(run.scenario))
        assert TRAVEL_S + age_s.mean() == pytest.approx(predicted_s, rel=0.01)
        assert TRAVEL_S + (uses["used_at_s"] - uses["measured_at_s"]).mean() > predicted_s + PERIOD_S
