"""Sessions, prefix caches and the policies that look at them, over the whole path under virtual time."""

from __future__ import annotations

import numpy as np
import pytest

from testbed.analysis.laws import all_laws
from testbed.analysis.records import ended_s
from testbed.analysis.summary import summarize_arm
from testbed.scenario.topology import build_topology
from tests.laws.virtual_run import VirtualRun, run_text

AFFINITY = """
name: affinity
duration: 4 s
warmup: 1 s
seed: 2
time_scale: {scale}
cells:
  us: {{servers: 2, profile: llama3-8b_a100_tp1_composed, prefix_cache_tokens: {cache}, leaf: {{policy: {policy}}}}}
  eu: {{servers: 1, profile: llama3-8b_a100_tp1_composed, prefix_cache_tokens: {cache}}}
roots:
  west: {{traffic: [{{class: chat, rate: 15 /s, policy: {policy}}}]}}
  east: {{traffic: [{{class: chat, rate: 10 /s, policy: {policy}}}, {{class: sand, rate: 20 /s, policy: random}}]}}
classes:
  chat:
    prompt_tokens: {{lognormal: {{mean: 50, cv: 1}}}}
    output_tokens: {{geometric: {{mean: 10}}}}
    prefixes: {{count: 6, tokens: 500}}
    sessions: {{turns: 3, think_time: 1 s}}
  sand: {{prompt_tokens: 40, output_tokens: 4}}
policies:
  random: {{kind: random}}
  hash: {{kind: consistent_hash}}
  bounded: {{kind: consistent_hash, key: prefix, bound: 1.25, view: reports}}
  aware: {{kind: prefix_aware}}
links:
  - {{from: root.*, to: cell.*, delay: 5 ms}}
  - {{from: cell.*, to: root.*, delay: 5 ms}}
  - {{from: cell.*, to: root.*, path: observation, delay: 50 ms}}
"""


def run(folder, policy, cache=20_000, scale=1) -> VirtualRun:
    return run_text(folder, AFFINITY.format(policy=policy, cache=cache, scale=scale))


def hit_fraction(run: VirtualRun) -> float:
    return summarize_arm(run.scenario, run.tables, run.outcome)["prefix_cache"]["hit_fraction"]


@pytest.mark.parametrize("policy", ["random", "hash", "bounded", "aware"])
def test_laws_hold_and_nothing_is_found_that_was_not_there(tmp_path, policy):
    done = run(tmp_path / "main", policy)
    requests = done.tables["requests"]

    laws = all_laws(
        done.scenario, build_topology(done.scenario), done.tables, ended_s(done.scenario, done.outcome)
    )

    assert [law for law in laws if not law.holds] == []
    assert set(requests["outcome"]) == {"completed"}
    chat = requests["class"] == "chat"
    assert (requests["cached_tokens"] < requests["prompt_tokens"]).all()
    assert (requests["cached_tokens"][~chat] == 0).all()
    assert (requests["session"][chat] != 0).all()
    assert len(set(requests["prefix"][chat])) == 6
    first: dict[tuple[str, int], float] = {}
    for row in np.argsort(requests["first_token_at_s"]).tolist():
        place = requests["server"][row], requests["prefix"][row]
        if requests["cached_tokens"][row]:
            assert first[place] <= requests["started_at_s"][row]  # somebody had prefilled it here
        first.setdefault(place, requests["first_token_at_s"][row])


def test_a_session_stays_at_its_server_under_consistent_hashing(tmp_path):
    requests = run(tmp_path / "main", "hash").tables["requests"]
    chat = requests["class"] == "chat"

    places = {(s, server) for s, server in zip(requests["session"][chat], requests["server"][chat], strict=True)
              if server.startswith("us/")}  # fmt: skip

    assert len(places) == len({session for session, _ in places}) > 5
    assert len({server for _, server in places}) == 2


def test_affinity_finds_more_than_chance_and_a_hit_brings_the_first_token_sooner(tmp_path):
    """A cache that holds half of what all sessions need, so that it matters who comes."""
    chance, aware = (run(tmp_path / policy, policy, cache=2000) for policy in ("random", "aware"))

    assert hit_fraction(aware) > 1.1 * hit_fraction(chance)
    requests = chance.tables["requests"]
    chat = requests["class"] == "chat"
    prefill_s = requests["first_token_at_s"] - requests["started_at_s"]
    found = requests["cached_tokens"] >= 500
    assert np.median(prefill_s[chat & found]) < np.median(prefill_s[chat & ~found])


def test_time_scale_two_changes_no_hit_and_no_choice(tmp_path):
    one, two = (run(tmp_path / f"scale-{scale}", "aware", scale=scale).tables["requests"] for scale in (1, 2))

    for column in ("server", "session", "prefix", "cached_tokens", "finished_at_s"):
        assert one[column].tolist() == two[column].tolist()


def test_without_a_cache_nothing_is_found_and_the_summary_says_so(tmp_path):
    text = AFFINITY.format(policy="random", cache=1, scale=1).replace("prefix_cache_tokens: 1, ", "")
    text = text.replace(", prefix_cache_tokens: 1}", "}")
    done = run_text(tmp_path / "main", text)

    figures = summarize_arm(done.scenario, done.tables, done.outcome)["prefix_cache"]

    assert figures == {"hit_fraction": None, "requests_hit_fraction": None, "by_cell": {}}
    assert (done.tables["requests"]["cached_tokens"] == 0).all()
