"""The mean wait for the next report, against a simulation of the reports."""

from __future__ import annotations

import numpy as np
import pytest

from testbed.theory.report_gap import Reporter, mean_wait_s


def simulated_wait_s(reporters: list[Reporter], seed: int = 1, span_s: float = 20_000.0) -> float:
    """From random instants to the next arrival; reporters of different periods have random phases."""
    rng = np.random.default_rng(seed)
    arrivals = []
    for each in reporters:
        at_s = each.arrives_at_s + each.period_s * np.arange(int(span_s / each.period_s))
        arrivals.append(at_s[rng.random(len(at_s)) >= each.loss])
    gaps_s = np.diff(np.sort(np.concatenate(arrivals)))
    return float((gaps_s**2).sum() / (2 * gaps_s.sum()))


@pytest.mark.parametrize(
    ("reporters", "expected_s"),
    [
        ([Reporter(2.0, 0.3, 0.0)], 1.0),
        ([Reporter(2.0, 0.3, 0.5)], 2.0 * (0.5 + 1.0)),
        ([Reporter(2.0, 0.3, 0.0), Reporter(2.0, 1.3, 0.0)], 0.5),
        ([Reporter(2.0, 0.3, 0.2), Reporter(2.0, 4.3, 0.2)], 2.0 * (0.5 + 0.04 / 0.96)),  # in phase
        ([Reporter(1.0, 0.0, 0.0), Reporter(np.sqrt(2), 0.0, 0.0)], 0.5 - 1 / (6 * np.sqrt(2))),
    ],
)
def test_the_mean_wait_is_known_in_closed_form(reporters: list[Reporter], expected_s: float) -> None:
    assert mean_wait_s(reporters) == pytest.approx(expected_s)
    assert simulated_wait_s(reporters) == pytest.approx(expected_s, rel=0.03)


def test_uneven_distances_and_losses_agree_with_a_simulation() -> None:
    reporters = [Reporter(1.0, 0.1, 0.3), Reporter(1.0, 0.25, 0.6), Reporter(1.0, 0.9, 0.0)]

    assert mean_wait_s(reporters) == pytest.approx(simulated_wait_s(reporters), rel=0.02)
