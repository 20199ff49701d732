"""Copies of requests, as the table of attempts has them."""

from __future__ import annotations

import math

import numpy as np

from testbed.analysis.records import Window
from testbed.analysis.resending import given_per_request, resending_figures

# Request 0 is given to two servers, the second one late; 1 to none; 2 to one; 3 comes late.
REQUESTS = {
    "request_id": np.arange(4),
    "planned_at_s": np.array([1.0, 2.0, 3.0, 12.0]),
    "server": np.array(["s1", "", "s1", "s1"], object),
    "at_leaf_s": np.array([1.5, np.nan, 3.5, 12.5]),
}
ATTEMPTS = {
    "request_id": np.array([0, 0, 0]),
    "attempt": np.array([0, 1, 2]),
    "leaf_attempt": np.array([0, 0, 0]),
    "cause": np.array(["first", "retry", "retry"], object),
    "server": np.array(["s2", "s1", ""], object),
    "outcome": np.array(["timed_out", "completed", "cancelled"], object),
    "leaf_outcome": np.array(["completed", "completed", ""], object),
    "at_leaf_s": np.array([1.5, 11.0, np.nan]),
}


def test_copies_given_in_a_window_count_there_whichever_request_they_are_of():
    tables = {"requests": REQUESTS, "attempts": ATTEMPTS}

    assert given_per_request(tables, Window(0.0, 10.0)) == 2 / 3
    assert given_per_request(tables, Window(10.0, 20.0)) == 2 / 1
    assert math.isnan(given_per_request(tables, Window(20.0, 30.0)))
    assert given_per_request({"requests": REQUESTS}, Window(0.0, 10.0)) == 2 / 3


def test_servings_count_all_copies_of_a_request_whenever_they_are_sent():
    first = {name: column[:3] for name, column in REQUESTS.items()}

    assert resending_figures(ATTEMPTS, first)["servings_per_request"] == (2 + 2) / 3
