from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence

from testbed.routing.load_interpretation import LoadInterpretation
from testbed.routing.view import View
from tests.routing.beliefs import report, request, view_of


def tell(
    policy: LoadInterpretation, view: View, at_s: float, loads: Sequence[int], arrivals: Sequence[int]
) -> None:
    """One bulletin board: every target reports at this instant."""
    for target, load, arrived in zip(view.targets, loads, arrivals, strict=True):
        words = report(load, sequence=int(at_s), measured_at_s=at_s, arrivals=arrived)
        assert target.on_report(target.name, words, at_s)
        policy.on_report(view, target)


def counts_of(policy: LoadInterpretation, view: View, draws: int = 10_000) -> Counter[str]:
    rng = random.Random(5)
    counts: Counter[str] = Counter()
    for i in range(draws):
        target = policy.choose(view, request(i), rng)
        assert target is not None
        counts[target.name] += 1
    return counts


def assert_shares(counts: Counter[str], shares: dict[str, float]) -> None:
    draws = sum(counts.values())
    assert set(counts) == {name for name, share in shares.items() if share > 0}
    for name, share in shares.items():
        assert abs(counts[name] - draws * share) <= 4 * math.sqrt(draws * share * (1 - share))


def test_shares_fill_all_targets_to_one_level_by_the_next_board() -> None:
    """Loads 1, 2, 4, 9 and 7 arrivals a second: the level is 14/3, and the last, above it, gets nothing."""
    view = view_of([0, 0, 0, 0])
    policy = LoadInterpretation(4, is_aggressive=False)
    tell(policy, view, 0.0, [0, 0, 0, 0], [0, 0, 0, 0])
    tell(policy, view, 1.0, [1, 2, 4, 9], [2, 2, 2, 1])

    level = (7 + 1 + 2 + 4) / 3
    shares = {name: (level - load) / 7 for name, load in (("a", 1), ("b", 2), ("c", 4))}
    assert_shares(counts_of(policy, view), {**shares, "d": 0.0})


def test_levels_are_per_capacity() -> None:
    """3 servers with 9 in flight stand as high as one with 3: both get what raises them alike."""
    view = view_of([0, 0], servers=[3, 1])
    policy = LoadInterpretation(2, is_aggressive=False)
    tell(policy, view, 0.0, [0, 0], [0, 0])
    tell(policy, view, 1.0, [9, 3], [8, 8])

    assert_shares(counts_of(policy, view), {"a": 0.75, "b": 0.25})


def test_until_two_boards_have_told_the_arrivals_the_split_is_by_capacity() -> None:
    view = view_of([0, 0], servers=[3, 1])
    policy = LoadInterpretation(2, is_aggressive=False)
    tell(policy, view, 0.0, [50, 0], [0, 0])

    assert_shares(counts_of(policy, view), {"a": 0.75, "b": 0.25})


def test_news_that_travels_counts_the_arrivals_of_its_travel_too() -> None:
    """Boards every second that are 3 s old on arrival: they are believed for 4 s, 4 of the 8 requests a second each."""
    view = view_of([0, 0])
    policy = LoadInterpretation(2, is_aggressive=False)
    for at_s in (0.0, 1.0):
        for target, load in zip(view.targets, (0, 16), strict=True):
            words = report(load, sequence=int(at_s), measured_at_s=at_s, arrivals=int(4 * at_s))
            target.on_report(target.name, words, at_s + 3.0)
            policy.on_report(view, target)

    assert_shares(counts_of(policy, view), {"a": 0.75, "b": 0.25})  # 32 arrivals raise both to 24


def test_the_aggressive_form_fills_the_lowest_first() -> None:
    view = view_of([0, 0, 0])
    policy = LoadInterpretation(3, is_aggressive=True)
    tell(policy, view, 0.0, [0, 0, 0], [0, 0, 0])
    tell(policy, view, 1.0, [0, 2, 5], [4, 3, 3])  # 10 a second: b is reached after 0.2 s, c after 0.8 s

    for now_s, reached in ((1.0, "a"), (1.19, "a"), (1.21, "ab"), (1.79, "ab"), (1.81, "abc"), (9.0, "abc")):
        view.now_s = now_s
        shares = {name: 1 / len(reached) if name in reached else 0.0 for name in "abc"}
        assert_shares(counts_of(policy, view), shares)


def test_the_rate_is_that_of_the_last_reports_and_a_restarted_count_starts_afresh() -> None:
    view = view_of([0, 0])
    policy = LoadInterpretation(2, is_aggressive=True)
    total = 0
    for at_s in range(200):
        total += 5 if at_s < 100 else 20
        tell(policy, view, float(at_s), [0, 10], [total, total])
    tell(policy, view, 200.0, [0, 10], [3, 3])  # both have been restarted
    tell(policy, view, 201.0, [0, 10], [23, 23])

    shares = []
    for now_s in (201.24, 201.26):  # 40 a second: 10 arrivals take 0.25 s
        view.now_s = now_s
        shares.append(counts_of(policy, view, 2_000)["b"] > 0)
    assert shares == [False, True]


def test_only_allowed_targets_are_filled() -> None:
    view = view_of([0, 0, 0])
    policy = LoadInterpretation(3, is_aggressive=False)
    tell(policy, view, 0.0, [0, 0, 0], [0, 0, 0])
    tell(policy, view, 1.0, [0, 2, 4], [2, 2, 2])
    counts_of(policy, view, 10)

    view.allow(["b", "c"])

    assert_shares(counts_of(policy, view), {"b": 4 / 6, "c": 2 / 6})
