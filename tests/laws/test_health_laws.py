"""Health checks, breakers and slow start in whole runs under virtual time."""

from __future__ import annotations

import numpy as np
import pytest

from tests.laws.test_resilience_laws import assert_sound
from tests.laws.virtual_run import run_text

TEXT = """
name: health
duration: 8 s
cells:
  us: {{servers: 4, service: {{slots: 8, fixed: 20 ms}}, leaf: {{policy: one, {leaf}}}}}
  eu: {{servers: 2, service: {{slots: 8, fixed: 20 ms}}, leaf: {{count: 2}}}}
roots:
  a: {{traffic: [{{class: sand, rate: 200 /s, policy: even}}], {root}}}
classes: {{sand: {{timeout: 300 ms, cancel: true}}}}
policies:
  even: {{kind: random}}
  one: {{kind: round_robin{policy}}}
links:
  - {{from: root.*, to: cell.*, delay: 5 ms}}
  - {{from: cell.*, to: root.*, delay: 5 ms}}
faults: [{faults}]
"""


def run(path, leaf="", root="", policy="", faults=""):
    return run_text(path, TEXT.format(leaf=leaf, root=root, policy=policy, faults=faults))


def sent_to(requests, column, name, from_s, to_s):
    at_s = requests["sent_at_s"]
    return int(((requests[column] == name) & (at_s >= from_s) & (at_s < to_s)).sum())


def test_a_leaf_leaves_out_a_dead_server_and_takes_it_in_again(tmp_path) -> None:
    checks = "health_checks: {every: 200 ms, timeout: 50 ms, unhealthy_after: 2}"
    found = run(tmp_path, leaf=checks, faults="{at: 2 s, for: 3 s, server: us/server-1, set: {kill: true}}")

    requests, rotations = found.tables["requests"], found.tables["rotations"]
    assert sent_to(requests, "server", "us/server-1", 0, 2) > 20
    assert sent_to(requests, "server", "us/server-1", 2.5, 5) == 0
    assert sent_to(requests, "server", "us/server-1", 5.5, 8) > 20
    assert rotations["target"].tolist() == ["us/server-1"] * 2
    assert rotations["inside"].tolist() == [False, True]
    assert 2 < rotations["at_s"][0] <= 2.45
    assert 5 < rotations["at_s"][1] <= 5.45
    assert_sound(found)


def test_a_root_sends_to_the_other_leaf_of_a_cell_and_to_the_other_cell_when_both_are_stopped(
    tmp_path,
) -> None:
    found = run(
        tmp_path,
        root="health_checks: {every: 200 ms, timeout: 50 ms, unhealthy_after: 2}",
        faults="{at: 1 s, for: 4 s, leaf: eu/leaf-1, set: {pause: true}}, {at: 3 s, for: 2 s, leaf: eu/leaf-2, set: {pause: true}}",
    )

    requests = found.tables["requests"]
    assert sent_to(requests, "leaf", "eu/leaf-1", 1.5, 5) == 0
    assert sent_to(requests, "leaf", "eu/leaf-2", 1.5, 3) > 50
    assert sent_to(requests, "cell", "eu", 3.5, 5) == 0
    assert sent_to(requests, "cell", "eu", 5.5, 8) > 50
    assert_sound(found)


def test_where_no_target_answers_checks_all_are_used(tmp_path) -> None:
    """The probe path alone is cut: requests pass, and none is refused."""
    found = run(
        tmp_path,
        leaf="health_checks: {every: 200 ms, timeout: 50 ms}",
        faults="{at: 2 s, for: 3 s, link: {from: us/leaf-1, to: us/server-*, path: probe}, set: {cut: true}}",
    )

    assert not found.tables["rotations"]["inside"][:4].any()
    assert (found.tables["requests"]["outcome"] == "completed").all()
    assert_sound(found)


@pytest.mark.parametrize(("most", "at_once"), [("25 %", 1), ("50 %", 2)])
def test_no_more_than_a_share_of_the_targets_is_ejected_at_a_time(tmp_path, most, at_once) -> None:
    """Three of four servers fail all they get; each ejection of one is longer than the one before."""
    found = run(
        tmp_path,
        policy=f", breaker: {{in_a_row: 3, out_for: 200 ms, most: {most}}}",
        faults="{at: 1 s, for: 6 s, server: 'us/server-[123]', set: {errors: 100 %}}",
    )

    rotations = found.tables["rotations"]
    out: set[str] = set()
    most_out = 0
    for target, inside in zip(rotations["target"], rotations["inside"], strict=True):
        (out.discard if inside else out.add)(target)
        most_out = max(most_out, len(out))
    assert most_out == at_once
    assert "us/server-4" not in rotations["target"].tolist()
    first = rotations["target"][0]
    again_s = np.diff(rotations["at_s"][(rotations["target"] == first) & ~rotations["inside"]])
    assert (again_s[1:4] > 1.5 * again_s[:3]).all()  # twice as long each time, up to 8 times
    assert_sound(found)


def test_a_server_that_comes_back_gets_a_share_that_grows(tmp_path) -> None:
    fault = "{at: 1 s, for: 1 s, server: us/server-1, set: {drain: true}}"
    shares = {}
    for name, policy in (("at once", ""), ("slowly", ", slow_start: {over: 5 s}")):
        found = run(tmp_path / name[:2], policy=policy, faults=fault)
        requests = found.tables["requests"]
        shares[name] = [
            sent_to(requests, "server", "us/server-1", at_s, at_s + 1.5)
            / sent_to(requests, "cell", "us", at_s, at_s + 1.5)
            for at_s in (2.0, 3.5, 6.5)
        ]
        assert_sound(found)

    assert shares["at once"] == pytest.approx([0.25] * 3, abs=0.03)
    assert shares["slowly"][0] < 0.1
    assert shares["slowly"][0] < shares["slowly"][1] < shares["slowly"][2]
    assert shares["slowly"][2] == pytest.approx(0.25, abs=0.05)


def test_checks_that_all_succeed_change_nothing_else(tmp_path) -> None:
    off = run(tmp_path / "off")
    on = run(
        tmp_path / "on",
        leaf="health_checks: {every: 200 ms}",
        root="health_checks: {every: 1 s}",
        policy=", slow_start: {over: 1 s}",
    )

    for name, column in off.tables["requests"].items():
        np.testing.assert_array_equal(column, on.tables["requests"][name], err_msg=name)
    assert len(on.tables["rotations"]["at_s"]) == 0
