"""The plan: the same requests in every arm and engine, in order, and exact under time scales."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from testbed.errors import RunError
from testbed.traffic.plan import Plan, build_plan
from tests.traffic.scenes import herding, one_line, scene

COLUMNS = ("at_s", "root", "traffic", "class_index", "prompt_tokens", "output_tokens")


def columns(plan: Plan) -> dict[str, list[float]]:
    return {name: getattr(plan, name).tolist() for name in COLUMNS}


def test_requests_are_planned_in_the_order_of_their_arrival() -> None:
    plan = build_plan(herding())

    assert plan.requests == len(plan.at_s) == len(plan.output_tokens)
    assert plan.requests == pytest.approx(20 * 1021.5, rel=0.03)
    assert (np.diff(plan.at_s) >= 0.0).all()
    assert plan.at_s[0] >= 0.0
    assert plan.at_s[-1] < 20.0
    assert min(plan.prompt_tokens.min(), plan.output_tokens.min()) >= 1


def test_one_seed_gives_one_plan_and_another_seed_another() -> None:
    assert columns(build_plan(herding())) == columns(build_plan(herding()))
    assert columns(build_plan(herding(seed=2))) != columns(build_plan(herding()))


def test_policies_links_and_cells_do_not_touch_the_plan_of_rates() -> None:
    """Every arm faces the very same requests."""
    roots = {
        name: {"traffic": [{"class": "sand", "rate": "350 /s", "policy": policy}]}
        for name, policy in (("west", "flow"), ("north", "greedy"))
    }
    others = {name: {"traffic": [words["traffic"][0] | {"policy": "even"}]} for name, words in roots.items()}

    plan = build_plan(herding(roots=roots))
    other = build_plan(
        herding(
            roots=others, links=[], cells={"us": {"servers": 1, "profile": "bench"}}, reports={"every": "1 s"}
        )
    )

    assert columns(plan) == columns(other)


def test_a_new_root_leaves_the_requests_of_the_others_as_they_were() -> None:
    plan = build_plan(herding())
    roots = dict(herding().roots.items())
    fewer = herding().model_copy(update={"roots": {name: roots[name] for name in ("west", "north")}})

    alone = build_plan(fewer)

    assert alone.of_root(1).at_s == plan.of_root(1).at_s
    assert alone.of_root(1).output_tokens == plan.of_root(1).output_tokens


@pytest.mark.parametrize("arrivals", ["poisson", "evenly_spaced", "{gamma: {cv: 2.0}}"])
def test_time_scale_two_doubles_every_instant_to_the_bit(arrivals: str) -> None:
    line = f"stages: [{{at: 1 s, rate: 70 /s}}, {{at: 3.7 s, load: 0.6}}], arrivals: {arrivals}"

    plan = build_plan(one_line(line).scaled())
    scaled = build_plan(one_line(line, time_scale=2.0).scaled())

    assert plan.requests > 400
    assert (2 * plan.at_s).tolist() == scaled.at_s.tolist()
    assert plan.output_tokens.tolist() == scaled.output_tokens.tolist()


def test_time_scale_two_doubles_the_plan_of_herding_to_the_bit() -> None:
    plan, scaled = build_plan(herding().scaled()), build_plan(herding(time_scale=2.0).scaled())

    assert columns(scaled) == columns(plan) | {"at_s": (2 * plan.at_s).tolist()}


def test_each_root_gets_its_own_requests_as_plain_arrays() -> None:
    plan = build_plan(herding())

    parts = [plan.of_root(index) for index in range(3)]

    assert sorted(i for part in parts for i in part.request_ids) == list(range(plan.requests))
    for index, part in enumerate(parts):
        ids = list(part.request_ids)
        assert set(plan.root[ids].tolist()) == {index}
        assert part.at_s.tolist() == plan.at_s[ids].tolist()
        assert part.prompt_tokens.tolist() == plan.prompt_tokens[ids].tolist()
        assert part.class_index.tolist() == plan.class_index[ids].tolist()
        assert type(part.output_tokens[0]) is int


def test_requests_of_one_instant_keep_the_order_of_their_roots() -> None:
    scenario = scene(
        """
        roots:
          b: {traffic: [{class: sand, policy: even, rate: 10 /s, arrivals: evenly_spaced}]}
          a: {traffic: [{class: sand, policy: even, rate: 30 /s, arrivals: evenly_spaced}]}
        """
    )

    plan = build_plan(scenario)

    # Phases 1/4 and 3/4: the first arrives at 0.025, 0.125, ...; the second at 0.025, 0.0583, ...
    assert plan.at_s[0] == plan.at_s[1] == 0.025
    assert plan.root[:2].tolist() == [0, 1]


def test_several_classes_at_a_root_are_told_apart() -> None:
    scenario = scene(
        """
        classes: {sand: {output_tokens: 8}, boulder: {output_tokens: 500}}
        roots:
          west:
            traffic:
              - {class: boulder, policy: even, rate: 10 /s}
              - {class: sand, policy: even, rate: 90 /s}
        """
    )

    plan = build_plan(scenario)

    boulders = plan.traffic == 0
    assert set(plan.class_index[boulders].tolist()) == {1}
    assert set(plan.output_tokens[boulders].tolist()) == {500}
    assert set(plan.output_tokens[~boulders].tolist()) == {8}
    assert (~boulders).sum() == pytest.approx(900, abs=4 * 30)


TRACE = """
traces: {conv: {path: %s, format: azure, rate_factor: 2.0}}
classes: {sand: {}, chat: {}}
roots:
  west: {traffic: [{class: chat, policy: even, trace: conv, weight: 0.4}]}
  east:
    traffic:
      - {class: sand, policy: even, rate: 20 /s}
      - {class: chat, policy: even, trace: conv, weight: 0.6}
"""


def written_trace(folder: Path) -> Path:
    rows = "".join(f"2023-11-16 18:{i // 60:02}:{i % 60:02},{1000 + i},{1 + i}\n" for i in range(60))
    path = folder / "trace.csv"
    path.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n" + rows)
    return path


def test_a_trace_is_replayed_once_and_shared_among_its_lines(tmp_path: Path) -> None:
    """60 rows of 1 s at twice the pace: 20 rows within 10 s, each at one root alone, with its own tokens."""
    plan = build_plan(scene(TRACE % written_trace(tmp_path)))

    replayed = plan.class_index == 1
    assert (2 * plan.at_s[replayed]).tolist() == list(range(20))
    assert plan.prompt_tokens[replayed].tolist() == list(range(1000, 1020))
    assert plan.output_tokens[replayed].tolist() == list(range(1, 21))
    assert set(zip(plan.root[replayed].tolist(), plan.traffic[replayed].tolist(), strict=True)) == {
        (0, 0),
        (1, 1),
    }


def test_a_replayed_trace_doubles_to_the_bit(tmp_path: Path) -> None:
    text = TRACE % written_trace(tmp_path)

    plan, scaled = build_plan(scene(text).scaled()), build_plan(scene(text, time_scale=2.0).scaled())

    assert columns(scaled) == columns(plan) | {"at_s": (2 * plan.at_s).tolist()}


def test_a_plan_may_be_empty() -> None:
    plan = build_plan(one_line("stages: [{at: 0 s, rate: 0 /s}]"))

    assert plan.requests == 0
    assert list(plan.of_root(0).at_s) == []


def test_a_plan_too_big_for_memory_is_refused_before_it_is_drawn() -> None:
    with pytest.raises(RunError, match=r"plans 1e\+10 requests; a plan holds at most 5e\+07"):
        build_plan(one_line("rate: 1000000 /ms"))
