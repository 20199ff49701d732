from __future__ import annotations

import math
import random
from collections import Counter
from typing import Any

import pytest

from testbed.roles.messages import Outcome
from testbed.routing.hot_cold import HotCold
from testbed.routing.prequal import Prequal, SynchronousPrequal, build_prequal
from testbed.routing.probe_pool import Answer, Paced, reuse_limit
from testbed.routing.success import Success
from testbed.routing.view import View
from testbed.scenario.policy_words import PrequalPolicy
from tests.routing.beliefs import answer, request, view_of

RNG = random.Random(1)


def prequal_of(servers: int, **words: Any) -> tuple[Prequal, View]:
    words = {"removals_per_request": 0.0, **words}
    policy = build_prequal(PrequalPolicy(kind="prequal", **words), servers, 1, "us/leaf-1")
    assert isinstance(policy, Prequal)
    return policy, view_of([0] * servers)


def ranking_at(hot_quantile: float, seen: list[int]) -> HotCold:
    """A ranking that has seen these counts in flight."""
    ranking = HotCold(hot_quantile)
    for in_flight in seen:
        ranking.on_answer(view_of([0]).targets[0], answer(in_flight, 0.1))
    return ranking


def feed(policy: Prequal, view: View, answers: dict[str, tuple[int, float]]) -> None:
    for probe_id, (name, (in_flight, latency_s)) in enumerate(answers.items()):
        policy.on_probe_reply(view, view.by_name[name], answer(in_flight, latency_s, probe_id))


def test_the_least_latency_wins_among_the_cold() -> None:
    """In flight 1, 2, 3, 9 at quantile 0.84: above 3 is hot, so the 9 is, however quick it claims to be."""
    policy, view = prequal_of(4)
    feed(policy, view, {"a": (1, 0.9), "b": (2, 0.2), "c": (3, 0.5), "d": (9, 0.1)})

    chosen = policy.choose(view, request(), RNG)

    assert chosen is view.by_name["b"]


def test_when_all_in_the_pool_are_hot_the_fewest_in_flight_wins() -> None:
    view = view_of([0, 0])
    pool = [Answer(view.targets[0], 8, 0.1), Answer(view.targets[1], 7, 0.9)]

    assert ranking_at(0.5, [6]).best(pool) is pool[1]
    assert ranking_at(0.5, [6]).worst(pool) is pool[0]
    assert ranking_at(0.5, [10]).worst(pool) is pool[1]


@pytest.mark.parametrize(("quantile", "expected"), [(0.0, "a"), (1.0, "c")])
def test_quantile_zero_looks_at_in_flight_alone_and_one_at_latency_alone(
    quantile: float, expected: str
) -> None:
    policy, view = prequal_of(3, hot_quantile=quantile)
    feed(policy, view, {"a": (1, 0.9), "b": (2, 0.5), "c": (9, 0.1)})

    assert policy.choose(view, request(), RNG) is view.by_name[expected]


def test_a_request_counts_at_once_in_the_answer_of_its_server() -> None:
    """Equal answers: each choice makes its server one busier, so choices alternate."""
    policy, view = prequal_of(2, hot_quantile=0.0)
    feed(policy, view, {"a": (0, 0.1), "b": (0, 0.2)})

    chosen = [policy.choose(view, request(i), RNG) for i in range(4)]

    assert [target.name for target in chosen if target is not None] == ["a", "b", "a", "b"]


def test_fewer_than_two_answers_give_a_random_allowed_server() -> None:
    """Binomial, 4 standard deviations of 900 draws at 1/3: 57."""
    policy, view = prequal_of(4)
    view.allow(["a", "b", "d"])
    feed(policy, view, {"a": (0, 0.1)})

    counts = Counter(
        target.name for i in range(900) if (target := policy.choose(view, request(i), RNG)) is not None
    )

    assert set(counts) == {"a", "b", "d"}
    assert all(abs(count - 300) < 57 for count in counts.values())


def test_old_answers_are_not_used() -> None:
    policy, view = prequal_of(4, max_age="1 s")
    feed(policy, view, {"a": (0, 0.1), "b": (0, 0.2)})
    view.now_s = 0.7
    feed(policy, view, {"c": (5, 0.5), "d": (5, 0.6)})

    view.now_s = 1.0
    assert policy.choose(view, request(), RNG) is view.by_name["a"]
    view.now_s = 1.1
    assert policy.choose(view, request(), RNG) is view.by_name["c"]


def test_a_newer_answer_replaces_that_of_the_same_server() -> None:
    policy, view = prequal_of(2)
    feed(policy, view, {"a": (0, 0.1), "b": (0, 0.2)})
    feed(policy, view, {"a": (0, 0.3)})

    assert policy.choose(view, request(), RNG) is view.by_name["b"]


def test_an_answer_that_was_overtaken_replaces_nothing() -> None:
    policy, view = prequal_of(2)
    feed(policy, view, {"b": (0, 0.2)})
    policy.on_probe_reply(view, view.by_name["a"], answer(0, 0.3, measured_at_s=0.5))
    policy.on_probe_reply(view, view.by_name["a"], answer(0, 0.1, measured_at_s=0.4))

    assert policy.choose(view, request(), RNG) is view.by_name["b"]


def test_a_full_pool_loses_its_oldest_answer() -> None:
    policy, view = prequal_of(8, pool=2)
    feed(policy, view, {"a": (0, 0.1), "b": (0, 0.3), "c": (0, 0.2)})

    assert policy.choose(view, request(), RNG) is view.by_name["c"]


def test_a_server_that_is_no_longer_allowed_is_never_chosen() -> None:
    policy, view = prequal_of(4)
    feed(policy, view, {"a": (0, 0.1), "b": (0, 0.2), "c": (0, 0.3)})

    view.allow(["b", "c", "d"])

    assert policy.choose(view, request(), RNG) is view.by_name["b"]
    feed(policy, view, {"a": (0, 0.01)})
    assert policy.choose(view, request(), RNG) in view.allowed


def test_removal_takes_the_oldest_and_the_worst_in_turn() -> None:
    """Of a, b, c, d in order of receipt: a goes as the oldest, c as the hottest, then b as the oldest."""
    policy, view = prequal_of(4, removals_per_request=1.0)
    feed(policy, view, {"a": (1, 0.5), "b": (1, 0.6), "c": (9, 0.1), "d": (1, 0.4)})

    assert policy.choose(view, request(), RNG) is view.by_name["d"]  # least latency of the cold; a goes
    assert policy.choose(view, request(), RNG) is view.by_name["b"]  # d has two in flight and is warm; c goes
    assert policy.choose(view, request(), RNG) in (view.by_name["b"], view.by_name["d"])


def test_probes_go_to_distinct_allowed_servers_at_the_exact_rate() -> None:
    policy, view = prequal_of(10, probes_per_request=0.7)
    assert sum(len(policy.probes(view, RNG)) for _ in range(1000)) == 700

    policy, view = prequal_of(10, probes_per_request=3.0)
    view.allow(["b", "c", "d", "e"])
    for _ in range(100):
        probed = policy.probes(view, RNG)
        assert len(set(probed)) == len(probed) == 3
        assert set(probed) <= set(view.allowed)

    policy, view = prequal_of(2, probes_per_request=5.0)
    assert set(policy.probes(view, RNG)) == set(view.targets)


@pytest.mark.parametrize("rate", [0.1, 1 / 3, 1.0, 2.7])
def test_paced_numbers_add_up_to_their_rate(rate: float) -> None:
    paced = Paced(rate)

    numbers = [paced.next() for _ in range(3000)]

    assert sum(numbers) == pytest.approx(3000 * rate, abs=1)
    assert max(numbers) - min(numbers) <= 1


@pytest.mark.parametrize(
    ("probe_rate", "removal_rate", "expected"),
    [(3, 1, 1.316), (4, 0.25, 1), (2, 0.25, 1.40), (1.41, 0.25, 2.13), (1, 0.25, 3.39), (0.5, 0.25, 11.8)],
)
def test_the_limit_of_reuse_has_its_published_formula(
    probe_rate: float, removal_rate: float, expected: float
) -> None:
    """The setting of the paper: pool 16, 100 servers, delta 1."""
    assert reuse_limit(16, 100, probe_rate, removal_rate, 1.0) == pytest.approx(expected, rel=5e-3)


def test_without_a_meaning_the_limit_of_reuse_is_off() -> None:
    assert reuse_limit(4, 4, 3, 1, 1) == math.inf
    assert reuse_limit(16, 32, 3, 1, 1) == math.inf
    assert reuse_limit(16, 100, 1, 1, 1) == math.inf


def test_an_answer_is_used_up_after_its_limit_which_holds_in_the_mean() -> None:
    """Limit 2 / (0.84 * 3 - 1) = 1.316: answers are used once or twice, 1.316 times in the mean (4 s.e.: 0.06)."""
    policy, view = prequal_of(100, removals_per_request=1.0)
    lives = []
    for i in range(1000):
        policy.on_probe_reply(view, view.targets[i % 100], answer(0, 0.1, i))
        lives.append(policy._pool._answers[i % 100].uses_left)

    assert set(lives) == {1, 2}
    assert sum(lives) / 1000 == pytest.approx(1.316, abs=0.06)


def test_a_spent_answer_leaves_the_pool() -> None:
    policy, view = prequal_of(100, probes_per_request=3.0, delta=0.01)
    feed(policy, view, {"a": (0, 0.1), "b": (0, 0.2), "c": (0, 0.3)})

    chosen = [policy.choose(view, request(i), RNG) for i in range(2)]

    assert [target.name for target in chosen if target is not None] == ["a", "b"]


def test_the_quantile_follows_recent_answers_only() -> None:
    """After many busy answers a 5 is cold; after as many idle ones it is hot."""
    ranking = ranking_at(0.84, [50] * 200)
    assert ranking.hot_above() == 50
    for _ in range(200):
        ranking.on_answer(view_of([0]).targets[0], answer(1, 0.1))

    assert ranking.hot_above() == 1
    assert len(ranking._ranked) == 128


def test_a_server_that_fails_fast_does_not_look_quick() -> None:
    """a fails every request: its latency of 0.1 s counts as up to 2 s, above the 0.5 s of b."""
    policy, view = prequal_of(2)
    feed(policy, view, {"a": (0, 0.1), "b": (0, 0.5)})
    assert policy.choose(view, request(), RNG) is view.by_name["a"]

    for _ in range(60):
        policy.on_reply(view.by_name["a"], 0.001, Outcome.FAILED)
    feed(policy, view, {"a": (0, 0.1), "b": (0, 0.5)})

    assert policy.choose(view, request(), RNG) is view.by_name["b"]


def test_a_server_that_never_served_and_fails_counts_as_a_request_alone_would() -> None:
    """It states a latency of 0; alpha of the curve, 0.1 s, over the 5 % of success that errors leave at least."""
    success = Success()
    (target,) = view_of([0]).targets
    assert success.latency_s(target, 0.0) == 0.0

    for _ in range(200):
        success.on_reply(target, Outcome.FAILED)

    assert success.latency_s(target, 0.0) == pytest.approx(2.0, rel=1e-3)


def test_a_server_that_recovers_is_forgiven() -> None:
    success = Success()
    (target,) = view_of([0]).targets
    for outcome in [Outcome.TIMED_OUT] * 50 + [Outcome.COMPLETED] * 200:
        success.on_reply(target, outcome)

    assert success.fraction(target) == pytest.approx(1.0, abs=1e-3)


def test_idle_probes_go_to_at_least_two_allowed_servers() -> None:
    policy, view = prequal_of(5, probes_per_request=0.5, idle_probe_after="200 ms")
    view.allow(["a", "b", "d"])

    probed = policy.idle_probes(view, RNG)

    assert policy.idle_probe_after_s == 0.2
    assert len(set(probed)) == len(probed) == 2
    assert set(probed) <= set(view.allowed)


def synchronous(servers: int, **words: Any) -> tuple[SynchronousPrequal, View]:
    spec = PrequalPolicy(kind="prequal", mode="sync", **words)
    policy = build_prequal(spec, servers, 1, "us/leaf-1")
    assert isinstance(policy, SynchronousPrequal)
    return policy, view_of([0] * servers)


def test_in_sync_mode_all_answers_but_one_are_enough() -> None:
    policy, view = synchronous(10, probes_per_request=4.0, probe_timeout="1 ms")

    targets, needed = policy.ask(view, request(), RNG)

    assert policy.ask_timeout_s == 0.001
    assert len(set(targets)) == 4
    assert needed == 3


def test_in_sync_mode_the_rule_is_the_same_and_nothing_is_kept() -> None:
    """In flight 1, 2, 3, 9 at quantile 0.84: the 9 is hot; of the others b is the quickest."""
    policy, view = synchronous(5)
    replies = {"a": (1, 0.9), "b": (2, 0.2), "c": (3, 0.5), "d": (9, 0.1)}
    answers = [(view.by_name[name], answer(*reply)) for name, reply in replies.items()]
    for target, reply in answers:
        policy.on_probe_reply(view, target, reply)

    assert policy.choose_answered(view, request(), answers, RNG) is view.by_name["b"]
    assert policy.choose_answered(view, request(), answers[2:], RNG) is view.by_name["c"]
    view.allow(["c", "e"])
    assert policy.choose_answered(view, request(), answers, RNG) is view.by_name["c"]
    assert policy.choose_answered(view, request(), answers[:2], RNG) in view.allowed  # nobody to go by


def test_in_sync_mode_nobody_is_asked_where_there_is_no_choice() -> None:
    policy, view = synchronous(3)
    view.allow(["b"])

    assert policy.ask(view, request(), RNG) == ([], 0)
    assert policy.choose(view, request(), RNG) is view.by_name["b"]
    view.allow([])
    assert policy.choose(view, request(), RNG) is None


@pytest.mark.parametrize(("servers", "room"), [(2, 2), (4, 4), (8, 4), (16, 4), (40, 10), (100, 16)])
def test_a_pool_holds_answers_of_a_quarter_of_the_servers_but_of_four_at_least(
    servers: int, room: int
) -> None:
    policy, view = prequal_of(servers)
    for target in view.targets:
        policy.on_probe_reply(view, target, answer(0, 0.1))

    assert len(policy._pool) == room
