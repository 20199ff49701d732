"""Truth worked out for whole columns says what the cost of a single belief says."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.record.truth import costs_of
from testbed.routing.cost import cost_of
from testbed.scenario.policy_words import Cost
from testbed.serving.rate_curve import RateCurve

COSTS: tuple[Cost, ...] = ("in_flight", "in_flight_per_capacity", "latency", "marginal")


@pytest.mark.parametrize("cost", COSTS)
@given(
    counts=st.lists(st.integers(0, 2000), min_size=1, max_size=5),
    network_s=st.sampled_from([math.nan, 0.0, 0.04]),
    speed=st.sampled_from([1.0, 0.4]),
    n_cap=st.sampled_from([32, math.inf]),
)
def test_a_column_of_costs_is_that_of_each_belief(
    cost: Cost, counts: list[int], network_s: float, speed: float, n_cap: float
) -> None:
    curve = RateCurve(0.1, 0.002, n_cap)
    in_flight = np.array([*counts, np.nan])
    columns = (np.full(len(in_flight), network_s), np.full(len(in_flight), speed))

    found = costs_of(cost, curve, 3.0, in_flight, *columns)

    of_rule = curve if cost == "in_flight_per_capacity" else curve.at_speed(speed)
    singly = [cost_of(cost, of_rule, 3, count, network_s, 0.0)[0] for count in counts]
    assert found[:-1] == pytest.approx(np.array(singly), rel=1e-12)
    assert math.isnan(found[-1])
