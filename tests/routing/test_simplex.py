from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.routing.simplex import project

ENTRY = st.tuples(st.floats(-100, 100), st.booleans())
ENTRIES = st.lists(ENTRY, min_size=1, max_size=40).filter(lambda entries: any(ok for _, ok in entries))


@settings(max_examples=300, deadline=None)
@given(ENTRIES)
def test_a_projection_is_a_probability_with_forbidden_entries_exactly_zero(
    entries: list[tuple[float, bool]],
) -> None:
    values, allowed = zip(*entries, strict=True)

    projected = project(values, allowed)

    assert sum(projected) == pytest.approx(1.0, abs=1e-12)
    assert min(projected) >= 0.0
    assert all(share == 0.0 for share, ok in zip(projected, allowed, strict=True) if not ok)


@settings(max_examples=300, deadline=None)
@given(ENTRIES)
def test_projecting_twice_changes_nothing(entries: list[tuple[float, bool]]) -> None:
    values, allowed = zip(*entries, strict=True)

    once = project(values, allowed)

    assert project(once, allowed) == pytest.approx(once, abs=1e-14)


@settings(max_examples=300, deadline=None)
@given(ENTRIES)
def test_no_probability_is_nearer(entries: list[tuple[float, bool]]) -> None:
    """The conditions of Karush, Kuhn and Tucker: v - x is one constant where x > 0 and no larger elsewhere."""
    values, allowed = zip(*entries, strict=True)

    projected = project(values, allowed)

    gaps = [(v - x, x) for v, x, ok in zip(values, projected, allowed, strict=True) if ok]
    highest = max(gap for gap, _ in gaps)
    assert all(gap == pytest.approx(highest, abs=1e-10) for gap, share in gaps if share > 1e-10)


def test_a_common_shift_and_huge_values_do_no_harm() -> None:
    assert project([1e9 + 0.25, 1e9 - 0.25], [True, True]) == [0.75, 0.25]
    assert project([-3e12, 0.0, 5.0], [True, True, True]) == [0.0, 0.0, 1.0]


def test_a_worked_example() -> None:
    assert project([0.9, 0.5, -0.4, 7.0], [True, True, True, False]) == pytest.approx([0.7, 0.3, 0.0, 0.0])


def test_without_an_allowed_target_there_is_nothing_to_give() -> None:
    with pytest.raises(ValueError, match="no target is allowed"):
        project([0.5, 0.5], [False, False])
