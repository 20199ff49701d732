"""What old reports and own requests do to a whole run: the words of a view, seen in the records."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.laws.virtual_run import VirtualRun, run_text

CELL = """
name: views
duration: %(duration)s s
drain: 5 s
seed: 3
cells:
  us:
    servers: %(servers)s
    profile: small
    leaf: {policy: p, count: %(leaves)s}
    server_reports: %(reports)s
roots: {r: {traffic: [{class: c, rate: %(rate)s /s, policy: any}]}}
classes: {c: {prompt_tokens: 50, output_tokens: %(tokens)s, timeout: 20 s}}
policies:
  any: {kind: random}
  p: {kind: least_cost, cost: in_flight, ties: random, %(words)s}
links:
  - {from: "*", to: "*", delay: 1 ms}
"""
DEFAULTS = {
    "duration": 10,
    "servers": 4,
    "leaves": 1,
    "rate": 40,
    "tokens": 100,
    "words": "",
    "reports": "{every: 1 s}",
}


def run_cell(path: Any, **changes: Any) -> VirtualRun:
    return run_text(path / "main", CELL % {**DEFAULTS, **changes})


def top_share_per_period(run: VirtualRun, period_s: float) -> float:
    """The mean over periods of the largest share that one server got of a period's requests."""
    requests = run.tables["requests"]
    at_s = requests["at_leaf_s"]
    shares = []
    for since_s in np.arange(period_s, run.scenario.duration - period_s, period_s):
        inside = requests["server"][(at_s >= since_s) & (at_s < since_s + period_s)]
        shares.append(np.unique(inside, return_counts=True)[1].max() / len(inside))
    return float(np.mean(shares))


def test_own_requests_on_top_of_reports_end_the_herd_of_one_leaf(tmp_path):
    """Reports in phase, once a second: the idlest gets all of a period, unless own sends count meanwhile."""
    in_phase = "{every: 1 s, phase: in_phase}"
    shares = {
        own: top_share_per_period(run_cell(tmp_path / own, reports=in_phase, words=f"own_counts: {own}"), 1.0)
        for own in ("none", "overwrite", "add", "max")
    }

    assert shares["none"] > 0.8  # the others of the idlest's equals get the rest, early on
    for own in ("overwrite", "add", "max"):
        assert shares[own] < 0.45


def test_counts_scaled_by_the_number_of_leaves_spread_what_all_of_them_send(tmp_path):
    """Eight leaves that see the same reports add only their own few requests each, unless they add the others' too."""
    words = {"leaves": 8, "servers": 4, "rate": 60, "reports": "{every: 1 s, phase: in_phase}"}
    shares = {
        own: top_share_per_period(run_cell(tmp_path / own, words=f"own_counts: {own}", **words), 1.0)
        for own in ("none", "add", "scaled")
    }

    assert shares["none"] > 0.8
    assert shares["add"] > 0.6
    assert shares["scaled"] < 0.4


def test_a_limit_below_the_report_period_lets_requests_through_in_bursts(tmp_path):
    """Reports in phase every 2 s, trusted for 0.2 s: all that comes in the other 1.8 s waits for the next report."""
    reports = "{every: 2 s, phase: in_phase}"
    hold = "stale: full, stale_after: 200 ms, when_none: hold, hold_queue: 1000"
    held = run_cell(tmp_path / "hold", reports=reports, words=hold)
    requests = held.tables["requests"]
    done = requests["outcome"] == "completed"
    since_report_s = requests["at_server_s"][done] % 2.0

    assert done.all()
    assert (since_report_s < 0.21).all()
    waited_s = requests["at_server_s"] - requests["at_leaf_s"]
    assert waited_s.max() == pytest.approx(1.8, abs=0.1)
    assert np.mean(waited_s > 0.1) > 0.8

    cured = run_cell(tmp_path / "ignored", reports=reports, words="stale: ignored, stale_after: 200 ms")
    waited_s = cured.tables["requests"]["at_server_s"] - cured.tables["requests"]["at_leaf_s"]
    assert waited_s.max() == pytest.approx(0.001, abs=1e-9)


def test_what_a_short_queue_has_no_room_for_is_shed(tmp_path):
    words = "stale: full, stale_after: 200 ms, when_none: hold, hold_queue: 10"
    run = run_cell(tmp_path, reports="{every: 2 s, phase: in_phase}", words=words)

    outcomes = dict(zip(*np.unique(run.tables["requests"]["outcome"], return_counts=True), strict=True))
    assert set(outcomes) == {"completed", "shed"}
    assert outcomes["shed"] > outcomes["completed"]  # of 80 a period, 8 pass and 10 wait


SILENT = """
faults: [{at: 50 ms, link: {from: us/server-1, to: us/leaf-1, path: observation}, set: {loss: 100 %}}]
"""


@pytest.mark.parametrize(
    ("words", "least", "most"), [("", 0.6, 1.0), ("stale: ignored, stale_after: 1 s", 0.0, 0.0)]
)
def test_a_server_whose_reports_stop_attracts_all_unless_stale_is_ignored(tmp_path, words, least, most):
    """Its one report said that it was idle, and it stays the idlest for ever."""
    text = CELL % {**DEFAULTS, "words": words, "reports": "{every: 100 ms}", "rate": 40} + SILENT
    requests = run_text(tmp_path / "main", text).tables["requests"]
    late = requests["at_leaf_s"] > 2.0

    assert least <= np.mean(requests["server"][late] == "us/server-1") <= most
