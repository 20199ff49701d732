"""Two records that know nothing of each other agree in whole runs, and are asked wherever they can be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from testbed.analysis.law import Law
from testbed.analysis.ledger_laws import ledger_conservation, open_conservation
from testbed.analysis.sample_laws import sample_conservation
from testbed.scenario.topology import build_topology
from tests.laws.test_node_faults import words
from tests.laws.virtual_run import VirtualRun, run_words

LOSSY = [{"from": "*", "to": "*", "delay": "5 ms", "loss": "10 %"}]
SERVERS = ["a/server-1", "a/server-2", "b/server-1", "b/server-2"]


def laws_of(run: VirtualRun) -> dict[str, Law]:
    """The laws between records, by place; those of samples under a name of their own."""
    given = run.scenario, build_topology(run.scenario), run.tables
    found = {law.place: law for law in (*ledger_conservation(*given), *open_conservation(*given))}
    return found | {f"samples of {law.place}": law for law in sample_conservation(*given)}


def open_at_the_end(run: VirtualRun, node: str) -> int:
    counts = run.tables["counts"]
    return int(counts["open"][counts["node"] == node].sum())


@pytest.mark.parametrize("drain", ["0 s", "5 s"])
def test_books_agree_whatever_links_lose_and_wherever_requests_are_when_the_run_ends(
    tmp_path: Path, drain: str
) -> None:
    """Every node is asked for all that it sends and receives, each server in each of its samples."""
    run = run_words(tmp_path, words(drain=drain, duration="2 s", links=LOSSY))

    laws = laws_of(run)
    assert [law for law in laws.values() if not law.holds] == []
    nodes = set(build_topology(run.scenario).nodes)
    balancers = nodes - set(SERVERS)
    assert set(laws) == nodes | {f"open at {name}" for name in balancers} | {
        f"samples of {name}" for name in SERVERS
    }
    assert (run.tables["requests"]["outcome"] == "unfinished").any() == (drain == "0 s")
    assert any(open_at_the_end(run, name) for name in balancers) == (drain == "0 s")


def test_books_agree_where_requests_are_sent_again_after_their_backoff(tmp_path: Path) -> None:
    """Attempts of roots and of leaves, all of them over when the run ends."""
    again = {"backoff": "20 ms", "attempt_timeout": "80 ms"}
    given = words(duration="2 s", links=LOSSY, classes={"c": {"timeout": "400 ms", "retries": again}})
    given["cells"]["a"]["leaf"] = {"policy": "idlest", "retries": {"attempt_timeout": "40 ms"}}
    run = run_words(tmp_path, given)

    laws = laws_of(run)
    attempts = run.tables["attempts"]
    assert min(np.sum(attempts["attempt"] > 0), np.sum(attempts["leaf_attempt"] > 0)) > 10
    assert [law for law in laws.values() if not law.holds] == []
    assert set(build_topology(run.scenario).nodes) <= set(laws)
    assert "requests received" in laws["a/leaf-1"].detail
    assert "replies sent" not in laws["a/leaf-1"].detail  # one for all its copies of a request
    assert "replies sent" in laws["b/leaf-1"].detail


def test_books_agree_where_servers_refuse_fail_or_lose_requests(tmp_path: Path) -> None:
    """These have requests without a row, as many as the ledger leaves room for; the others are asked in every sample."""
    faults: list[dict[str, Any]] = [
        {"at": "0 s", "server": "a/server-1", "set": {"errors": "40 %", "error_after": "10 ms"}},
        {"at": "1 s", "for": "500 ms", "server": "a/server-2", "set": {"kill": True}},
    ]
    given = words(*faults, duration="2 s", links=LOSSY)
    given["cells"]["b"]["limit"] = {"in_flight": 1}
    run = run_words(tmp_path, given)

    laws = laws_of(run)
    outcomes = run.tables["requests"]["outcome"]
    assert {"failed", "shed", "timed_out"} <= set(outcomes.tolist())
    assert [law for law in laws.values() if not law.holds] == []
    assert all(" to " in laws[name].detail for name in SERVERS)
    assert not any(f"samples of {name}" in laws for name in SERVERS)
