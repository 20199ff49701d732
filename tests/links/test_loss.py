"""A lossy link drops the stated share of its messages, each by its key alone."""

from __future__ import annotations

import pytest
from scipy import stats

from testbed.draw import key_base
from testbed.links.loss import Bernoulli

MESSAGES = 20_000


@pytest.mark.parametrize("probability", [0.001, 0.01, 0.3, 0.99])
def test_the_share_lost_is_within_its_binomial_interval(probability: float) -> None:
    """A two-sided 99.9 % interval, at a fixed seed."""
    model = Bernoulli(key_base(3, "link"), probability)

    lost = sum(model.lost(i, 0) for i in range(MESSAGES))

    low, high = stats.binom.interval(0.999, MESSAGES, probability)
    assert low <= lost <= high


def test_nothing_is_lost_at_zero_and_everything_at_one() -> None:
    base = key_base(3, "link")

    assert not any(Bernoulli(base, 0.0).lost(i, 0) for i in range(1000))
    assert all(Bernoulli(base, 1.0).lost(i, 0) for i in range(1000))


def test_losses_do_not_come_in_runs() -> None:
    """Lag-one correlation of independent losses has standard error 1/sqrt(n)."""
    model = Bernoulli(key_base(5, "link"), 0.3)
    lost = [float(model.lost(i, 0)) for i in range(MESSAGES)]

    correlation = stats.pearsonr(lost[:-1], lost[1:]).statistic

    assert abs(correlation) < 4 / MESSAGES**0.5


def test_a_higher_loss_drops_what_a_lower_one_drops_and_more() -> None:
    """Arms that differ in the loss alone stay as comparable as they can be."""
    base = key_base(3, "link")
    low, high = Bernoulli(base, 0.1), Bernoulli(base, 0.2)

    assert all(high.lost(i, 0) for i in range(MESSAGES) if low.lost(i, 0))


def test_another_attempt_is_another_draw() -> None:
    model = Bernoulli(key_base(3, "link"), 0.5)

    assert [model.lost(i, 0) for i in range(100)] != [model.lost(i, 1) for i in range(100)]
