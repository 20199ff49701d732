"""Slowdown: 1 in an empty system, whatever the request; and by hand for one that waits."""

from __future__ import annotations

import numpy as np
import pytest

from testbed.analysis.slowdown import alone_s, empty_sojourns_s, slowdown
from testbed.scenario.topology import build_topology
from testbed.serving.profile import PROFILES
from tests.laws.virtual_run import run_text

EMPTY = """
name: empty
duration: 200 s
seed: 4
cells:
  far:  {servers: 1, profile: small}
  near: {servers: 1, profile: llama3-8b_a100_tp1_composed}
roots:
  a: {traffic: [{class: chat, rate: 0.1 /s, policy: random}, {class: book, rate: 0.05 /s, policy: random}], allowed: [near]}
classes:
  chat: {prompt_tokens: {lognormal: {mean: 64, cv: 1}}, output_tokens: {geometric: {mean: 8}}}
  book: {prompt_tokens: 5000, output_tokens: 30}
policies: {random: {kind: random}}
links:
  - {from: root.*, to: cell.*, delay: 20 ms}
  - {from: cell.*, to: root.*, delay: 35 ms}
  - {from: near/leaf-*, to: near/server-*, delay: 1 ms}
"""


def test_a_request_alone_has_a_slowdown_of_one(tmp_path):
    run = run_text(tmp_path / "main", EMPTY)
    requests = run.tables["requests"]
    topology = build_topology(run.scenario)

    figures = slowdown(requests, run.scenario, topology, run.outcome.ended_at_s)

    assert figures["count"] > 20
    assert figures["p50"] == pytest.approx(1.0, abs=1e-9)
    sojourns_s = requests["replied_at_s"] - requests["planned_at_s"]
    alone = empty_sojourns_s(requests, run.scenario, topology)
    assert (sojourns_s >= alone - 1e-9).all()  # those that met another took longer
    for name in ("chat", "book"):
        assert np.isclose(sojourns_s, alone)[requests["class"] == name].mean() > 0.8


def test_the_time_alone_counts_chunks_of_prefill_and_the_growing_context():
    """5,000 tokens are three steps of at most 2,048; 30 tokens are 29 steps more."""
    profile = PROFILES["llama3-8b_a100_tp1_composed"]

    seconds = alone_s(profile, np.array([5000.0]), np.array([30.0]))

    steps = 3 + 29
    context = sum(5000 + i for i in range(1, 30))
    expected = steps * 11.0503e-3 + 5000 * 0.0723242e-3 + 29 * 0.046302e-3 + context * 8.21681e-8
    assert seconds[0] == pytest.approx(expected, rel=1e-12)
