"""Every fault of nodes takes hold under virtual time, with the asked size, and loses no request from the books."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from testbed.analysis.laws import all_laws
from testbed.analysis.records import ended_s
from testbed.scenario.topology import build_topology
from testbed.serving.profile import PROFILES
from tests.laws.virtual_run import VirtualRun, run_words

RATE_PER_S = 60
PROFILE = "llama3-8b_a100_tp1_composed"


def words(*faults: dict[str, Any], leaf: str = "idlest", **more: Any) -> dict[str, Any]:
    """Two cells of two servers, two roots, and these faults."""
    service = {"slots": 4, "exponential": "20 ms"}
    cell = {"servers": 2, "service": service, "leaf": {"policy": leaf}}
    traffic = [{"class": "c", "rate": f"{RATE_PER_S} /s", "policy": "even"}]
    return {
        "name": "node faults",
        "duration": "4 s",
        "drain": "5 s",
        "cells": {"a": cell, "b": dict(cell)},
        "roots": {"west": {"traffic": traffic}, "east": {"traffic": traffic}},
        "classes": {"c": {"timeout": "500 ms"}},
        "policies": {
            "prequal": {"kind": "prequal"},
            "jiq": {"kind": "jiq"},
            "even": {"kind": "random"},
            "greedy": {"kind": "least_cost"},
            "idlest": {"kind": "least_cost", "cost": "in_flight", "view": "own_counts"},
            "reported": {"kind": "least_cost", "cost": "in_flight"},
        },
        "links": [{"from": "*", "to": "*", "delay": "5 ms"}],
        "faults": list(faults),
        **more,
    }


def with_profile(given: dict[str, Any]) -> dict[str, Any]:
    """The same with GPU servers."""
    cell = {"servers": 2, "profile": PROFILE, "leaf": {"policy": "idlest"}}
    tokens = {"prompt_tokens": 512, "output_tokens": 4, "timeout": "5 s"}
    roots = {"west": {"traffic": [{"class": "c", "rate": "15 /s", "policy": "even"}]}}
    return {**given, "cells": {"a": cell, "b": cell}, "roots": roots, "classes": {"c": tokens}}


def alone_s(prefill: float, prompt_tokens: int) -> float:
    """Time to the first token of a request that such a server has alone, at a factor on the time of its prefill."""
    profile = PROFILES[PROFILE]
    return profile.decode_a_s + prefill * profile.prefill_b_s * prompt_tokens


def arrived(run: VirtualRun, column: str, name: str, at: str, from_s: float, until_s: float) -> int:
    """Requests that came to a node in a span of time."""
    requests = run.tables["requests"]
    mine = (requests[column] == name) & (requests[at] >= from_s) & (requests[at] < until_s)
    return int(mine.sum())


def fault_rows(run: VirtualRun) -> list[dict[str, Any]]:
    """The table of faults, row by row."""
    columns = run.tables["faults"]
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def assert_books_balance(run: VirtualRun) -> None:
    """No ledger has a gap, every request has its outcome, and the laws hold."""
    assert [line for line in run.outcome.ledger if line.gap] == []
    topology = build_topology(run.scenario)
    laws = all_laws(run.scenario, topology, run.tables, ended_s(run.scenario, run.outcome))
    assert [law for law in laws if not law.holds] == []


def assert_no_fault_is_silent(run: VirtualRun) -> None:
    """Every node that a fault was to touch did it, or was dead all the while."""
    for fault in fault_rows(run):
        assert fault["nodes_applied"] + fault["nodes_missed"] == fault["nodes_expected"], fault


def test_a_killed_server_is_silent_and_serves_again_once_it_is_back(tmp_path: Path) -> None:
    """What is open there is lost with it: nobody says so, and the leaf finds out by its timeout."""
    run = run_words(
        tmp_path, words({"at": "1 s", "for": "1 s", "server": "a/server-1", "set": {"kill": True}})
    )

    requests = run.tables["requests"]
    assert arrived(run, "server", "a/server-1", "at_server_s", 1.0, 2.0) == 0
    assert arrived(run, "server", "a/server-1", "at_server_s", 2.0, 4.0) > 20
    finished = requests["finished_at_s"][requests["server"] == "a/server-1"]
    assert not ((finished > 1.0) & (finished < 2.0)).any()
    assert (requests["outcome"] == "timed_out").sum() > 0
    (fault,) = fault_rows(run)
    assert (fault["applied_at_s"], fault["healed_at_s"]) == (1.0, 2.0)
    assert fault["nodes_expected"] == fault["nodes_applied"] == fault["nodes_healed"] == 2
    dead = {(line.source, line.target): line.dropped["dead"] for line in run.outcome.ledger}
    assert dead["a/leaf-1", "a/server-1"] > 0
    assert sum(count for (_, target), count in dead.items() if target != "a/server-1") == 0
    assert_books_balance(run)


def test_a_server_that_was_killed_for_good_stays_dead(tmp_path: Path) -> None:
    """The end of the run heals no corpse."""
    run = run_words(tmp_path, words({"at": "1 s", "server": "a/server-1", "set": {"kill": True}}))

    assert arrived(run, "server", "a/server-1", "at_server_s", 1.0, 10.0) == 0
    (fault,) = fault_rows(run)
    assert np.isnan(fault["healed_at_s"])
    assert_books_balance(run)


def test_a_killed_leaf_takes_its_cell_away(tmp_path: Path) -> None:
    """The roots time out; what the leaf had open is lost with it, and late replies to it are nobody's."""
    run = run_words(
        tmp_path, words({"at": "1 s", "for": "500 ms", "leaf": "a/leaf-1", "set": {"kill": True}})
    )

    assert arrived(run, "leaf", "a/leaf-1", "at_leaf_s", 1.0, 1.5) == 0
    assert arrived(run, "leaf", "a/leaf-1", "at_leaf_s", 1.5, 4.0) > 20
    assert_books_balance(run)


def test_a_killed_root_loses_what_is_open_and_what_arrives_meanwhile(tmp_path: Path) -> None:
    """Its clients have nobody to ask; once it is back it goes on with the plan."""
    run = run_words(tmp_path, words({"at": "950 ms", "for": "1 s", "root": "west", "set": {"kill": True}}))

    requests = run.tables["requests"]
    west = requests["root"] == "root.west"
    meanwhile = west & (requests["planned_at_s"] >= 0.95) & (requests["planned_at_s"] < 1.95)
    assert meanwhile.sum() > 20
    assert (requests["outcome"][meanwhile] == "lost").all()
    assert np.isnan(requests["sent_at_s"][meanwhile]).all()
    opened = west & (requests["outcome"] == "lost") & ~meanwhile
    assert (requests["sent_at_s"][opened] < 0.95).all()
    assert opened.sum() > 0
    assert (requests["outcome"][west & (requests["planned_at_s"] >= 1.95)] == "completed").all()
    assert (requests["outcome"][~west] == "completed").all()
    assert_books_balance(run)


def test_a_whole_cell_can_be_killed_and_comes_back(tmp_path: Path) -> None:
    """Its leaf and its servers together."""
    run = run_words(tmp_path, words({"at": "1 s", "for": "1 s", "cell": "a", "set": {"kill": True}}))

    assert arrived(run, "cell", "a", "at_leaf_s", 1.0, 2.0) == 0
    assert arrived(run, "cell", "a", "finished_at_s", 2.0, 5.0) > 20
    assert_books_balance(run)


def test_a_paused_root_hears_a_burst_of_old_news_when_it_goes_on(tmp_path: Path) -> None:
    """Reports of two cells every 100 ms for a second, all received in one instant, in the order of their measurement."""
    run = run_words(tmp_path, words({"at": "1 s", "for": "1 s", "root": "west", "set": {"pause": True}}))

    seen = run.tables["observations"]
    burst = (seen["root"] == "root.west") & (seen["received_at_s"] == 2.0)
    assert burst.sum() == 20
    assert (np.diff(seen["measured_at_s"][burst]) >= 0).all()
    requests = run.tables["requests"]
    held_up = (
        (requests["root"] == "root.west")
        & (requests["planned_at_s"] > 1.0)
        & (requests["planned_at_s"] < 2.0)
    )
    assert (requests["sent_at_s"][held_up] == 2.0).all()
    assert_books_balance(run)


def test_a_paused_leaf_coalesces_its_reports(tmp_path: Path) -> None:
    """One report for the ten that it missed, and then its old schedule again."""
    run = run_words(tmp_path, words({"at": "1 s", "for": "1 s", "leaf": "a/leaf-1", "set": {"pause": True}}))

    seen = run.tables["observations"]
    mine = (seen["leaf"] == "a/leaf-1") & (seen["root"] == "root.west")
    measured = seen["measured_at_s"][mine]
    assert ((measured > 1.0) & (measured < 2.0)).sum() == 0
    assert (measured == 2.0).sum() == 1
    assert (np.diff(seen["sequence"][mine]) == 1).all()
    assert_books_balance(run)


def test_a_pause_that_lasts_to_the_end_heals_there(tmp_path: Path) -> None:
    """Nothing stays stopped."""
    given = words({"at": "3 s", "server": "a/server-1", "set": {"pause": True}}, drain="1 s")

    run = run_words(tmp_path, given)

    (fault,) = fault_rows(run)
    assert fault["nodes_healed"] == 1
    assert_books_balance(run)


def test_a_kill_ends_a_pause_and_takes_what_had_waited(tmp_path: Path) -> None:
    """Killed while it was stopped: nothing of what came meanwhile is handled."""
    faults = (
        {"at": "1 s", "for": "1 s", "server": "a/server-1", "set": {"pause": True}},
        {"at": "1500 ms", "for": "1 s", "server": "a/server-1", "set": {"kill": True}},
        {"at": "1700 ms", "for": "2 s", "server": "a/server-1", "set": {"speed": 0.5}},
    )

    run = run_words(tmp_path, words(*faults))

    assert arrived(run, "server", "a/server-1", "at_server_s", 1.0, 2.5) == 0
    _pause, kill, slow = fault_rows(run)
    assert (kill["applied_at_s"], kill["healed_at_s"]) == (1.5, 2.5)
    assert (slow["applied_at_s"], slow["healed_at_s"]) == (2.5, 3.7)  # told to the new process
    assert_books_balance(run)


def test_who_is_stopped_for_all_of_a_fault_makes_and_heals_it_late(tmp_path: Path) -> None:
    """When it goes on, with the instant of that in the records; one that is stopped to the end does so there."""
    faults = (
        {"at": "1 s", "for": "1 s", "server": "a/server-1", "set": {"pause": True}},
        {"at": "1200 ms", "for": "300 ms", "cell": "a", "set": {"speed": 0.5}},
        {"at": "3 s", "leaf": "b/leaf-1", "set": {"pause": True}},
        {"at": "3200 ms", "for": "300 ms", "leaf": "b/leaf-1", "set": {"gauge_offset": 1}},
        {"at": "3300 ms", "leaf": "b/leaf-1", "set": {"gauge_offset": 2}},
    )

    run = run_words(tmp_path, words(*faults))

    _, slow, _, lie, lie_for_good = fault_rows(run)
    assert (slow["applied_at_s"], slow["healed_at_s"]) == (2.0, 2.0)
    assert (slow["nodes_applied"], slow["nodes_healed"], slow["nodes_missed"]) == (2, 2, 0)
    for fault in (lie, lie_for_good):
        assert fault["applied_at_s"] == fault["healed_at_s"] == pytest.approx(run.outcome.ended_at_s)
        assert (fault["nodes_applied"], fault["nodes_healed"], fault["nodes_missed"]) == (1, 1, 0)
    assert_books_balance(run)


def test_who_is_dead_for_all_of_a_fault_has_missed_it(tmp_path: Path) -> None:
    """Nobody could make it. A fault that was at work when the process died has healed when the next one begins."""
    faults = (
        {"at": "1 s", "for": "1 s", "server": "a/server-1", "set": {"kill": True}},
        {"at": "1200 ms", "for": "300 ms", "cell": "a", "set": {"speed": 0.5}},
        {"at": "500 ms", "for": "1 s", "server": "a/server-1", "set": {"errors": "10 %"}},
        {"at": "1500 ms", "for": "1 s", "server": "a/server-1", "set": {"errors": "20 %"}},
        {"at": "3 s", "server": "b/server-1", "set": {"pause": True}},
        {"at": "3300 ms", "server": "b/server-1", "set": {"kill": True}},
        {"at": "3100 ms", "server": "b/server-1", "set": {"speed": 0.5}},
    )

    run = run_words(tmp_path, words(*faults))

    _, slow, before, after, _, _, never = fault_rows(run)
    assert (slow["nodes_applied"], slow["nodes_missed"]) == (1, 1)
    assert (before["healed_at_s"], before["nodes_healed"]) == (2.0, 1)
    assert (after["applied_at_s"], after["healed_at_s"]) == (2.0, 2.5)
    assert (never["nodes_applied"], never["nodes_missed"]) == (0, 1)
    assert_no_fault_is_silent(run)
    assert_books_balance(run)


def test_the_asked_fraction_of_requests_fails_after_the_asked_time(tmp_path: Path) -> None:
    """Within three standard errors of 30 %; the others are served."""
    given = words({"at": "0 s", "cell": "a", "set": {"errors": "30 %", "error_after": "50 ms"}})

    run = run_words(tmp_path, given)

    requests = run.tables["requests"]
    here = requests["cell"] == "a"
    failed = here & (requests["outcome"] == "failed")
    assert abs(failed.sum() / here.sum() - 0.3) < 3 * np.sqrt(0.3 * 0.7 / here.sum())
    assert requests["left_leaf_s"][failed] - requests["at_leaf_s"][failed] == pytest.approx(0.060)
    assert not (requests["outcome"][~here] == "failed").any()
    assert_books_balance(run)


def test_a_cold_server_prefills_slowly_for_a_while(tmp_path: Path) -> None:
    """The first token of a request that is alone takes a step and its prefill, which is five times as long until it is warm."""
    given = with_profile(words({"at": "0 s", "for": "2 s", "cell": "a", "set": {"prefill": "x5"}}))

    run = run_words(tmp_path, given)

    requests = run.tables["requests"]
    first_s = requests["first_token_at_s"] - requests["started_at_s"]
    early, here = requests["started_at_s"] < 2.0, requests["cell"] == "a"
    cold_s, warm_s = (alone_s(factor, prompt_tokens=512) for factor in (5, 1))
    assert first_s[early & here].min() == pytest.approx(cold_s)
    assert first_s[early & ~here].min() == pytest.approx(warm_s)
    assert first_s[~early & here].min() == pytest.approx(warm_s)
    assert np.median(first_s[early & here]) < 1.5 * cold_s  # most are alone, or nearly so
    assert_books_balance(run)


def test_a_drained_server_finishes_what_it_has_and_takes_nothing_new(tmp_path: Path) -> None:
    """Nothing fails, and after the heal it is chosen again."""
    run = run_words(
        tmp_path, words({"at": "1 s", "for": "1 s", "server": "a/server-1", "set": {"drain": True}})
    )

    assert arrived(run, "server", "a/server-1", "at_server_s", 1.005001, 2.0) == 0
    assert arrived(run, "server", "a/server-1", "at_server_s", 2.0, 4.0) > 20
    assert (run.tables["requests"]["outcome"] == "completed").all()
    assert_books_balance(run)


def test_a_drained_cell_gets_no_requests_of_roots(tmp_path: Path) -> None:
    """Both roots stop choosing it at once."""
    run = run_words(tmp_path, words({"at": "1 s", "for": "1 s", "cell": "a", "set": {"drain": True}}))

    assert arrived(run, "cell", "a", "sent_at_s", 1.0, 2.0) == 0
    assert arrived(run, "cell", "a", "sent_at_s", 2.0, 4.0) > 20
    (fault,) = fault_rows(run)
    assert fault["nodes_applied"] == fault["nodes_healed"] == 2
    assert_books_balance(run)


def test_absent_servers_join_when_their_absence_ends(tmp_path: Path) -> None:
    """Scaling up in the middle of a run: one server from the start, two from second 2 on."""
    given = words({"at": "0 s", "for": "2 s", "server": "*/server-2", "set": {"absent": True}})

    run = run_words(tmp_path, given)

    assert arrived(run, "server", "a/server-2", "at_server_s", 0.0, 2.0) == 0
    assert arrived(run, "server", "a/server-2", "at_server_s", 2.0, 4.0) > 20
    assert_books_balance(run)


def test_a_cell_without_any_server_left_refuses(tmp_path: Path) -> None:
    """All drained at once: no target, and no request is forgotten."""
    run = run_words(tmp_path, words({"at": "1 s", "for": "1 s", "server": "a/*", "set": {"drain": True}}))

    requests = run.tables["requests"]
    meanwhile = (requests["cell"] == "a") & (requests["at_leaf_s"] > 1.0) & (requests["at_leaf_s"] < 2.0)
    assert meanwhile.sum() > 20
    assert (requests["outcome"][meanwhile] == "no_target").all()
    assert_books_balance(run)


def test_frozen_telemetry_repeats_old_values_under_fresh_stamps(tmp_path: Path) -> None:
    """The reports keep coming, each measured later than the one before, and all say the same."""
    run = run_words(tmp_path, words({"at": "1 s", "for": "2 s", "cell": "a", "set": {"telemetry": "frozen"}}))

    seen = run.tables["observations"]
    here = (seen["cell"] == "a") & (seen["root"] == "root.west")
    frozen = here & (seen["measured_at_s"] >= 1.0) & (seen["measured_at_s"] < 3.0)
    assert frozen.sum() == 20
    assert len(set(seen["running"][frozen])) == 1
    assert len(set(seen["arrivals"][frozen])) == 1
    assert (np.diff(seen["measured_at_s"][frozen]) > 0.09).all()
    assert len(set(seen["arrivals"][here & ~frozen])) > 10
    assert seen["received_at_s"] - seen["measured_at_s"] == pytest.approx(0.005)  # sent as it was measured
    assert_books_balance(run)


def test_silent_telemetry_sends_no_reports(tmp_path: Path) -> None:
    """Requests go on as ever; the view only grows old."""
    run = run_words(tmp_path, words({"at": "1 s", "for": "1 s", "cell": "a", "set": {"telemetry": "silent"}}))

    seen = run.tables["observations"]
    measured = seen["measured_at_s"][seen["cell"] == "a"]
    assert ((measured >= 1.0) & (measured < 2.0)).sum() == 0
    assert ((measured >= 2.0) & (measured < 3.0)).sum() == 20
    assert arrived(run, "cell", "a", "at_leaf_s", 1.0, 2.0) > 20


def test_gauges_lie_by_a_factor_and_an_offset(tmp_path: Path) -> None:
    """Roots believe no cell at a third of its load and five more; the truth in the records is the truth."""
    lie = {"at": "0 s", "cell": "a", "set": {"gauge_factor": 0.5, "gauge_offset": 5}}

    told = run_words(tmp_path / "told", words(lie)).tables["observations"]
    true = run_words(tmp_path / "true", words()).tables["observations"]

    mine = told["cell"] == "a"
    assert (told["measured_at_s"] == true["measured_at_s"]).all()
    assert (told["running"][mine] == np.round(0.5 * true["running"][mine] + 5)).all()
    assert (told["running"][~mine] == true["running"][~mine]).all()


def test_clocks_that_are_off_change_what_is_claimed_and_not_what_is_recorded(tmp_path: Path) -> None:
    """A skew of -200 ms and a drift of 10 %: the error stands beside each claimed stamp."""
    off = {"at": "1 s", "cell": "a", "set": {"clock_skew": "-200 ms", "clock_drift": "10 %"}}

    seen = run_words(tmp_path, words(off)).tables["observations"]

    true_s = seen["measured_at_s"] - seen["clock_error_s"]
    late = (seen["cell"] == "a") & (true_s >= 1.0)
    assert seen["clock_error_s"][late] == pytest.approx(-0.2 + 0.1 * (true_s[late] - 1.0))
    assert (seen["clock_error_s"][~late] == 0).all()
    assert seen["received_at_s"] - true_s == pytest.approx(0.005)


def test_a_leak_keeps_requests_given_up_in_the_count(tmp_path: Path) -> None:
    """A leaf whose count of timeouts leaks shuns the server that was slow once, long after it is well again."""
    slow = {"at": "0 s", "for": "1 s", "server": "a/server-1", "set": {"speed": 0.001}}
    leak = {"at": "0 s", "cell": "a", "set": {"leak": "100 %"}}

    sound = run_words(tmp_path / "sound", words(slow))
    leaking = run_words(tmp_path / "leaking", words(slow, leak))

    assert arrived(sound, "server", "a/server-1", "at_server_s", 2.5, 4.0) > 20
    chosen, shunned = (
        arrived(run, "server", "a/server-1", "at_server_s", 2.5, 4.0) for run in (sound, leaking)
    )
    assert shunned < 0.5 * chosen
    assert_books_balance(leaking)


def test_counts_that_are_reset_send_all_to_the_server_that_had_most_open(tmp_path: Path) -> None:
    """It stood when the counts were reset; once it is well its count is below nought, and it looks empty for good."""
    slow = {"at": "0 s", "for": "1 s", "server": "a/server-1", "set": {"speed": 0.001}}
    reset = {"at": "800 ms", "leaf": "a/leaf-1", "set": {"reset_counts": True}}
    other = {"at": "800 ms", "leaf": "b/leaf-1", "set": {"reset_counts": True}}

    sound, drifted, elsewhere = (
        run_words(tmp_path / name, words(slow, *more))
        for name, more in (("sound", ()), ("drifted", (reset,)), ("elsewhere", (other,)))
    )

    here = [
        [arrived(run, "server", f"a/server-{k}", "at_server_s", 2.0, 4.0) for k in (1, 2)]
        for run in (sound, drifted, elsewhere)
    ]
    assert 0.4 < here[0][0] / sum(here[0]) < 0.6
    assert here[1][0] > 3 * here[1][1]
    assert here[2] == here[0]
    (_, fault) = fault_rows(drifted)
    assert (fault["applied_at_s"], fault["nodes_applied"], fault["nodes_expected"]) == (0.8, 1, 1)
    assert_books_balance(drifted)


def test_a_root_hears_nothing_of_a_cell_whose_reports_are_lost(tmp_path: Path) -> None:
    """All of one cell for a second; what comes of it where only changes are told: `live/test_balancers_misled.py`."""
    lost = {
        "at": "1 s",
        "for": "1 s",
        "link": {"from": "cell.a", "to": "root.west", "path": "observation"},
        "set": {"loss": "100 %"},
    }

    seen = run_words(tmp_path, words(lost)).tables["observations"]

    measured = seen["measured_at_s"][(seen["cell"] == "a") & (seen["root"] == "root.west")]
    assert ((measured >= 1.0) & (measured < 2.0)).sum() == 0


@pytest.mark.parametrize("leaf", ["idlest", "reported", "even"])
def test_the_same_faults_give_the_same_run(tmp_path: Path, leaf: str) -> None:
    """Two runs with kills, pauses and drains: the same requests to the same servers at the same instants."""
    faults = (
        {
            "at": "500 ms",
            "for": "500 ms",
            "pick": "one",
            "server": "*",
            "set": {"kill": True},
            "every": "1 s",
        },
        {"at": "800 ms", "for": "300 ms", "pick": "one", "leaf": "*", "set": {"pause": True}, "every": "1 s"},
    )

    one, other = (run_words(tmp_path / name, words(*faults, leaf=leaf)) for name in ("one", "other"))

    for column in ("server", "replied_at_s", "outcome"):
        assert np.array_equal(
            one.tables["requests"][column].astype(str), other.tables["requests"][column].astype(str)
        )
    assert_books_balance(one)
