"""Bins of lateness give percentiles at most 5 % too high."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from testbed.links.lateness import (
    BIN_COUNT,
    FIRST_END_S,
    RATIO,
    bin_end_s,
    bin_of,
    counts_by_bin,
    percentile_s,
)


@given(st.floats(min_value=0.0, max_value=1e4))
def test_a_lateness_lies_in_its_bin(lateness_s: float) -> None:
    """Up to the rounding of a logarithm, which may put a lateness at an edge on either side."""
    index = bin_of(lateness_s)

    assert 0 <= index < BIN_COUNT
    if index < BIN_COUNT - 1:
        assert lateness_s <= bin_end_s(index) * (1 + 1e-12)
    if index > 0:
        assert lateness_s >= bin_end_s(index - 1) * (1 - 1e-12)


@given(
    st.lists(st.floats(min_value=FIRST_END_S, max_value=10.0), min_size=1, max_size=40), st.floats(0.0, 1.0)
)
def test_a_percentile_from_bins_is_at_most_one_bin_too_high(lateness_s: list[float], fraction: float) -> None:
    bins = [0] * BIN_COUNT
    for each in lateness_s:
        bins[bin_of(each)] += 1

    rank = max(1, math.ceil(fraction * len(lateness_s)))
    exact_s = sorted(lateness_s)[rank - 1]
    assert exact_s * (1 - 1e-12) <= percentile_s(bins, fraction) <= exact_s * RATIO * (1 + 1e-12)


def test_no_message_has_no_percentile() -> None:
    assert math.isnan(percentile_s([0] * BIN_COUNT, 0.99))
    assert math.isnan(percentile_s([], 0.5))


def test_many_are_counted_like_one_by_one() -> None:
    late_s = [-1.0, 0.0, 1e-7, 1e-6, 1.1e-6, 3e-5, 0.0021, 0.5, 9.99, 10.0, 25.0, 1e3]

    one_by_one = [0] * BIN_COUNT
    for each in late_s:
        one_by_one[bin_of(each)] += 1
    assert counts_by_bin(late_s).tolist() == one_by_one
