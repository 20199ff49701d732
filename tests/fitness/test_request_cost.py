"""What requests cost between and beyond two measured rates."""

from __future__ import annotations

import pytest

from testbed.fitness.request_cost import RequestCost

COST = RequestCost(4_000.0, 250e-6, 10_000.0, 150e-6)  # 1 core at 4,000, 1.5 cores at 10,000


@pytest.mark.parametrize(
    ("rate", "cores", "least"),
    [
        (1_000.0, 0.25, 0.25),
        (4_000.0, 1.0, 1.0),
        (7_000.0, 1.25, 1.25),
        (10_000.0, 1.5, 1.5),
        (16_000.0, 2.0, 1.5 + 0.5 / 3),
    ],
)
def test_cores_follow_the_two_measurements(rate: float, cores: float, least: float) -> None:
    assert COST.cores(rate) == pytest.approx(cores)
    assert COST.least_cores(rate) == pytest.approx(least)
    assert COST.rate_per_s(cores) == pytest.approx(rate)


@pytest.mark.parametrize("cores", [0.1, 0.9, 1.4, 3.0])
@pytest.mark.parametrize(("rate", "others"), [(500.0, 0.05), (9_000.0, 0.3), (40_000.0, 0.0)])
def test_a_share_of_the_work_fills_the_cores(rate: float, others: float, cores: float) -> None:
    share = COST.share(rate, others, cores)

    assert COST.cores(share * rate) + share * others == pytest.approx(cores)


def test_a_slow_spell_at_the_lower_rate_makes_further_requests_no_gift() -> None:
    spoiled = RequestCost(4_000.0, 600e-6, 10_000.0, 150e-6)

    assert spoiled.further_s == pytest.approx(50e-6)
    assert spoiled.cores(20_000.0) > spoiled.cores(10_000.0) > spoiled.cores(4_000.0)
