"""Sessions: turns that repeat what was said before, prefixes by their popularity, the same in every arm."""

from __future__ import annotations

import math
from collections import Counter, defaultdict

import numpy as np
import pytest

from testbed.errors import RunError
from testbed.traffic import plan as plan_module
from testbed.traffic.capacity import token_means
from testbed.traffic.plan import Plan, build_plan
from testbed.traffic.sessions import take_turns
from tests.traffic.scenes import scene

CHAT = """
classes:
  chat:
    prompt_tokens: {geometric: {mean: 40}}
    output_tokens: {geometric: {mean: 10}}
    prefixes: {count: 5, tokens: {lognormal: {mean: 300, cv: 0.5}}, zipf: 1.5}
    sessions: {turns: 4, think_time: 2 s}
  sand: {prompt_tokens: 7}
roots:
  west: {traffic: [{class: chat, policy: even, rate: 200 /s}]}
  east: {traffic: [{class: chat, policy: even, rate: 100 /s}, {class: sand, policy: even, rate: 50 /s}]}
"""


def chains_of(plan: Plan, root: int) -> list[tuple[int, ...]]:
    mine = plan.of_root(root)
    assert mine.sharing is not None
    return [mine.sharing.chain(i) for i in range(len(mine.request_ids))]


def test_turns_are_dealt_as_a_plain_loop_would_deal_them() -> None:
    """Each turn's history is all that its session had gathered, before the run included."""
    tokens = np.random.default_rng(5).integers(1, 50, 500)
    earlier = np.array([100, 0, 7])

    dealt = take_turns(tokens, earlier, 3.0, np.random.default_rng(8))

    draws = np.random.default_rng(8).random((500, 2))
    here = list(range(3))  # the session of each place
    gathered = defaultdict(int, enumerate(earlier.tolist()))
    begun = 3
    for i, (place, end) in enumerate(draws.tolist()):
        session = here[int(place * 3)]
        assert (dealt.session[i], dealt.history_tokens[i]) == (session, gathered[session])
        gathered[session] += int(tokens[i])
        if end < 1 / 3:
            here[int(place * 3)] = begun
            begun += 1


def test_a_session_is_one_prefix_and_a_history_that_grows_by_every_turn() -> None:
    plan = build_plan(scene(CHAT))
    west = plan.of_root(0)
    assert west.sharing is not None

    seen: dict[int, tuple[int, ...]] = {}
    for i, (prefix, shared, session, tail) in enumerate(chains_of(plan, 0)):
        assert shared + tail == west.prompt_tokens[i]
        assert session == west.sharing.session[i]
        if session in seen:
            assert seen[session][:2] == (prefix, shared)
            assert tail > seen[session][2] + seen[session][3]  # what was said, the answer, and some more
        seen[session] = (prefix, shared, tail, west.output_tokens[i])
    assert len(seen) == pytest.approx(400 + west.at_s[-1] * 200 / 4, rel=0.15)


def test_sessions_have_as_many_turns_as_asked_for_and_think_as_long() -> None:
    """Geometric turns of mean 4, exponential gaps of mean 2 s, within four standard errors."""
    plan = build_plan(scene(CHAT, duration="60 s"))
    west = plan.of_root(0)
    turns: dict[int, list[float]] = defaultdict(list)
    for at_s, (_, _, session, _) in zip(west.at_s, chains_of(plan, 0), strict=True):
        turns[session].append(at_s)
    whole = [each for session, each in turns.items() if session % 2**32 >= 400 and each[0] < 20.0]
    gaps_s = np.concatenate([np.diff(each) for each in whole])

    counts = np.array([len(each) for each in whole])
    assert abs(counts.mean() - 4.0) < 4 * counts.std() / math.sqrt(len(counts))
    assert abs((counts == 1).mean() - 0.25) < 4 * math.sqrt(0.25 * 0.75 / len(counts))
    assert abs(gaps_s.mean() - 2.0) < 4 * gaps_s.std() / math.sqrt(len(gaps_s))
    assert gaps_s.std() == pytest.approx(gaps_s.mean(), rel=0.1)


def test_prompts_are_as_long_from_the_beginning_as_their_mean_says() -> None:
    """Sessions under way at the beginning are as old as at any time, and the mean is exact."""
    scenario = scene(CHAT, duration="300 s")
    plan = build_plan(scenario)
    prompts = np.array(plan.of_root(0).prompt_tokens, dtype=float)

    mean, _ = token_means(scenario, "west")

    parts = [part.mean() for part in np.array_split(prompts, 20)]
    assert abs(np.mean(parts) - mean) < 4 * np.std(parts) / math.sqrt(20)
    assert parts[0] == pytest.approx(mean, rel=0.1)


def test_prefixes_are_as_popular_as_zipf_says_and_common_to_all_roots() -> None:
    plan = build_plan(scene(CHAT, duration="100 s"))

    west, east = ({chain[:2] for chain in chains_of(plan, root) if chain} for root in (0, 1))
    sessions = {chain[2]: chain[0] for chain in chains_of(plan, 0)}
    counts = Counter(key % 2**32 for key in sessions.values())

    assert west == east
    assert len(west) == 5
    weights = np.arange(1, 6) ** -1.5
    for rank, share in enumerate(weights / weights.sum()):
        error = math.sqrt(share * (1 - share) / len(sessions))
        assert abs(counts[rank] / len(sessions) - share) < 4 * error


def test_a_longer_run_a_new_root_and_another_time_scale_change_no_session() -> None:
    plan = build_plan(scene(CHAT))
    longer = build_plan(scene(CHAT, duration="20 s"))
    scaled = build_plan(scene(CHAT, time_scale=2.0).scaled())
    alone = scene(CHAT)
    alone = alone.model_copy(update={"roots": {"east": alone.roots["east"]}})

    east = chains_of(plan, 1)
    assert chains_of(build_plan(alone), 0) == east
    assert chains_of(longer, 1)[: len(east)] == east
    assert chains_of(scaled, 1) == east
    assert (2 * plan.at_s).tolist() == scaled.at_s.tolist()


def test_only_classes_that_share_have_chains_and_a_plan_without_them_has_none() -> None:
    plan = build_plan(scene(CHAT))
    east = plan.of_root(1)

    for i, chain in enumerate(chains_of(plan, 1)):
        assert (chain == ()) == (east.traffic[i] == 1)
    bare = build_plan(scene("roots: {west: {traffic: [{class: sand, policy: even, rate: 50 /s}]}}"))
    assert (bare.sharing, bare.of_root(0).sharing) == (None, None)


def test_prefixes_without_sessions_are_of_one_turn_and_sessions_without_prefixes_have_one_segment() -> None:
    text = """
    classes: {a: {prompt_tokens: 5, prefixes: {count: 2, tokens: 50}}, b: {sessions: {turns: 3, count: 2}}}
    roots:
      west: {traffic: [{class: a, policy: even, rate: 50 /s}]}
      east: {traffic: [{class: b, policy: even, rate: 50 /s}]}
    """

    plan = build_plan(scene(text))

    single, alone = chains_of(plan, 0), chains_of(plan, 1)
    assert {(len(chain), chain[1], chain[3]) for chain in single} == {(4, 50, 5)}
    assert len({chain[2] for chain in single}) == len(single)
    assert {len(chain) for chain in alone} == {2}
    assert 2 < len({chain[0] for chain in alone}) < len(alone)


def test_requests_that_share_count_twice_against_the_bound_of_a_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_module, "MOST_REQUESTS", 6400)

    with pytest.raises(RunError, match=r"plans 6\.5e\+03 requests"):
        build_plan(scene(CHAT))
