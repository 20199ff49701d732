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


MARK = """
faults:
  - {at: 2 s, for: 5 s, server: us/server-1, set: {speed: 0.05}}
  - {at: 6 s, for: 6 s, link: {from: us/server-1, to: us/leaf-1, path: observation}, set: {loss: 100 %}}
"""


@pytest.mark.parametrize(
    ("reports", "least", "most"),
    [
        ("{every: 100 ms, send: on_change}", 0.0, 0.0),
        ("{every: 100 ms, send: on_change, lease: 1 s}", 0.15, 0.4),
        ("{every: 100 ms}", 0.15, 0.4),
    ],
)
def test_a_mark_whose_clearing_is_lost_stays_unless_reports_are_repeated(tmp_path, reports, least, most):
    """A server is slow while load is high, and what it says of its recovery is lost: of changes nobody hears again."""
    stages = "stages: [{at: 0 s, rate: 60 /s}, {at: 6 s, rate: 15 /s}]"
    text = CELL.replace("rate: %(rate)s /s", stages) % {**DEFAULTS, "reports": reports, "duration": 20} + MARK
    requests = run_text(tmp_path / "main", text).tables["requests"]
    late = requests["at_leaf_s"] > 14.0

    assert least <= np.mean(requests["server"][late] == "us/server-1") <= most


def news_of(run: VirtualRun) -> dict[str, np.ndarray]:
    return run.tables["observations"]


POLLED = """
name: polled
duration: 10 s
cells: {us: {servers: 1, service: {slots: 4, fixed: 10 ms}}, eu: {servers: 1, service: {slots: 4, fixed: 10 ms}}}
roots: {r: {traffic: [{class: c, rate: 40 /s, policy: least}]}}
classes: {c: {}}
reports: {every: 500 ms, send: when_polled, polls: %(polls)s}
policies: {least: {kind: least_cost}}
links:
  - {from: root.*, to: cell.*, path: probe, delay: 30 ms}
  - {from: cell.*, to: root.*, path: observation, delay: 70 ms}
"""


@pytest.mark.parametrize(("polls", "second_s"), [("parallel", 0.0), ("serial", 0.1)])
def test_a_poll_pays_the_link_both_ways_and_in_series_the_second_waits_for_the_first(
    tmp_path, polls, second_s
):
    """Asked at k R, measured 30 ms later, received 100 ms later; one after the other, the second 100 ms after that."""
    news = news_of(run_text(tmp_path / "main", POLLED % {"polls": polls}))

    for cell, later_s in (("us", 0.0), ("eu", second_s)):
        mine = news["cell"] == cell
        assert mine.sum() >= 20
        asked_s = news["received_at_s"][mine] - 0.1 - later_s
        assert asked_s == pytest.approx(0.5 * np.arange(mine.sum()), abs=1e-9)
        assert news["received_at_s"][mine] - news["measured_at_s"][mine] == pytest.approx(0.07, abs=1e-9)


def test_what_is_decided_within_a_decision_s_time_goes_where_the_first_goes(tmp_path):
    """Own counts split a burst evenly, unless a decision takes longer than the burst: then all see the view before it."""
    text = CELL.replace(
        "rate: %(rate)s /s",
        "stages: [{at: 0 s, rate: 0 /s}, {at: 2 s, rate: 400 /s}, {at: 2050 ms, rate: 0 /s}]",
    )
    shares = {}
    for name, words in (("at once", "own_counts: add"), ("slow", "own_counts: add, decision_time: 60 ms")):
        run = run_text(
            tmp_path / name.replace(" ", "_"),
            text.replace("ties: random", "ties: first") % {**DEFAULTS, "words": words},
        )
        server = run.tables["requests"]["server"]
        assert len(server) > 10
        shares[name] = np.unique(server, return_counts=True)[1].max() / len(server)

    assert shares["at once"] < 0.4
    assert shares["slow"] == 1.0


def test_requests_that_count_from_their_first_token_hide_a_burst_while_it_is_prefilled(tmp_path):
    """Prompts of 2,000 tokens take 0.13 s to their first token: all of a burst of 50 ms goes to the first server."""
    burst = "stages: [{at: 0 s, rate: 0 /s}, {at: 2 s, rate: 400 /s}, {at: 2050 ms, rate: 0 /s}]"
    text = CELL.replace("rate: %(rate)s /s", burst).replace("prompt_tokens: 50", "prompt_tokens: 2000")
    shares = {}
    for counts_from in ("dispatch", "first_token"):
        words = f"view: own_counts, counts_from: {counts_from}"
        filled = text.replace("ties: random", "ties: first") % {**DEFAULTS, "words": words}
        server = run_text(tmp_path / counts_from, filled).tables["requests"]["server"]
        shares[counts_from] = np.unique(server, return_counts=True)[1].max() / len(server)

    assert shares == {"dispatch": pytest.approx(0.25, abs=0.05), "first_token": 1.0}


def test_a_root_s_decision_time_is_in_the_sojourn_and_not_in_the_slip(tmp_path):
    text = POLLED.replace("{kind: least_cost}", "{kind: least_cost, decision_time: 40 ms}") % {
        "polls": "parallel"
    }
    requests = run_text(tmp_path / "main", text).tables["requests"]

    assert requests["held_s"] == pytest.approx(0.04)
    assert requests["sent_at_s"] - requests["planned_at_s"] == pytest.approx(0.04, abs=1e-9)
