"""The bound on the time-averaged deviation of flow routing from the optimum."""

from __future__ import annotations

import numpy as np
import pytest

from testbed.routing.simplex import project
from testbed.theory.deviation_bound import (
    SteppedLine,
    centred_norm,
    deviation_bound,
    start_term,
    step_term,
)
from tests.traffic.scenes import herding

NORMS = {("west", 0): 0.05, ("north", 0): 0.05, ("south", 0): 0.05}


@pytest.mark.parametrize("delay", [0, 3])
@pytest.mark.parametrize("gain", [0.002, 0.02])
def test_projected_steps_on_a_convex_cost_keep_within_the_bound(delay: int, gain: float) -> None:
    """Where it is proven: F = sum_j w_j r_j^2 / 2 over three cells, cost w_j r_j, used `delay` updates late."""
    rate, interval_s, updates = 3.0, 0.5, 400
    weights, start = np.array([1.0, 2.0, 5.0]), np.array([0.0, 0.1, 0.9])
    optimum = (1 / weights) / (1 / weights).sum()
    shares = [start] * (delay + 1)
    norms, excess = [], []
    for _ in range(updates):
        costs = weights * rate * shares[-1 - delay]
        norms.append(centred_norm(costs, np.ones(3, dtype=bool)))
        f = (weights * (rate * shares[-1]) ** 2).sum() / 2 - (weights * (rate * optimum) ** 2).sum() / 2
        excess.append(f)
        shares.append(np.array(project(shares[-1] - gain * costs, (True,) * 3)))

    line = SteppedLine(rate, gain / interval_s, interval_s, float(delay), start, optimum, max(norms))
    bound = start_term([line], updates * interval_s) + step_term([line])

    assert 0.0 < np.mean(excess) <= bound


def test_the_part_of_the_start_falls_with_time_and_that_of_the_steps_stays() -> None:
    short, long = (deviation_bound(herding(), span_s, NORMS) for span_s in (10.0, 100.0))

    assert short.from_start == pytest.approx(10 * long.from_start)
    assert short.from_steps == long.from_steps
    assert long.fraction == pytest.approx(long.from_start + long.from_steps)


def test_a_start_at_the_optimum_leaves_the_part_of_the_steps() -> None:
    at_optimum = dict.fromkeys(NORMS, (0.4357, 0.3399, 0.2244))

    bound = deviation_bound(herding(), 10.0, NORMS, at_optimum)

    assert bound.from_start < 0.01 * deviation_bound(herding(), 10.0, NORMS).from_start


def test_a_cost_of_requests_in_flight_makes_it_a_conjecture_and_says_why() -> None:
    reasons = deviation_bound(herding(), 10.0, NORMS).conjecture_because

    assert reasons == (
        "the cost depends on requests in flight, not on the rate alone",
        "the delays vary",
        "reports or requests are lost",
    )


def test_discrete_policies_get_no_bound() -> None:
    roots = {"west": {"traffic": [{"class": "sand", "rate": "900 /s", "policy": "greedy"}]}}

    bound = deviation_bound(herding(roots=roots), 10.0, {("west", 0): 0.05})

    assert bound.fraction is None
    assert bound.refused_because == "greedy does not move shares by gradient steps"
