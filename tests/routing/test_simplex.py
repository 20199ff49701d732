from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from testbed.routing.simplex import follow, project, tangent

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


SMALL = st.lists(
    st.tuples(st.floats(-3, 3), st.floats(0, 1), st.booleans(), st.booleans()), min_size=1, max_size=6
)
SMALL = SMALL.filter(lambda entries: any(ok for *_, ok in entries))
FLOORS = st.sampled_from((0.0, 0.0, 0.02, 0.1))


def nearest(values: np.ndarray, allowed: np.ndarray, least: np.ndarray, total: float) -> np.ndarray:
    """The nearest point to `values` with these lower bounds and this sum over the allowed entries, by a QP solver."""
    if allowed.sum() == 1:
        return np.where(allowed, total, 0.0)
    kept = values[allowed]
    with warnings.catch_warnings():
        # the solver steps over a bound by a rounding error, says so, and goes back to it
        warnings.filterwarnings("ignore", "Values in x were outside bounds", RuntimeWarning)
        found = minimize(
            lambda x: 0.5 * ((x - kept) ** 2).sum(),
            np.full(len(kept), total / len(kept)),
            jac=lambda x: x - kept,
            bounds=[(each, None) for each in least[allowed]],
            constraints={"type": "eq", "fun": lambda x: x.sum() - total, "jac": lambda x: np.ones(len(x))},
            method="SLSQP",
            options={"ftol": 1e-15, "maxiter": 500},
        )
    point = np.zeros(len(values))
    point[allowed] = found.x
    return point


def probabilities(weights: np.ndarray, at_floor: np.ndarray, allowed: np.ndarray, floor: float) -> np.ndarray:
    """Probabilities over the allowed entries, some of them at the floor."""
    above = np.where(allowed & ~at_floor, weights + 0.1, 0.0)
    if above.sum() == 0.0:
        above[np.flatnonzero(allowed)[0]] = 1.0
    shares = np.where(allowed, floor, 0.0)
    return np.where(allowed, shares + (1.0 - shares.sum()) * above / above.sum(), 0.0)


@settings(max_examples=150, deadline=None)
@given(SMALL, FLOORS)
def test_a_quadratic_program_finds_no_nearer_probability(
    entries: list[tuple[float, float, bool, bool]], floor: float
) -> None:
    values, allowed = (np.array(each) for each in (list(zip(*entries, strict=True))[i] for i in (0, 3)))

    projected = np.array(project(values.tolist(), allowed.tolist(), floor))

    assert projected.sum() == pytest.approx(1.0, abs=1e-12)
    assert (projected[allowed] >= floor - 1e-15).all()
    assert (projected[~allowed] == 0.0).all()
    assert projected == pytest.approx(nearest(values, allowed, np.full(len(values), floor), 1.0), abs=2e-6)


@settings(max_examples=150, deadline=None)
@given(SMALL, FLOORS)
def test_a_quadratic_program_finds_no_nearer_direction_of_the_tangent_cone(
    entries: list[tuple[float, float, bool, bool]], floor: float
) -> None:
    values, weights, at_floor, allowed = (np.array(each) for each in zip(*entries, strict=True))
    shares = probabilities(weights, at_floor, allowed, floor)

    moved = np.array(tangent(values.tolist(), shares.tolist(), allowed.tolist(), floor))

    bound = shares <= floor
    assert moved.sum() == pytest.approx(0.0, abs=1e-12)
    assert (moved[bound & allowed] >= 0.0).all()
    assert (moved[~allowed] == 0.0).all()
    assert tangent(moved.tolist(), shares.tolist(), allowed.tolist(), floor) == pytest.approx(
        moved, abs=1e-14
    )
    least = np.where(bound, 0.0, -1e3)
    assert moved == pytest.approx(nearest(values, allowed, least, 0.0), abs=2e-6)


@settings(max_examples=200, deadline=None)
@given(SMALL, FLOORS)
def test_following_the_tangent_cone_ends_where_the_projection_of_the_whole_step_is(
    entries: list[tuple[float, float, bool, bool]], floor: float
) -> None:
    """What reaches its floor on the way lies below the mean from then on: it is what the projection cuts."""
    direction, weights, at_floor, allowed = (np.array(each) for each in zip(*entries, strict=True))
    shares = probabilities(weights, at_floor, allowed, floor)

    followed = follow(shares.tolist(), direction.tolist(), allowed.tolist(), floor)

    assert sum(followed) == pytest.approx(1.0, abs=1e-12)
    assert min(followed) >= 0.0
    assert all(share == 0.0 for share, ok in zip(followed, allowed, strict=True) if not ok)
    expected = project((shares + direction).tolist(), allowed.tolist(), floor)
    assert followed == pytest.approx(expected, abs=1e-12)


def test_a_floor_for_more_than_there_is_gives_an_even_split() -> None:
    assert project([5.0, 0.0, 1.0], [True, True, False], floor=0.7) == [0.5, 0.5, 0.0]


def test_a_direction_at_the_edge_only_leads_inside() -> None:
    """Equation of theory.md 2.3: the second entry may not fall, so the others share the balance."""
    moved = tangent([0.2, -1.0, -0.2], [0.5, 0.0, 0.5], [True, True, True])

    assert moved == pytest.approx([0.2, 0.0, -0.2])
    with pytest.raises(ValueError, match="no target is allowed"):
        tangent([1.0], [0.0], [False])
