from __future__ import annotations

import math
from itertools import product
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.routing.cost import clip_function, cost_function, cost_of, marginal_cost_s, model_curve
from testbed.routing.view import Target
from testbed.scenario.policy_words import Cost, LatencyModel
from testbed.serving.rate_curve import RateCurve
from tests.routing.beliefs import CURVE, report

OUTPUT_MEAN = 8.0


def test_the_marginal_cost_is_the_slope_of_requests_in_flight_over_the_rate() -> None:
    """m = dN/dr, by a difference quotient of the cell's rate curve L(N) = k l(N/k)."""
    servers, in_flight, step = 4, 40.0, 1e-4
    rise = servers * (
        CURVE.rate_per_s((in_flight + step) / servers) - CURVE.rate_per_s((in_flight - step) / servers)
    )

    cost, clipped = marginal_cost_s(CURVE, servers, in_flight, 0.0, 0.0)

    assert cost == pytest.approx(2 * step / rise, rel=1e-6)
    assert not clipped


def test_beyond_the_cap_the_marginal_cost_goes_on_as_a_straight_line() -> None:
    at_cap, _ = marginal_cost_s(CURVE, 1, 30.0, 0.0, 0.0)
    beyond, _ = marginal_cost_s(CURVE, 1, 40.0, 0.0, 0.0)

    slope = 2 * 0.01 * (0.1 + 0.01 * 30) / 0.1
    assert at_cap == pytest.approx(0.4**2 / 0.1)
    assert beyond == pytest.approx(at_cap + slope * 10)


def test_the_marginal_cost_is_cut_at_a_hundred_alpha_before_travel_is_added() -> None:
    cost, clipped = marginal_cost_s(CURVE, 1, 1000.0, 0.5, 0.0)

    assert clipped
    assert cost == pytest.approx(100 * 0.1 + 0.5)


def test_travel_counts_once_known_and_errors_raise_the_cost_at_most_twentyfold() -> None:
    assert marginal_cost_s(CURVE, 1, 0.0, math.nan, 0.0)[0] == pytest.approx(0.1)
    assert marginal_cost_s(CURVE, 1, 0.0, 0.04, 0.5)[0] == pytest.approx(0.28)
    assert marginal_cost_s(CURVE, 1, 0.0, 0.0, 1.0)[0] == pytest.approx(2.0)


def test_the_other_costs_are_what_their_names_say() -> None:
    assert cost_of("in_flight", CURVE, 3, 12, 0.04, 0.5) == (12, False)
    assert cost_of("latency", CURVE, 3, 12, 0.06, 0.5) == (pytest.approx((0.1 + 0.04 + 0.06) / 0.5), False)
    assert cost_of("in_flight_per_capacity", CURVE, 3, 12, 0.04, 0.5) == (
        pytest.approx(12 / (3 * CURVE.capacity_per_s)),
        False,
    )


def test_a_slower_cell_has_its_curve_stretched() -> None:
    target = Target("us", CURVE)
    target.on_report("us/leaf-1", report(10, speed=0.4), 0.0)

    assert cost_function("marginal", "scaled", OUTPUT_MEAN)(target) == pytest.approx(0.4 / 0.4)
    assert cost_function("marginal", "profile", OUTPUT_MEAN)(target) == pytest.approx(0.4)


def test_the_fitted_model_stands_in_only_once_it_is_sound() -> None:
    target = Target("us", CURVE)
    cost = cost_function("latency", "fitted", OUTPUT_MEAN)
    assert cost(target) == pytest.approx(0.1)

    target.on_report("us/leaf-1", report(10, fitted_a_s=0.02, fitted_b_s=-0.001), 0.0)
    assert cost(target) == pytest.approx(0.2)

    target.on_report("us/leaf-1", report(10, fitted_a_s=0.02, fitted_b_s=0.001), 0.0)
    assert cost(target) == pytest.approx(8 * (0.02 + 0.01))


def test_the_cost_is_that_of_the_count_it_is_given() -> None:
    target = Target("us", CURVE)
    target.on_sent(1, 0.5)
    target.on_report("us/leaf-1", report(10, measured_at_s=1.0), 1.5)

    assert cost_function("in_flight", "scaled", OUTPUT_MEAN)(target) == 10
    assert cost_function("in_flight", "scaled", OUTPUT_MEAN, lambda each: each.own_in_flight)(target) == 1
    assert cost_function("latency", "profile", OUTPUT_MEAN, lambda each: 20)(target) == pytest.approx(0.3)


@settings(max_examples=200, deadline=None)
@given(
    in_flight=st.integers(0, 2000),
    servers=st.integers(1, 8),
    n_cap=st.one_of(st.floats(1, 500), st.just(math.inf)),
    speed=st.floats(0.1, 3),
    fitted=st.tuples(st.floats(-0.01, 0.1), st.floats(-0.001, 0.01)),
    error_fraction=st.floats(0, 1),
    network_s=st.one_of(st.floats(0, 1), st.just(math.nan)),
)
def test_the_costs_of_decisions_are_those_of_records(
    in_flight: int,
    servers: int,
    n_cap: float,
    speed: float,
    fitted: tuple[float, float],
    error_fraction: float,
    network_s: float,
) -> None:
    """What a balancer computes in a hurry is what the analysis computes at leisure, for all costs and models."""
    target = Target("us", RateCurve(0.1, 0.003, n_cap), servers)
    target.on_report(
        "us/leaf-1",
        report(
            in_flight, speed=speed, fitted_a_s=fitted[0], fitted_b_s=fitted[1], error_fraction=error_fraction
        ),
        0.0,
    )
    target.network_s = network_s

    for cost, model in product(get_args(Cost), get_args(LatencyModel)):
        curve = target.curve if cost == "in_flight_per_capacity" else model_curve(target, model, OUTPUT_MEAN)
        expected, clipped = cost_of(cost, curve, servers, in_flight, network_s, error_fraction)

        assert cost_function(cost, model, OUTPUT_MEAN)(target) == pytest.approx(expected, rel=1e-12)
        assert clip_function(cost, model, OUTPUT_MEAN)(target) == clipped
