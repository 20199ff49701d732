"""Consistent hashing: one target for a key everywhere, few keys moved, and no target above its bound."""

from __future__ import annotations

import math
import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.roles.messages import Request
from testbed.routing.consistent_hash import ConsistentHash
from testbed.routing.policy import build_policy
from testbed.routing.view import View
from testbed.scenario.policy_words import ConsistentHashPolicy
from testbed.serving.rate_curve import RateCurve
from tests.routing.beliefs import view_of

RNG = random.Random(1)


def hashing(beliefs: View, /, seed: int = 1, node: str = "root.a", **words: Any) -> ConsistentHash:
    spec = ConsistentHashPolicy(kind="consistent_hash", **words)
    policy = build_policy(spec, beliefs, seed=seed, node=node, report_every_s=0.1, output_mean=8.0)
    assert isinstance(policy, ConsistentHash)
    return policy


def turn(request_id: int, session: int = 0, prefix: tuple[int, ...] = ()) -> Request:
    return Request(request_id, 0, 0, 48, 8, (session, *prefix))


def chosen(policy: ConsistentHash, view: View, count: int = 3000) -> list[str]:
    targets = [policy.choose(view, turn(i), RNG) for i in range(count)]
    return [target.name for target in targets if target is not None]


def test_all_balancers_of_a_run_send_a_key_to_the_same_target() -> None:
    view = view_of([0] * 5)

    assert chosen(hashing(view, node="root.a"), view) == chosen(hashing(view, node="root.b"), view)
    assert chosen(hashing(view), view) != chosen(hashing(view, seed=2), view)


@pytest.mark.parametrize(
    ("key", "session", "prefix"),
    [("session", 9, ()), ("session", 9, (4, 10, 9, 5)), ("prefix", 3, (4, 10)), ("prefix", 9, (9, 5))],
)
def test_requests_of_one_key_go_to_one_target(key: str, session: int, prefix: tuple[int, ...]) -> None:
    view = view_of([0] * 5)
    policy = hashing(view, key=key)

    assert len({policy.choose(view, turn(i, session, prefix), RNG) for i in range(100)}) == 1
    assert len({policy.choose(view, turn(i), RNG) for i in range(100)}) == 5  # without one, by request
    by_request = hashing(view, key="request")
    assert len({by_request.choose(view, turn(i, session, prefix), RNG) for i in range(100)}) == 5


def test_keys_are_spread_by_capacity() -> None:
    """With 2,000 points a target the shares are near the capacities: 4, 2 and 1 servers."""
    view = view_of([0, 0, 0], servers=[4, 2, 1])

    counts = Counter(chosen(hashing(view, virtual_nodes=2000), view, 20_000))

    assert [counts[name] / 20_000 for name in "abc"] == pytest.approx([4 / 7, 2 / 7, 1 / 7], abs=0.03)


def test_a_target_that_may_no_longer_be_used_moves_its_own_keys_alone() -> None:
    view = view_of([0] * 6)
    policy = hashing(view)
    before = chosen(policy, view)

    view.allow(["a", "b", "d", "e", "f"])
    after = chosen(policy, view)

    moved = Counter(new for old, new in zip(before, after, strict=True) if old == "c")
    assert all(old == new for old, new in zip(before, after, strict=True) if old != "c")
    assert set(moved) == {"a", "b", "d", "e", "f"}
    view.allow([])
    assert policy.choose(view, turn(0), RNG) is None


@settings(max_examples=100, deadline=None)
@given(
    keys=st.lists(st.integers(1, 4), min_size=1, max_size=120),
    bound=st.floats(1.0, 3.0),
    servers=st.lists(st.integers(1, 4), min_size=1, max_size=5),
)
def test_no_target_takes_more_than_its_bound(keys: list[int], bound: float, servers: list[int]) -> None:
    """Few popular keys: ceil(c (m + 1) w) each; and while its owner has room, a key stays there."""
    view = view_of([0] * len(servers), servers=servers)
    policy, unbounded = hashing(view, bound=bound), hashing(view)

    for sent, key in enumerate(keys):
        owner = unbounded.choose(view, turn(sent, key), RNG)
        target = policy.choose(view, turn(sent, key), RNG)
        assert owner is not None
        assert target is not None
        most = bound * (sent + 1) / sum(servers) * (1 + 1e-9)
        assert target.own_in_flight < math.ceil(most * target.servers)
        if owner is not target:
            assert owner.own_in_flight >= math.floor(most * owner.servers)
        target.on_sent(sent, 0.0)


def test_the_bound_may_go_by_reports() -> None:
    """Ten of twelve requests are reported at one target: at 1.25 times the mean it is full."""
    empty = view_of([0, 0, 0])
    hot = hashing(empty, view="reports").choose(empty, turn(0, session=5), RNG)
    assert hot is not None
    counts = [1, 1, 1]
    counts[hot.index] = 10
    view = view_of(counts)

    assert hashing(view, view="reports").choose(view, turn(0, session=5), RNG) is view.targets[hot.index]
    shed = hashing(view, view="reports", bound=1.25).choose(view, turn(0, session=5), RNG)
    assert shed is not view.targets[hot.index]


def test_targets_that_could_not_carry_a_mean_request_count_alike() -> None:
    view = view_of([0, 0], curve=RateCurve(0.1, 0.01, 0))

    assert set(chosen(hashing(view, bound=1.25), view, 100)) == {"a", "b"}
