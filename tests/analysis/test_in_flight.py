import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.analysis.in_flight import bin_means, grid_edges, in_flight_by_cell, mean_counts, step_function

INSTANT = st.floats(0, 10, allow_subnormal=False)


def test_a_step_function_counts_who_has_entered_and_not_left():
    instants, counts = step_function(np.array([1.0, 2.0, np.nan]), np.array([3.0, np.nan, 4.0]))

    assert instants.tolist() == [1.0, 2.0, 3.0]
    assert counts.tolist() == [1, 2, 1]


def test_bins_hold_the_integral_of_the_step_function():
    """In flight 1 in [1, 3): a bin of [0, 2) is half full, one of [2, 4) too."""
    means = bin_means(*step_function(np.array([1.0]), np.array([3.0])), np.array([0.0, 2.0, 4.0, 6.0]))

    assert means.tolist() == [0.5, 0.5, 0.0]


def test_nobody_ever_is_zero_everywhere():
    nobody = np.empty(0)

    assert bin_means(*step_function(nobody, nobody), np.array([0.0, 1.0])).tolist() == [0.0]


@given(st.lists(st.tuples(INSTANT, INSTANT), max_size=30))
@settings(max_examples=100, deadline=None)
def test_the_area_does_not_depend_on_the_bins(stays: list[tuple[float, float]]):
    """The sum over the bins is the sum of the parts of the stays inside the window."""
    entered = np.array([min(stay) for stay in stays])
    left = np.array([max(stay) for stay in stays])
    edges = np.linspace(2.0, 9.0, 8)

    area = float((bin_means(*step_function(entered, left), edges) * np.diff(edges)).sum())

    inside = np.clip(left, 2.0, 9.0) - np.clip(entered, 2.0, 9.0)
    assert area == pytest.approx(inside.sum(), abs=1e-9)


@given(st.lists(st.tuples(INSTANT, INSTANT), max_size=30))
@settings(max_examples=100, deadline=None)
def test_counting_by_bins_gives_what_the_step_function_gives(stays: list[tuple[float, float]]):
    entered = np.array([min(stay) for stay in stays])
    left = np.array([max(stay) if i % 3 else np.nan for i, stay in enumerate(stays)])
    edges = np.linspace(2.0, 9.0, 8)

    means = mean_counts(entered, left, edges)

    assert means == pytest.approx(bin_means(*step_function(entered, left), edges), abs=1e-9)


def test_who_never_left_stays_to_the_end():
    requests = {
        "cell": np.array(["us", "eu"], object),
        "at_leaf_s": np.array([1.0, np.nan]),
        "left_leaf_s": np.array([np.nan, np.nan]),
    }

    means = in_flight_by_cell(requests, ["us", "eu"], np.array([0.0, 2.0, 4.0]))

    assert means.tolist() == [[0.5, 1.0], [0.0, 0.0]]


def test_the_grid_is_a_twentieth_of_the_loop_delay_but_at_most_a_quarter_of_the_sojourn():
    assert np.diff(grid_edges(5.0, 20.0, 0.6, 1.0))[0] == pytest.approx(0.03)
    assert np.diff(grid_edges(5.0, 20.0, 0.6, 0.04))[0] == pytest.approx(0.01)
    assert np.diff(grid_edges(5.0, 20.0, np.nan, 0.04))[0] == pytest.approx(0.01)
    assert len(grid_edges(0.0, 20.0, np.nan, np.nan)) == 401


def test_an_empty_window_is_refused():
    with pytest.raises(ValueError, match=r"an empty window: from 5\.0 s to 5\.0 s"):
        grid_edges(5.0, 5.0, 0.6, 0.1)
