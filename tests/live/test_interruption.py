"""What the user sees when a run is stopped or something dies in it: data kept, the right words, the right status."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from testbed.record.read import read_tables

pytestmark = [pytest.mark.live, pytest.mark.untimed]

CHECKOUT = Path(__file__).parents[2]
WAIT_S = 60.0  # far above what any step takes, also on a busy host
TEXT = """
name: stopped
duration: 120 s
cells: {us: {servers: 3, profile: llama3-8b_a100_tp1_composed}}
roots: {r: {traffic: [{class: c, rate: 200 /s, policy: p}]}}
classes: {c: {output_tokens: 4}}
policies: {p: {kind: random}}
links:
  - {from: root.*, to: cell.*, path: request, delay: 10 ms}
faults:
  - {at: 0 s, link: {from: root.*, to: cell.*, path: request}, set: {delay: x2}}
  - {at: 0.5 s, server: us/server-3, set: {pause: true}}
"""


def start(folder: Path, text: str = TEXT) -> subprocess.Popen[str]:
    (folder / "scenario.yaml").write_text(text)
    return subprocess.Popen(
        [sys.executable, "-m", "testbed", "run", "scenario.yaml", "--out", "run", "--no-figures"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_until_served(folder: Path) -> dict[str, dict[str, int]]:
    """Wait until a server has written records; who is who."""
    arm = folder / "run" / "arms" / "main"
    log = arm / "logs" / "us_server-1.log"
    until_s = time.monotonic() + WAIT_S
    while time.monotonic() < until_s:
        if log.exists() and b"services" in log.read_bytes()[-40_000:] and log.stat().st_size > 12_000:
            return json.loads((arm / "processes.json").read_text())
        time.sleep(0.1)
    raise AssertionError("no server has written records")


def arm_summary(folder: Path) -> dict:
    return json.loads((folder / "run" / "summary.json").read_text())["arms"]["main"]


def assert_all_healed(folder: Path) -> None:
    """The faults were for good, one stopped a process, and all are healed where they were at work."""
    faults = read_tables(folder / "run" / "arms" / "main" / "tables")["faults"]
    assert faults["nodes_healed"].tolist() == faults["nodes_applied"].tolist() == [1, 1]


def test_ctrl_c_keeps_the_data_merges_it_and_exits_130(tmp_path):
    process = start(tmp_path)
    wait_until_served(tmp_path)

    process.send_signal(signal.SIGINT)
    said, errors = process.communicate(timeout=WAIT_S)

    assert process.returncode == 130, said + errors
    assert "Traceback" not in errors
    summary = arm_summary(tmp_path)
    assert summary["verdict"] == "incomplete"
    assert summary["requests"]["completed"] > 0
    requests = read_tables(tmp_path / "run" / "arms" / "main" / "tables")["requests"]
    assert (requests["outcome"] == "completed").sum() == summary["requests"]["completed"]
    assert_all_healed(tmp_path)


def test_ctrl_c_as_a_later_arm_starts_keeps_the_arms_before_it(tmp_path):
    """Whether the second arm has begun by then or not, the first is whole."""
    text = TEXT.replace("duration: 120 s", "duration: 1 s").partition("faults:")[0]
    process = start(tmp_path, text + "arms: {first: {}, second: {duration: 120 s}}\n")
    second = tmp_path / "run" / "arms" / "second" / "scenario.yaml"
    until_s = time.monotonic() + WAIT_S
    while not second.exists() and time.monotonic() < until_s:
        time.sleep(0.01)

    process.send_signal(signal.SIGINT)
    said, errors = process.communicate(timeout=WAIT_S)

    assert process.returncode == 130, said + errors
    assert "Traceback" not in errors
    arms = json.loads((tmp_path / "run" / "summary.json").read_text())["arms"]
    assert arms["first"]["requests"]["completed"] == arms["first"]["requests"]["planned"] > 0


def test_a_killed_server_makes_the_run_incomplete_and_is_named(tmp_path):
    process = start(tmp_path)
    pids = wait_until_served(tmp_path)

    os.kill(pids["us/server-2"]["pid"], signal.SIGKILL)
    said, errors = process.communicate(timeout=WAIT_S)

    assert process.returncode == 5, said + errors
    assert "us/server-2 died (signal 9)" in said
    summary = arm_summary(tmp_path)
    assert summary["verdict"] == "incomplete"
    assert summary["requests"]["completed"] > 0
    assert_all_healed(tmp_path)
