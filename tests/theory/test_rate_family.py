"""Rates, slopes and marginal costs of cells: against differences, the curve of the roots, and the table of theory.md."""

from __future__ import annotations

import numpy as np
import pytest

from testbed.routing.cost import CEILING
from testbed.serving.rate_curve import RateCurve
from testbed.theory.rate_family import (
    BatchCurves,
    ClippedServers,
    ExponentialSaturation,
    RateFamily,
    hyperbolic,
    of_curves,
)

CAPACITY, HALF = np.array([50.0, 20.0]), np.array([100.0, 8.0])
FAMILIES = {
    "hyperbolic": hyperbolic(CAPACITY, HALF),
    "exponential": ExponentialSaturation(CAPACITY, HALF),
    "batch": BatchCurves(
        np.array([0.1, 0.2]), np.array([0.01, 0.02]), np.array([30.0, 50.0]), np.array([2.0, 3.0])
    ),
    "clipped": ClippedServers(np.array([10.0, 4.0]), np.array([5.0, 6.0])),
}


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_the_marginal_cost_is_the_inverse_of_the_slope_of_the_rate(family: RateFamily) -> None:
    for fraction in (0.2, 0.7):
        n = family.in_flight(fraction * family.capacity_per_s)
        difference = (family.rate_per_s(n * 1.0001) - family.rate_per_s(n * 0.9999)) / (0.0002 * n)

        assert family.rate_per_s(n) == pytest.approx(fraction * family.capacity_per_s)
        assert family.slope_per_s(n) == pytest.approx(difference, rel=1e-6)
        assert family.marginal_s(n) * family.slope_per_s(n) == pytest.approx(1.0)
        assert family.sojourn_s(n) == pytest.approx(n / family.rate_per_s(n))


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_no_count_sustains_the_capacity_and_none_is_due_for_nothing(family: RateFamily) -> None:
    assert np.isinf(family.in_flight(family.capacity_per_s * 1.0000001)).all()
    assert (family.in_flight(np.zeros(2)) == 0.0).all()
    assert np.isfinite(family.sojourn_s(np.zeros(2))).all()


def test_the_operating_point_is_that_of_the_table() -> None:
    """theory.md, section 2.4: N*, l' and 1/l' of the first two families at rho 0.7."""
    rho = 0.7
    n = {name: FAMILIES[name].in_flight(rho * CAPACITY) for name in ("hyperbolic", "exponential")}

    assert n["hyperbolic"] == pytest.approx(HALF * rho / (1 - rho))
    assert FAMILIES["hyperbolic"].slope_per_s(n["hyperbolic"]) == pytest.approx(
        CAPACITY / HALF * (1 - rho) ** 2
    )
    assert n["exponential"] == pytest.approx(HALF * np.log(1 / (1 - rho)))
    assert FAMILIES["exponential"].slope_per_s(n["exponential"]) == pytest.approx(CAPACITY / HALF * (1 - rho))


def test_batch_curves_cost_what_the_roots_reckon() -> None:
    """Below the cap, beyond it, and where the cost is cut."""
    curve, servers = RateCurve(0.1, 0.01, 30.0), 4
    family = of_curves([curve], np.array([servers]))

    for n in (0.0, 12.0, 30.0, 31.0, 80.0, 5000.0):
        marginal_s = min(curve.marginal_s(n), CEILING * curve.alpha_s)
        in_flight = np.array([n * servers])
        assert family.marginal_s(in_flight) == pytest.approx([marginal_s])
        assert family.rate_per_s(in_flight) == pytest.approx([servers * curve.rate_per_s(n)])
        assert family.sojourn_s(in_flight) == pytest.approx([curve.latency_s(n)])
    assert family.slope_per_s(np.array([31.0 * servers])) == 0.0
    assert family.capacity_per_s == pytest.approx([servers * curve.capacity_per_s])


def test_each_line_may_have_curves_of_its_own() -> None:
    """Parameters of shape (lines, cells) go with counts of shape (instants, lines, cells)."""
    family = BatchCurves(np.full((2, 3), 0.1), np.full((2, 3), 0.01), np.full((2, 3), np.inf), np.ones(3))

    assert family.marginal_s(np.ones((5, 2, 3))).shape == (5, 2, 3)
