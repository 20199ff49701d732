"""Faults of the load change the plan as they say, and nothing else of it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from testbed.scenario.load import scenario_from_text
from testbed.traffic.plan import Plan, build_plan

TEXT = """
name: load
duration: 60 s
seed: 2
cells: {us: {servers: 1, service: {slots: 1, fixed: 1 ms}}}
roots:
  a: {traffic: [{class: sand, rate: 100 /s, policy: p}, {class: rock, rate: 20 /s, policy: p}]}
  b: {traffic: [{class: sand, rate: 100 /s, policy: p, arrivals: evenly_spaced}]}
classes:
  sand: {prompt_tokens: {lognormal: {mean: 40, cv: 1}}, output_tokens: 5}
  rock: {prompt_tokens: 400, output_tokens: {geometric: {mean: 50}}}
policies: {p: {kind: random}}
"""
CALM = build_plan(scenario_from_text(TEXT).arms["main"])


def plan(*lines: str, scale: float = 1.0) -> Plan:
    text = TEXT + "faults:\n" + "".join(f"  - {line}\n" for line in lines)
    return build_plan(scenario_from_text(text).arms["main"].model_copy(update={"time_scale": scale}).scaled())


def count(of: Plan, root: int, from_s: float, to_s: float, class_index: int | None = None) -> int:
    mine = (of.root == root) & (of.at_s >= from_s) & (of.at_s < to_s)
    return int(mine.sum() if class_index is None else (mine & (of.class_index == class_index)).sum())


def test_a_spike_multiplies_arrivals_for_its_time_and_a_step_for_good() -> None:
    spike = plan("{at: 20 s, for: 10 s, root: b, set: {demand: x3}}")
    step = plan("{at: 20 s, root: b, set: {demand: x0.5}}")

    assert [count(spike, 1, *span) for span in ((0, 20), (20, 30), (30, 60))] == [2000, 3000, 3000]
    assert [count(step, 1, *span) for span in ((0, 20), (20, 60))] == [2000, 2000]
    assert count(spike, 0, 0, 60) == count(CALM, 0, 0, 60)


def test_spikes_that_overlap_multiply() -> None:
    found = plan(
        "{at: 20 s, for: 20 s, root: b, set: {demand: x3}}",
        "{at: 30 s, for: 20 s, root: '*', set: {demand: x2}}",
    )

    assert [count(found, 1, *span) for span in ((20, 30), (30, 40), (40, 50))] == [3000, 6000, 2000]


def test_demand_zero_is_silence_and_of_a_class_leaves_the_others_alone() -> None:
    found = plan("{at: 20 s, for: 20 s, class: sand, set: {demand: x0}}")

    assert count(found, 0, 20, 40, class_index=0) == count(found, 1, 20, 40) == 0
    assert count(found, 0, 20, 40, class_index=1) == count(CALM, 0, 20, 40, class_index=1)


def test_a_burst_adds_so_many_requests_at_once_and_keeps_the_others() -> None:
    found = plan("{at: 20 s, root: a, set: {burst: 501}}")

    at_once = found.at_s == 20.0
    assert at_once.sum() == 501
    assert np.bincount(found.class_index[at_once]).tolist() == [251, 250]  # in turn over its lines
    assert (found.root[at_once] == 0).all()
    assert found.at_s[~at_once].tolist() == CALM.at_s.tolist()
    assert found.prompt_tokens[~at_once].tolist() == CALM.prompt_tokens.tolist()
    sand = at_once & (found.class_index == 0)
    assert stats.ks_2samp(found.prompt_tokens[sand], CALM.prompt_tokens[CALM.class_index == 0]).pvalue > 0.01


def test_a_burst_with_a_length_is_spread_evenly_over_it() -> None:
    found = plan("{at: 20 s, for: 10 s, root: b, set: {burst: 100}}")

    assert [count(found, 1, 20 + i, 21 + i) for i in range(10)] == [110] * 10


def test_a_shift_moves_its_share_of_arrivals_to_the_other_root_and_adds_none() -> None:
    found = plan("{at: 20 s, for: 20 s, root: b, set: {shift: {to: a, share: 30 %}}}")

    assert found.at_s.tolist() == CALM.at_s.tolist()
    assert found.prompt_tokens.tolist() == CALM.prompt_tokens.tolist()
    moved = found.root != CALM.root
    assert ((found.at_s >= 20) & (found.at_s < 40))[moved].all()
    assert set(found.root[moved].tolist()) == {0}
    assert set(found.traffic[moved].tolist()) == {0}  # its line of the same class
    low, high = stats.binom.interval(0.999, 2000, 0.3)
    assert low <= moved.sum() <= high


def test_a_class_that_turns_heavy_brings_more_tokens_from_an_instant_on() -> None:
    found = plan("{at: 30 s, class: sand, set: {prompt_tokens: x4, output_tokens: x2}}")

    late_sand = (found.at_s >= 30) & (found.class_index == 0)
    assert (found.prompt_tokens[late_sand] == 4 * CALM.prompt_tokens[late_sand]).all()
    assert (found.output_tokens[late_sand] == 10).all()
    assert (found.prompt_tokens[~late_sand] == CALM.prompt_tokens[~late_sand]).all()
    assert found.at_s.tolist() == CALM.at_s.tolist()


def test_tokens_times_a_factor_stay_within_64_bits() -> None:
    found = plan("{at: 0 s, class: sand, set: {prompt_tokens: x1e9}}")

    assert (found.prompt_tokens[found.class_index == 0] == 10**9).all()


def test_lighter_requests_bring_at_least_one_token() -> None:
    found = plan("{at: 0 s, class: sand, set: {output_tokens: x0.01}}")

    assert (found.output_tokens[found.class_index == 0] == 1).all()


def test_faults_of_links_and_servers_leave_the_plan_alone() -> None:
    found = plan("{at: 1 s, cell: us, set: {speed: 0.5}}", "{at: 1 s, partition: [root.a, cell.us]}")

    assert found.at_s.tolist() == CALM.at_s.tolist()


@pytest.mark.parametrize(
    "line",
    [
        "{at: 20 s, for: 10 s, root: '*', set: {demand: x3, burst: 30}}",
        "{at: 20 s, for: 10 s, root: b, set: {shift: {to: a, share: 30 %}}}",
    ],
)
def test_the_plan_stretches_with_the_time_scale_to_the_bit(line: str) -> None:
    one, two = plan(line), plan(line, scale=2.0)

    assert (2 * one.at_s == two.at_s).all()
    assert (one.root == two.root).all()
    assert (one.prompt_tokens == two.prompt_tokens).all()
