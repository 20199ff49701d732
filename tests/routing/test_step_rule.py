"""The safe step: its closed forms, and what it must do as load, delay and work change."""

from __future__ import annotations

import math

import pytest

from testbed.routing.step_rule import Loop, derive_step, utilisation
from testbed.scenario.policy_words import Cost
from testbed.serving.delayed_loop import critical_gain, fixed_work
from testbed.serving.rate_curve import RateCurve

# C = 50 /s, N0 = 100 of theory.md, V2: alpha = N0/C, beta = 1/C
CURVE = RateCurve(2.0, 0.02)


def loops(delay_s: float = 0.4, **changes: object) -> list[Loop]:
    return [Loop(1.0, CURVE, CURVE, None, delay_s)._replace(**changes)] * 2


def test_the_critical_step_is_that_of_theory() -> None:
    """V2: 1.209e-2 /s^2 at rho 0.7 and T = 0.4 s; the safe one is the smaller of a tenth of it and a^2/4's."""
    derived = derive_step(loops(), 70.0, "marginal")

    a = 50 / 100 * 0.3**2
    sigma = 2 / (50 * 0.3)
    assert utilisation(loops(), 70.0) == pytest.approx(0.7)
    assert derived.a_per_s == pytest.approx(a)
    assert derived.critical_step == pytest.approx(1.209e-2, rel=1e-3)
    assert derived.step == pytest.approx(min(a**2 / 4, 0.1 * critical_gain(a, 0.4)) / (sigma * 70))
    assert derived.step == pytest.approx(a**2 / 4 / (sigma * 70))


def test_with_a_long_delay_a_tenth_of_the_critical_gain_is_the_smaller_one() -> None:
    derived = derive_step(loops(delay_s=60.0), 70.0, "marginal")

    assert derived.step == pytest.approx(0.1 * derived.critical_step)


def test_more_load_and_more_delay_take_smaller_steps() -> None:
    at = {
        (rate, delay_s): derive_step(loops(delay_s), rate, "marginal").step
        for rate in (30.0, 50.0, 70.0) for delay_s in (5.0, 200.0)
    }  # fmt: skip

    assert at[30.0, 5.0] > at[50.0, 5.0] > at[70.0, 5.0]
    assert all(at[rate, 5.0] > at[rate, 200.0] for rate in (30.0, 50.0, 70.0))


def test_an_overload_does_not_take_the_step_to_nothing() -> None:
    assert derive_step(loops(), 500.0, "marginal").step > 0.0


def test_fixed_work_takes_a_smaller_step_than_memoryless_work() -> None:
    """Where cells are quick against the delay, so that the critical gain bounds the step."""
    quick = RateCurve(0.2, 0.02)
    cells = {"curve": quick, "class_curve": quick}

    fixed = derive_step(loops(0.1, transform=fixed_work, **cells), 70.0, "marginal")

    assert fixed.critical_step < 0.7 * derive_step(loops(0.1, **cells), 70.0, "marginal").critical_step


def test_the_target_that_allows_least_bounds_the_step() -> None:
    near, far = loops(1.0)[0], loops(100.0)[0]

    assert derive_step([near, far], 70.0, "marginal").loop_delay_s == 100.0


def test_classes_share_the_gain_by_what_they_do_to_the_cells() -> None:
    """sum_c Lambda_c eta_c weight_c sigma is the gain of one class alone, whatever the mix."""
    light, heavy, rates = RateCurve(1.0, 0.01), RateCurve(20.0, 0.2), (66.5, 3.5)
    mix = RateCurve(*((rates[0] * x + rates[1] * y) / 70.0 for x, y in ((1.0, 20.0), (0.01, 0.2))))
    one = derive_step(loops(curve=mix, class_curve=mix), 70.0, "marginal").step

    steps = [
        derive_step(loops(curve=mix, class_curve=curve), 70.0, "marginal").step for curve in (light, heavy)
    ]

    assert steps[1] == pytest.approx(steps[0] / 20)
    weights = [curve.alpha_s / mix.alpha_s for curve in (light, heavy)]
    total = sum(rate * step * weight for rate, step, weight in zip(rates, steps, weights, strict=True))
    assert total == pytest.approx(70.0 * one)


@pytest.mark.parametrize(
    ("cost", "slope"), [("latency", 0.02), ("in_flight", 1.0), ("in_flight_per_capacity", 0.02)]
)
def test_the_step_follows_the_slope_of_the_cost(cost: Cost, slope: float) -> None:
    sigma = 2 * 0.02 / 0.3

    ratio = derive_step(loops(), 70.0, cost).step / derive_step(loops(), 70.0, "marginal").step

    assert ratio == pytest.approx(sigma / slope)
    assert math.isfinite(ratio)
