"""An autoscaler in whole runs under virtual time: nothing is lost, bounds hold, and a loop without delay settles."""

from __future__ import annotations

import numpy as np
import pytest

from testbed.analysis.summary import summarize_arm
from tests.laws.test_resilience_laws import assert_sound
from tests.laws.virtual_run import run_text

TEXT = """
name: scale
duration: 20 s
warmup: 2 s
cells:
  us:
    servers: 10
    service: {{slots: 4, exponential: 200 ms}}
    leaf: {{policy: idlest}}
    autoscaler: {{in_flight: 2.5, every: 250 ms, min: 2, max: 9, start: 4, {words}}}
roots: {{a: {{traffic: [{{class: sand, rate: 50 /s, policy: even}}]}}}}
classes: {{sand: {{timeout: 20 s, cancel: true}}}}
policies:
  even: {{kind: random}}
  idlest: {{kind: least_cost, cost: in_flight, view: own_counts}}
links: [{{from: root.*, to: cell.*, delay: 5 ms}}]
"""
LATE = "reaction: 1 s, start_up: 1500 ms"
CALM = f"{LATE}, cooldown: 3 s, down_after: 6 s"


def run(path, words):
    return run_text(path, TEXT.format(words=words))


@pytest.mark.parametrize("words", [LATE, CALM])
def test_servers_stay_within_their_bounds_and_who_is_out_gets_nothing(tmp_path, words) -> None:
    found = run(tmp_path, words)

    scalings, rotations, requests = (found.tables[name] for name in ("scalings", "rotations", "requests"))
    assert scalings["in_use"].min() >= 2
    assert (scalings["in_use"] + scalings["starting"]).max() <= 9
    for server in dict.fromkeys(rotations["target"].tolist()):
        mine = rotations["target"] == server
        at_s, inside = rotations["at_s"][mine], rotations["inside"][mine]
        got_s = requests["at_leaf_s"][requests["server"] == server]
        last = np.searchsorted(at_s, got_s, side="left") - 1
        assert inside[last][last >= 0].all()
    assert not (requests["server"] == "us/server-10").any()
    assert_sound(found)


def test_a_late_autoscaler_swings_and_one_that_waits_for_what_it_did_does_not(tmp_path) -> None:
    figures = {}
    for name, words in (("late", LATE), ("calm", CALM)):
        found = run(tmp_path / name, words)
        figures[name] = summarize_arm(found.scenario, found.tables, found.outcome, ())

    late, calm = (figures[name]["cells"]["us"]["scaling"] for name in ("late", "calm"))
    assert late["sd"] > 2 * calm["sd"]
    assert late["turns"] > 2 + calm["turns"]
    assert figures["late"]["sojourn_s"]["p99"] > 1.5 * figures["calm"]["sojourn_s"]["p99"]


def test_an_autoscaler_without_room_changes_nothing(tmp_path) -> None:
    text = TEXT.replace("min: 2, max: 9, start: 4", "min: 10")
    off = run_text(tmp_path / "off", text.replace("    autoscaler:", "    # autoscaler:").format(words=""))
    on = run_text(tmp_path / "on", text.format(words="reaction: 0 s"))

    for name, column in off.tables["requests"].items():
        np.testing.assert_array_equal(column, on.tables["requests"][name], err_msg=name)
    assert len(off.tables["scalings"]["at_s"]) == 0 < len(on.tables["scalings"]["at_s"])
