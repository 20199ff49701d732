import math

import numpy as np
import pytest

from testbed.analysis.records import Window
from testbed.analysis.synchrony import changes_by_report, mean_correlations, synchrony
from tests.analysis.made_arms import made_scenario

NO_SHIFT = np.zeros((1, 3))
WAVE = np.array([1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 1.0, -1.0])


def test_the_correlation_is_the_mean_over_the_pairs():
    """Two roots alike and one that does the opposite: pairs of 1, -1 and -1."""
    changes = np.array([WAVE, 2.0 * WAVE, -WAVE])

    assert mean_correlations(changes, NO_SHIFT)[0] == pytest.approx(-1 / 3)


def test_it_is_that_of_numpy_where_every_root_used_every_report():
    changes = np.random.default_rng(3).normal(size=(3, 50))
    pairs = np.corrcoef(changes)[np.triu_indices(3, 1)]

    assert mean_correlations(changes, NO_SHIFT)[0] == pytest.approx(pairs.mean())


def test_a_shift_turns_each_root_s_series_in_a_circle():
    changes = np.array([WAVE, np.roll(WAVE, 2)])

    found = mean_correlations(changes, np.array([[0.0, 0.0], [0.0, 2 / 8]]))

    assert found[1] == pytest.approx(1.0)
    assert found[0] < 0.9


def test_reports_that_a_root_never_used_are_left_out():
    lost = np.where(np.arange(9) == 3, np.nan, np.append(WAVE, 0.5))

    assert mean_correlations(np.array([lost, lost]), NO_SHIFT[:, :2])[0] == pytest.approx(1.0)


def test_roots_that_never_move_have_no_synchrony():
    assert math.isnan(mean_correlations(np.array([WAVE, 0.0 * WAVE]), NO_SHIFT[:, :2])[0])


def columns(**values):
    return {
        name: np.array(each, object if isinstance(each[0], str) else None) for name, each in values.items()
    }


def test_dx_is_the_change_at_the_first_update_that_used_a_report():
    scenario = made_scenario("flow", roots={"west": made_scenario().roots["west"]})
    updates = columns(
        **{"class": ["sand"] * 4},
        root=["root.west"] * 4,
        cell=["us"] * 4,
        sequence=[7, 7, 8, -1],
        used_at_s=[5.1, 5.2, 5.3, 5.4],
        probability_before=[0.3, 0.4, 0.45, 0.5],
        probability=[0.4, 0.45, 0.5, 0.6],
    )
    requests = columns(**{"class": ["sand"]}, root=["root.west"], cell=["us"], sent_at_s=[6.0])

    us, eu, _ = changes_by_report(scenario, {"requests": requests, "updates": updates}, Window(5.0, 20.0))

    assert us == pytest.approx(np.array([[0.1, 0.05]]))
    assert eu.shape == (1, 0)


def test_a_policy_without_probabilities_has_the_share_between_two_reports():
    """Reports 1, 2, 3 come at 6, 7, 8; two of two requests go to us after the first, one of two after the second."""
    scenario = made_scenario("greedy", roots={"west": made_scenario("greedy").roots["west"]})
    requests = columns(
        **{"class": ["sand"] * 4},
        root=["root.west"] * 4,
        cell=["us", "us", "eu", "us"],
        sent_at_s=[6.1, 6.2, 7.1, 7.2],
    )
    observations = columns(
        root=["root.west"] * 4, cell=["us"] * 4, sequence=[1, 2, 1, 3], received_at_s=[6.0, 7.0, 7.1, 8.0]
    )
    tables = {"requests": requests, "observations": observations}

    us = next(iter(changes_by_report(scenario, tables, Window(5.0, 20.0))))

    assert us == pytest.approx(np.array([[-0.5]]))


def test_a_single_root_moves_with_nobody():
    scenario = made_scenario("flow", roots={"west": made_scenario().roots["west"]})
    requests = columns(**{"class": ["sand"]}, root=["root.west"], cell=["us"], sent_at_s=[6.0])

    found = synchrony(scenario, {"requests": requests}, Window(5.0, 20.0))

    assert math.isnan(found.correlation)
    assert found.above_chance is None
