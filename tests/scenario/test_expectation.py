"""Expectations: what they say, what they refuse, and how they are held against a summary."""

from __future__ import annotations

from typing import Any

import pytest

from testbed.scenario.expectation import ExpectationError, parse_expectation

ARMS = ("greedy", "even", "flow", "greedy_2s")


def summary_of(**arms: dict[str, Any]) -> dict[str, Any]:
    return {"schema_version": 1, "arms": arms}


@pytest.mark.parametrize(
    ("text", "metric", "op", "factor", "right"),
    [
        (
            "oscillation.amplitude > 3 * flow.oscillation.amplitude",
            "oscillation.amplitude", ">", 3.0, ("flow", "oscillation.amplitude"),
        ),
        ("sojourn_s.p99 > 1.5 * flow.sojourn_s.p99", "sojourn_s.p99", ">", 1.5, ("flow", "sojourn_s.p99")),
        ("sojourn_s.p99>=flow.sojourn_s.p99", "sojourn_s.p99", ">=", 1.0, ("flow", "sojourn_s.p99")),
        ("cells.us.share > 0.40", "cells.us.share", ">", 1.0, 0.4),
        ("cells.us.share <= 5 %", "cells.us.share", "<=", 1.0, 0.05),
        ("sojourn_s.p99 < 250 ms", "sojourn_s.p99", "<", 1.0, 0.25),
        ("classes.sand.sojourn_s.p50 < 2 * 35 ms", "classes.sand.sojourn_s.p50", "<", 2.0, 0.035),
        ("settled.shares_settled_s < 8 s", "settled.shares_settled_s", "<", 1.0, 8.0),
        ("sojourn_s.p99 < 0.5", "sojourn_s.p99", "<", 1.0, 0.5),
        ("goodput_per_s >= 80 /s", "goodput_per_s", ">=", 1.0, 80.0),
        ("requests.completed == 1e3", "requests.completed", "==", 1.0, 1000.0),
        ("policy.step == 0.1 /s^2", "policy.step", "==", 1.0, 0.1),
        ("first_token_s.p99 > 2 * greedy_2s.first_token_s.p99", "first_token_s.p99", ">", 2.0,
         ("greedy_2s", "first_token_s.p99")),
    ],
)  # fmt: skip
def test_the_forms_of_an_expectation(text: str, metric: str, op: str, factor: float, right: Any) -> None:
    expectation = parse_expectation("greedy", text, arms=ARMS, line=3)

    assert (expectation.arm, expectation.metric, expectation.op, expectation.factor) == (
        "greedy",
        metric,
        op,
        factor,
    )
    assert (expectation.text, expectation.line) == (text, 3)
    if isinstance(right, tuple):
        assert (expectation.other_arm, expectation.other_metric) == right
        assert expectation.quantity is None
        assert expectation.arms == ("greedy", right[0])
    else:
        assert expectation.quantity == right
        assert expectation.other_arm is None
        assert expectation.arms == ("greedy",)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "'' is not an expectation"),
        ("sojourn_s.p99", "'sojourn_s.p99' is not an expectation"),
        ("sojourn_s.p99 =< 3", "'sojourn_s.p99 =< 3' is not an expectation"),
        ("3 < sojourn_s.p99", "'3 < sojourn_s.p99' is not an expectation"),
        ("sojourn_s..p99 < 3", "'sojourn_s..p99 < 3' is not an expectation"),
        ("sojourn_s.p99 < ", "'sojourn_s.p99 < ' is not an expectation"),
        ("sojurn_s.p99 < 3", "unknown metric 'sojurn_s' (sojourn_s?)"),
        ("sojourn_s.p99 < 3 * fast", "'fast' is neither a quantity nor a metric of an arm"),
        ("sojourn_s.p99 < sojourn_s.p50", "'sojourn_s' is not an arm"),
        ("sojourn_s.p99 < flwo.sojourn_s.p50", "'flwo' is not an arm (flow?)"),
        ("sojourn_s.p99 < flow.amplitude", "unknown metric 'amplitude'"),
        ("sojourn_s.p99 < 5 %", "'5 %' has the unknown unit '%'"),
        ("cells.us.share < 5 ms", "'5 ms' has the unknown unit 'ms'"),
        ("goodput_per_s > 3 s", "'3 s' has the unknown unit 's'"),
        ("cells.us.share < 1e999", "1e999 is out of range"),
        ("cells.us.share < 1e999 * 3", "the factor 1e999 is out of range"),
    ],
)
def test_what_is_no_expectation_says_what_is_wrong_with_it(text: str, problem: str) -> None:
    with pytest.raises(ExpectationError) as raised:
        parse_expectation("greedy", text, arms=ARMS)

    assert str(raised.value) == problem
    assert raised.value.accepted


def test_an_expectation_compares_a_metric_with_a_quantity() -> None:
    expectation = parse_expectation("flow", "cells.us.share > 40 %")

    met = expectation.check(summary_of(flow={"cells": {"us": {"share": 0.444}}}))
    missed = expectation.check(summary_of(flow={"cells": {"us": {"share": 0.333}}}))

    assert met == (True, 0.444, 0.4, "flow: cells.us.share > 40 %: met, 0.444 against 0.4")
    assert missed == (False, 0.333, 0.4, "flow: cells.us.share > 40 %: not met, 0.333 against 0.4")


def test_an_expectation_compares_a_metric_with_that_of_another_arm() -> None:
    expectation = parse_expectation("greedy", "sojourn_s.p99 > 1.5 * flow.sojourn_s.p99")
    outcome = expectation.check(
        summary_of(greedy={"sojourn_s": {"p99": 1.2}}, flow={"sojourn_s": {"p99": 0.5}})
    )

    assert outcome.met
    assert outcome.limit == 0.75


@pytest.mark.parametrize("op", [">", "<", ">=", "<=", "=="])
def test_every_operator_means_what_it_says(op: str) -> None:
    summary = summary_of(flow={"requests": {"completed": 2}})
    told = {
        limit: parse_expectation("flow", f"requests.completed {op} {limit}").check(summary).met
        for limit in (1, 2, 3)
    }

    assert (
        told
        == {
            ">": {1: True, 2: False, 3: False},
            "<": {1: False, 2: False, 3: True},
            ">=": {1: True, 2: True, 3: False},
            "<=": {1: False, 2: True, 3: True},
            "==": {1: False, 2: True, 3: False},
        }[op]
    )


@pytest.mark.parametrize(
    "entry",
    [
        {},
        {"oscillation": None},
        {"oscillation": {"period_s": None}},
        {"oscillation": {"period_s": float("nan")}},
        {"oscillation": {"period_s": {"mean": 2}}},
        {"oscillation": 3},
    ],
)
def test_a_metric_without_a_value_is_an_expectation_not_met(entry: dict[str, Any]) -> None:
    outcome = parse_expectation("flow", "oscillation.period_s < 2 s").check(summary_of(flow=entry))

    assert outcome == (
        False, None, 2.0, "flow: oscillation.period_s < 2 s: not met, flow.oscillation.period_s has no value",
    )  # fmt: skip


def test_an_arm_without_results_is_an_expectation_not_met() -> None:
    expectation = parse_expectation("flow", "sojourn_s.p99 < even.sojourn_s.p99")
    outcome = expectation.check(summary_of())

    assert not outcome.met
    assert outcome.text.endswith("not met, flow.sojourn_s.p99 and even.sojourn_s.p99 have no value")


def test_with_repeats_the_mean_and_eighty_percent_of_the_seeds_have_to_hold() -> None:
    expectation = parse_expectation("flow", "cells.us.share > 0.4")
    runs = [summary_of(flow={"cells": {"us": {"share": share}}}) for share in (0.5, 0.45, 0.42, 0.43, 0.39)]

    assert expectation.check_repeats(runs).met
    assert not expectation.check_repeats([*runs, runs[-1]]).met
    assert not expectation.check_repeats([*runs, summary_of(flow={"cells": {"us": {"share": 0.0}}})]).met
    assert not expectation.check_repeats([*runs, summary_of()]).met
    assert not expectation.check_repeats([]).met
    assert "5 seeds" in expectation.check_repeats(runs).text
