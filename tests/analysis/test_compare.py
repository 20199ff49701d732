import math

import pytest

from testbed.analysis.compare import (
    MISSING,
    compare_figures,
    compared_arms,
    differing_keys,
    estimate,
    figure_at,
    main_figures,
)


def summary(p99: float, share: float = 0.4):
    arm = {
        "sojourn_s": {"p99": p99},
        "oscillation": {"amplitude": None},
        "cells": {"us": {"share": share, "in_flight_mean": 30.0}},
    }
    return {"arms": {"flow": arm}}


def test_every_key_that_differs_is_listed_with_both_values():
    left = {
        "seed": 1,
        "links": [{"delay": "20 ms"}, {"delay": "5 ms"}],
        "policies": {"flow": {"step": "0.1 /s^2"}},
    }
    right = {
        "seed": 1,
        "links": [{"delay": "30 ms"}],
        "policies": {"flow": {"step": "0.2 /s^2", "interval": "1 s"}},
    }

    assert differing_keys(left, right) == [
        ("links[0].delay", "20 ms", "30 ms"),
        ("links[1]", {"delay": "5 ms"}, MISSING),
        ("policies.flow.step", "0.1 /s^2", "0.2 /s^2"),
        ("policies.flow.interval", MISSING, "1 s"),
    ]


def test_equal_structures_differ_in_nothing():
    words = {"a": [1, {"b": math.nan}], "c": (1, 2)}

    assert differing_keys(words, {"a": [1, {"b": math.nan}], "c": [1, 2]}) == []


def test_a_figure_that_is_null_or_not_there_is_nan():
    arm = summary(1.0)["arms"]["flow"]

    assert figure_at(arm, "sojourn_s.p99") == 1.0
    assert math.isnan(figure_at(arm, "oscillation.amplitude"))
    assert math.isnan(figure_at(arm, "sojourn_s.p50.deeper"))
    assert main_figures(arm)["cells.us.share"] == 0.4


def test_an_interval_is_students():
    """Three values 1, 2, 3: mean 2, standard error 1/sqrt(3), t = 4.303 with two degrees of freedom."""
    found = estimate([1.0, 2.0, 3.0, math.nan])

    assert found.mean == 2.0
    assert found.half_width == pytest.approx(4.3027 / math.sqrt(3), rel=1e-4)
    assert found.runs == 3


def test_single_runs_have_a_difference_without_an_interval():
    found = {each.figure: each for each in compare_figures([summary(1.0)], [summary(1.5)])}

    assert found["sojourn_s.p99"].difference == 0.5
    assert found["sojourn_s.p99"].relative == 0.5
    assert math.isnan(found["sojourn_s.p99"].half_width)
    assert math.isnan(found["oscillation.amplitude"].difference)
    assert found["cells.us.share"].difference == 0.0


def test_several_seeds_give_the_difference_an_interval():
    """Equal spreads and counts: Welch's degrees of freedom are 2 (n - 1) = 4, t = 2.776."""
    found = compare_figures([summary(x) for x in (1.0, 2.0, 3.0)], [summary(x) for x in (2.0, 3.0, 4.0)])

    p99 = next(each for each in found if each.figure == "sojourn_s.p99")
    assert p99.difference == pytest.approx(1.0)
    assert p99.half_width == pytest.approx(2.7764 * math.sqrt(2 / 3), rel=1e-4)
    share = next(each for each in found if each.figure == "cells.us.share")
    assert share.half_width == pytest.approx(0.0, abs=1e-12)


def test_arms_that_one_side_lacks_are_left_out():
    both = {"arms": {"greedy": {}, **summary(1.5)["arms"]}}

    assert {each.arm for each in compare_figures([summary(1.0)], [both])} == {"flow"}
    assert compared_arms([{"arms": {"a": {}, "b": {}}}], [{"arms": {"c": {}}}]) == []


def test_the_only_arms_of_two_runs_are_compared_whatever_their_names():
    found = compare_figures([summary(1.0)], [{"arms": {"greedy": summary(1.5)["arms"]["flow"]}}])

    p99 = next(each for each in found if each.figure == "sojourn_s.p99")
    assert p99.arm == "flow, greedy"
    assert p99.difference == 0.5
