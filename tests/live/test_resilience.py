"""Retries, hedging, health checks and scaling between real processes: the laws hold, and each of them did something."""

from __future__ import annotations

import numpy as np
import pytest

from testbed.analysis.laws import all_laws
from testbed.analysis.records import ended_s
from testbed.experiment import run_arm
from testbed.record.outcome import load_outcome
from testbed.record.read import read_tables
from testbed.record.run_folder import ArmFolder
from testbed.scenario.load import scenario_from_text
from testbed.scenario.topology import build_topology
from tests.laws.chaos import ledger_gaps
from tests.laws.virtual_run import silent

pytestmark = pytest.mark.live

TEXT = """
name: guarded
duration: 5 s
drain: 5 s
cells:
  us:
    servers: 3
    service: {slots: 4, exponential: 40 ms}
    leaf:
      policy: turns
      retries: {attempt_timeout: 300 ms}
      hedging: {after: 100 ms, budget: 20 %}
      health_checks: {every: 200 ms}
  eu:
    servers: 3
    service: {slots: 4, exponential: 40 ms}
    autoscaler: {in_flight: 1, every: 250 ms, start_up: 250 ms, min: 1}
roots:
  a: {traffic: [{class: sand, rate: 60 /s, policy: even}]}
classes: {sand: {timeout: 2 s, cancel: true, hedging: {after: 250 ms, budget: 20 %}}}
policies:
  even: {kind: random, slow_start: {over: 1 s}}
  turns: {kind: round_robin, slow_start: {over: 1 s}}
links: [{from: root.*, to: cell.*, delay: 10 ms}, {from: cell.*, to: root.*, delay: 10 ms}]
faults:
  - {at: 1 s, for: 1500 ms, server: us/server-1, set: {kill: true}}
  - {at: 3 s, for: 1500 ms, server: us/server-2, set: {errors: 50 %, error_after: 5 ms}}
"""


def test_guards_against_failure_lose_no_request_between_processes(tmp_path):
    scenario = scenario_from_text(TEXT).arms["main"]
    folder = ArmFolder(tmp_path)

    run_arm(folder, scenario, "live", silent)

    tables, outcome = read_tables(folder.tables), load_outcome(folder.outcome)
    assert outcome.drained
    assert outcome.deaths == ()
    assert ledger_gaps(outcome) == []
    laws = all_laws(scenario, build_topology(scenario), tables, ended_s(scenario, outcome))
    assert [law for law in laws if not law.holds] == []
    requests, attempts, rotations = tables["requests"], tables["attempts"], tables["rotations"]
    assert (requests["outcome"] == "completed").mean() > 0.9
    assert {"first", "retry", "hedge"} <= set(attempts["cause"].tolist())
    completed = attempts["request_id"][
        (attempts["outcome"] == "completed") & (attempts["leaf_outcome"] == "completed")
    ]
    assert len(np.unique(completed)) == len(completed)  # one answer each
    checked = (rotations["cause"] == "health") & (rotations["target"] == "us/server-1")
    assert rotations["inside"][checked].tolist()[:2] == [False, True]
    assert tables["scalings"]["in_use"].max() > 1
