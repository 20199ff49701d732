"""The probing policies over the whole path, in small cells, over links that lose probes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from testbed.analysis.laws import all_laws
from testbed.analysis.records import ended_s
from testbed.scenario.topology import build_topology
from tests.laws.virtual_run import VirtualRun, run_words

KINDS: dict[str, dict[str, Any]] = {
    "prequal": {"kind": "prequal", "idle_probe_after": "50 ms"},
    "prequal at a fractional rate": {"kind": "prequal", "probes_per_request": 0.6},
    "synchronous prequal": {"kind": "prequal", "mode": "sync", "probe_timeout": "3 ms"},
    "linear": {"kind": "linear"},
    "c3": {"kind": "c3"},
    "queries over utilisation": {"kind": "weighted_utilisation"},
}


def words(policy: dict[str, Any], servers: int, leaves: int = 1, **changes: Any) -> dict[str, Any]:
    """A cell of shared cores behind leaves; a probe takes a millisecond each way and is lost now and then."""
    sharing = {"allocation": 2, "antagonist": {"cores": [4, 1], "probabilities": [0.7, 0.3], "every": "1 s"}}
    return {
        "name": "probing",
        "duration": "6 s",
        "warmup": "1 s",
        "cells": {
            "us": {
                "servers": servers,
                "service": {"sharing": sharing, "normal": {"mean": "80 ms", "sd": "80 ms"}},
                "leaf": {"policy": "p", "count": leaves},
            }
        },
        "roots": {"west": {"traffic": [{"class": "c", "load": 0.6, "policy": "even"}]}},
        "classes": {"c": {"timeout": "1 s"}},
        "policies": {"p": policy, "even": {"kind": "random"}},
        "links": [
            {"from": "us/*", "to": "us/*", "delay": "1 ms"},
            {"from": "us/*", "to": "us/*", "path": "probe", "loss": "5 %"},
        ],
        **changes,
    }


def assert_lawful(run: VirtualRun) -> None:
    broken = [
        law
        for law in all_laws(
            run.scenario, build_topology(run.scenario), run.tables, ended_s(run.scenario, run.outcome)
        )
        if not law.holds
    ]
    assert broken == []
    assert run.outcome.drained


@pytest.mark.parametrize("kind", KINDS)
def test_requests_are_conserved_in_a_cell_of_two_servers_and_three_leaves(kind: str, tmp_path: Any) -> None:
    run = run_words(tmp_path, words(KINDS[kind], servers=2, leaves=3))

    assert_lawful(run)
    assert set(run.tables["requests"]["server"]) == {"us/server-1", "us/server-2"}


def test_a_request_in_sync_mode_waits_one_round_trip_of_a_probe_unless_one_is_lost(tmp_path: Any) -> None:
    """Two of three answers come after 2 ms unless two probes are lost; then the request goes on after 3 ms."""
    run = run_words(tmp_path, words(KINDS["synchronous prequal"], servers=8))
    requests = run.tables["requests"]

    waits_s = np.round(requests["at_server_s"] - requests["at_leaf_s"] - 0.001, 9)

    assert_lawful(run)
    assert set(waits_s) == {0.002, 0.003}
    assert 0.001 < (waits_s == 0.003).mean() < 0.1  # 3 q^2 - 2 q^3 = 2.7 % at q = 1 - 0.95^2


def test_prequal_is_quicker_than_random_where_an_antagonist_slows_servers(tmp_path: Any) -> None:
    def p99_s(policy: dict[str, Any], name: str) -> float:
        requests = run_words(tmp_path / name, words(policy, servers=8, duration="40 s")).tables["requests"]
        in_time = np.where(
            np.isnan(requests["replied_at_s"]), 1.0, requests["replied_at_s"] - requests["planned_at_s"]
        )
        return float(np.quantile(np.minimum(in_time, 1.0), 0.99))

    assert p99_s(KINDS["prequal"], "prequal") < 0.8 * p99_s({"kind": "random"}, "random")
