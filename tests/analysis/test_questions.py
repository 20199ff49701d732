from copy import deepcopy

import pytest

from testbed.analysis.questions import QUESTIONS, ages, constraints, hidden_work, recovery, together
from testbed.analysis.summary import summarize_arm
from tests.analysis.made_arms import made_outcome, made_scenario, made_tables, steady

ARM = {
    "staleness_s": {"mean": 0.55, "p50": 0.55, "p99": 0.6},
    "transit_s": {"mean": 0.5, "p50": 0.5, "p99": 0.51},
    "synchrony": {"correlation": 0.95, "chance": 0.0, "chance_high": 0.07, "above_chance": True},
    "migration_per_minute": 125.15,
    "bounces_per_minute": 48.0,
    "imbalance": {"requests": 0.1, "work": 0.5, "within_cells": {"requests": 0.1, "work": 0.11}},
    "requests": {"planned": 1000},
    "constraints": {"violations": 0, "forbidden_probability_max": 0.0},
    "settled": {"change_at_s": 12.0, "shares_settled_s": None, "sojourn_settled_s": 1.5},
    "windows": {"before": {"sojourn_s": {"mean": 0.2}}, "last": {"sojourn_s": {"mean": 0.3}}},
}


def changed(**parts):
    arm = deepcopy(ARM)
    arm.update(parts)
    return arm


@pytest.mark.parametrize(
    ("answer", "arm", "said"),
    [
        (ages, ARM, "500 ms old when received (p99 510 ms), 550 ms old when used (p99 600 ms)."),
        (ages, changed(staleness_s={"p50": None}), "no observation was ever used."),
        (
            together,
            ARM,
            "yes: correlation 0.95 at the same report, where chance stays below 0.07; migration 125, bounces 48 per minute.",
        ),
        (together, changed(synchrony={"correlation": None}), "not known: fewer than two roots moved."),
        (
            hidden_work,
            ARM,
            "yes, between cells: the fullest above the mean, between cells 10 % in requests, 50 % in work; "
            "inside them 10 % in requests, 11 % in work.",
        ),
        (constraints, ARM, "yes: no violation in 1000 requests, none in any probability."),
        (
            constraints,
            changed(constraints={"violations": 3, "forbidden_probability_max": 0.2}),
            "no: 3 violations, largest probability of a forbidden cell 0.2.",
        ),
        (
            recovery,
            ARM,
            "only the response times settled after the change at 12 s: shares never, response times within 1.5 s; "
            "mean sojourn 200 ms before, 300 ms at the end.",
        ),
    ],
)
def test_each_answer_is_a_sentence_with_its_numbers(answer, arm, said):
    assert answer(arm) == said


@pytest.mark.parametrize("rate_per_s", [300.0, 1e-9])
def test_every_question_has_an_answer_to_any_run(rate_per_s):
    scenario = made_scenario("greedy")
    tables = made_tables(scenario, steady(0.4, 0.3, 0.3), rate_per_s=rate_per_s)

    summary = summarize_arm(scenario, tables, made_outcome())

    assert len([question.answer(summary) for question in QUESTIONS]) == 5
