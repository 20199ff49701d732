"""No request is forgotten by real processes either, whatever is killed, stopped or made to fail, and whatever guards against it."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import Phase, given, settings

from testbed.experiment import run_arm
from testbed.record.outcome import load_outcome
from testbed.record.read import read_tables
from testbed.record.run_folder import ArmFolder
from testbed.scenario.load import scenario_from_text
from testbed.scenario.topology import build_topology
from tests.laws.test_node_faults import assert_books_balance, assert_no_fault_is_silent
from tests.laws.test_random_resilience import guarded
from tests.laws.virtual_run import VirtualRun, silent

pytestmark = pytest.mark.live

MOST_LIVES = 100  # of a node in one run: far above what a handful of faults makes of it
LIVE = int(os.environ.get("LIVE", "2"))  # 10 before a release


def run_live(path: Path, given_words: dict[str, Any]) -> VirtualRun:
    """Run these words with real processes."""
    folder = ArmFolder(path / "main")
    scenario = scenario_from_text(yaml.safe_dump(given_words, sort_keys=False)).arms["main"]
    run_arm(folder, scenario, "live", silent)
    return VirtualRun(scenario, read_tables(folder.tables), load_outcome(folder.outcome), folder)


def timelines(count: int) -> list[dict[str, Any]]:
    """So many of those that are run under virtual time, always the same ones."""
    found: list[dict[str, Any]] = []

    @settings(max_examples=count, deadline=None, derandomize=True, database=None, phases=(Phase.generate,))
    @given(given_words=guarded())
    def collect(given_words: dict[str, Any]) -> None:
        found.append(given_words)

    collect()
    return found


def assert_every_life_told_its_counts(run: VirtualRun) -> None:
    """Each process of a root or a leaf that wrote a log, killed or not, said last what it counts as in flight."""
    nodes = build_topology(run.scenario).nodes.values()
    balancers = [node.name for node in nodes if node.kind != "server"]
    lives = {
        name: sum(run.folder.log(name, life).exists() for life in range(MOST_LIVES)) for name in balancers
    }
    assert Counter(run.tables["counts"]["node"].tolist()) == lives


@pytest.mark.parametrize("given_words", timelines(LIVE))
def test_requests_are_conserved_by_real_processes_under_random_faults(
    tmp_path: Path, given_words: dict[str, Any]
) -> None:
    """Timelines with kills, restarts and pauses; retries, hedging, checks and scaling in some."""
    run = run_live(tmp_path, given_words)

    assert run.outcome.deaths == ()
    assert run.outcome.log_problems == ()
    assert not run.outcome.interrupted
    assert len(run.outcome.ledger) == len(build_topology(run.scenario).links)
    assert_every_life_told_its_counts(run)
    assert_books_balance(run)  # among its laws: no count in flight is off at the end of a life
    assert_no_fault_is_silent(run)
