import math

import numpy as np
import pytest

from testbed.analysis.records import Window
from testbed.analysis.settling import (
    bin_averages,
    cell_probability,
    changes_s,
    probability_series,
    settled_s,
    settled_sojourn_s,
    shares_settled_s,
)
from tests.analysis.made_arms import made_requests, made_scenario, made_updates, steady

NOTHING = np.empty(0)


def test_values_that_stay_near_their_end_have_settled_when_they_came_near():
    after = np.array([3.0, 2.0, 1.5, 1.2, 1.04, 1.01, 0.99, 1.0, 1.0])

    assert settled_s(NOTHING, after, bin_s=0.5) == pytest.approx(4 * 0.5)


def test_a_brief_visit_is_not_settling():
    """Two bins near the end value are fewer than 3T."""
    after = np.array([3.0, 1.0, 1.0, 3.0, 3.0, 1.0, 1.0, 1.0, 1.0])

    assert settled_s(NOTHING, after, bin_s=1.0) == 5.0


def test_what_swung_before_may_swing_after():
    before = np.array([1.0, 1.2, 0.8, 1.1, 0.9])
    after = np.array([1.3, 0.8, 1.2, 0.9, 1.1, 1.0])

    assert settled_s(before, after, 1.0) == 0.0
    assert math.isnan(settled_s(NOTHING, after, 1.0))


def test_what_keeps_growing_never_settles():
    assert math.isnan(settled_s(NOTHING, np.linspace(1.0, 20.0, 40), 1.0))


def test_bins_without_news_keep_the_last_value():
    after = np.array([np.nan, 2.0, np.nan, 1.0, np.nan, np.nan, 1.0])

    assert settled_s(NOTHING, after, 1.0) == 3.0


def test_too_short_an_end_says_nothing():
    assert math.isnan(settled_s(NOTHING, np.array([1.0, 1.0]), 1.0))
    assert math.isnan(settled_s(NOTHING, np.full(5, np.nan), 1.0))


def test_faults_heals_and_stages_are_changes():
    traffic = {
        "class": "sand",
        "policy": "flow",
        "stages": [{"at": "0 s", "load": 0.3}, {"at": "6 s", "load": 0.5}],
    }
    scenario = made_scenario(
        roots={"west": {"traffic": [traffic]}},
        faults=[
            {"at": "8 s", "for": "4 s", "cell": "eu", "set": {"speed": 0.4}},
            {"at": "19 s", "for": "4 s", "cell": "us", "set": {"speed": 0.4}},
        ],
    )

    assert changes_s(scenario) == [6.0, 8.0, 12.0, 19.0]


def test_probabilities_are_averaged_over_time_in_each_bin():
    """A step from 0.2 to 0.6 in the middle of a bin gives 0.4 there; the value before the first reaches back."""
    updates = {
        "root": np.array(["root.west"] * 2, object),
        "class": np.array(["sand"] * 2, object),
        "cell": np.array(["us"] * 2, object),
        "used_at_s": np.array([1.5, 3.0]),
        "probability_before": np.array([0.2, 0.6]),
        "probability": np.array([0.6, 0.8]),
    }

    series = probability_series(updates, "us", np.array([0.0, 1.0, 2.0, 3.0, 4.0]))

    assert series[("root.west", "sand")] == pytest.approx([0.2, 0.4, 0.6, 0.8])


def exponential_shares(change_s: float, time_s: float):
    """The first cell's share falls from 0.4 to 0.2 with this time constant after the change."""

    def shares(at_s: np.ndarray) -> np.ndarray:
        past = np.maximum(at_s - change_s, 0.0)
        first = 0.2 + 0.2 * np.exp(-past / time_s)
        return np.column_stack((first, 0.5 * (1 - first), 0.5 * (1 - first)))

    return shares


def test_shares_settle_when_the_slowest_cell_has():
    """0.2 + 0.2 exp(-t/1 s) is within 5 % of 0.2 from t = ln 20 = 3.0 s on."""
    scenario = made_scenario()
    shares = exponential_shares(8.0, 1.0)
    requests, updates = made_requests(scenario, shares), made_updates(scenario, shares)

    settled = shares_settled_s(scenario, requests, updates, Window(5.0, 20.0), 8.0, bin_s=0.5)

    assert settled == pytest.approx(3.0, abs=0.5)


def test_shares_of_arrivals_are_used_where_nobody_updates():
    scenario = made_scenario("greedy")
    requests = made_requests(scenario, exponential_shares(8.0, 1.0), rate_per_s=2000.0)

    settled = shares_settled_s(scenario, requests, {}, Window(5.0, 20.0), 8.0, bin_s=0.5)

    assert 1.0 <= settled <= 5.0


def test_the_sojourn_settles_apart_from_the_shares():
    planned = np.arange(0.0, 20.0, 0.01)
    sojourn = np.where((planned >= 8.0) & (planned < 10.0), 3.0, 1.0)

    settled = settled_sojourn_s(planned, sojourn, Window(5.0, 20.0), 8.0, bin_s=0.5)

    assert settled == pytest.approx(2.0, abs=0.5)


def test_roots_weigh_in_with_their_requests():
    scenario = made_scenario()
    requests = made_requests(scenario, steady(0.4, 0.3, 0.3), rate_per_s=100.0)
    requests["root"][:] = "root.west"
    updates = made_updates(scenario, steady(0.4, 0.3, 0.3))

    mixed = cell_probability(updates, requests, "us", np.array([5.0, 6.0]))

    assert mixed == pytest.approx(0.39)  # of `west`, which lies 0.01 below the others


def test_empty_bins_have_no_average():
    assert np.isnan(bin_averages(np.array([0.5]), np.array([1.0]), np.array([0.0, 1.0, 2.0]))).tolist() == [
        False,
        True,
    ]
