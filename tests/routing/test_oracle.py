from __future__ import annotations

import random

import pytest

from testbed.errors import RunError
from testbed.routing.oracle import Truth, build_oracle, expected_sojourn_s
from testbed.scenario.policy_words import OraclePolicy
from tests.routing.beliefs import CURVE, request, view_of


def chosen(truths: dict[str, Truth], **words: bool) -> str:
    view = view_of([0] * len(truths))
    policy = build_oracle(OraclePolicy(kind="oracle", **words), view, truths.__getitem__)
    target = policy.choose(view, request(), random.Random(1))
    assert target is not None
    return target.name


def test_the_oracle_chooses_by_the_truth_and_not_by_what_was_reported() -> None:
    assert chosen({"a": Truth(4, 0, 1.0), "b": Truth(3, 0, 1.0), "c": Truth(9, 0, 1.0)}) == "b"


def test_requests_under_way_count_unless_its_words_leave_them_out() -> None:
    truths = {"a": Truth(4, 0, 1.0), "b": Truth(3, 2, 1.0)}

    assert chosen(truths) == "a"
    assert chosen(truths, under_way=False) == "b"


def test_a_slower_target_is_the_costlier_one() -> None:
    assert chosen({"a": Truth(0, 0, 0.5), "b": Truth(5, 0, 1.0)}) == "b"


def test_the_expected_stay_is_on_the_curve_up_to_the_cap_and_at_the_capacity_beyond() -> None:
    """alpha 0.1 s, beta 0.01 s, cap 30: 30 in flight take 0.4 s, 60 take twice as long."""
    target = view_of([0], servers=[2]).targets[0]

    assert expected_sojourn_s(target, 39, 1.0) == pytest.approx(0.1 + 0.01 * 20)
    assert (
        expected_sojourn_s(target, 59, 1.0) == pytest.approx(30 / CURVE.capacity_per_s) == pytest.approx(0.4)
    )
    assert expected_sojourn_s(target, 119, 0.5) == pytest.approx(1.6)
    target.on_network(0.05)
    assert expected_sojourn_s(target, 39, 1.0) == pytest.approx(0.35)


def test_the_records_are_told_what_the_oracle_counted() -> None:
    view = view_of([7])
    build_oracle(OraclePolicy(kind="oracle"), view, lambda name: Truth(3, 2, 1.0))

    assert view.count(view.targets[0]) == 5


def test_an_engine_that_does_not_know_the_truth_is_refused() -> None:
    with pytest.raises(RunError, match="--engine virtual"):
        build_oracle(OraclePolicy(kind="oracle"), view_of([0]), None)
