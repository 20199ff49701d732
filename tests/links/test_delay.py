"""Delays are drawn from the distribution that the scenario states, by the inverse of its distribution function."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from testbed.draw import key_base, uniform
from testbed.links.delay import delay_quantile, least_delay_s, mean_delay_s
from testbed.scenario.link_words import JITTERS, Jitter
from testbed.scenario.topology import Effect

DRAWS = 20_000
TABLE_S = (0.004, 0.0, 0.001, 0.010)


def effect(delay_s: float, **jitter: object) -> Effect:
    return Effect(delay_s, Jitter.model_validate(jitter) if jitter else None)


def table_cdf(delay_s: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: np.interp(x - delay_s, sorted(TABLE_S), np.linspace(0.0, 1.0, len(TABLE_S)))


def lognormal_cdf(mean_s: float, sd_s: float) -> Callable[[np.ndarray], np.ndarray]:
    variance = math.log(1 + (sd_s / mean_s) ** 2)
    return stats.lognorm(math.sqrt(variance), scale=mean_s * math.exp(-variance / 2)).cdf


def pareto_cdf(mean_s: float, sd_s: float) -> Callable[[np.ndarray], np.ndarray]:
    """By the moments of the Pareto distribution: mean a m/(a-1), variance m^2 a/((a-1)^2 (a-2))."""
    shape = 1 + math.sqrt(1 + (mean_s / sd_s) ** 2)
    frozen = stats.pareto(shape, scale=mean_s * (shape - 1) / shape)
    assert frozen.std() == pytest.approx(sd_s)
    return frozen.cdf


CASES = {
    "normal": (effect(0.020, normal="2 ms"), stats.norm(0.020, 0.002).cdf),
    "normal cut deep": (effect(0.001, normal="2 ms"), stats.truncnorm(-0.5, np.inf, 0.001, 0.002).cdf),
    "normal about 0": (effect(0.0, normal="2 ms"), stats.halfnorm(0.0, 0.002).cdf),
    "uniform": (effect(0.020, uniform="5 ms"), stats.uniform(0.015, 0.010).cdf),
    "uniform cut": (effect(0.002, uniform="5 ms"), stats.uniform(0.0, 0.007).cdf),
    "lognormal": (effect(0.020, lognormal="10 ms"), lognormal_cdf(0.020, 0.010)),
    "pareto": (effect(0.020, pareto="10 ms"), pareto_cdf(0.020, 0.010)),
    "exponential": (effect(0.020, exponential="15 ms"), stats.expon(0.005, 0.015).cdf),
    "exponential alone": (effect(0.020, exponential="20 ms"), stats.expon(0.0, 0.020).cdf),
    "table": (effect(0.020, table=[f"{value} s" for value in TABLE_S]), table_cdf(0.020)),
}


def draws(of: Effect, seed: int = 7) -> np.ndarray:
    quantile, base = delay_quantile(of), key_base(seed, "test")
    return np.array([quantile(uniform(base, i)) for i in range(DRAWS)])


@pytest.mark.parametrize("name", CASES)
def test_draws_follow_the_stated_distribution(name: str) -> None:
    """Kolmogorov and Smirnov at 1 %: a fixed seed, so the test is one draw from that chance."""
    of, cdf = CASES[name]

    assert stats.kstest(draws(of), cdf).pvalue > 0.01


@pytest.mark.parametrize("name", CASES)
def test_the_mean_of_the_draws_is_the_mean_told(name: str) -> None:
    """Within three standard errors; for a distribution cut at 0 the true mean is above `delay`."""
    of, _ = CASES[name]
    drawn = draws(of)

    assert abs(drawn.mean() - mean_delay_s(of)) < 3 * drawn.std() / math.sqrt(DRAWS)


@pytest.mark.parametrize("name", CASES)
def test_no_draw_is_below_the_least_delay_nor_below_zero(name: str) -> None:
    of, _ = CASES[name]

    assert draws(of).min() >= least_delay_s(of) >= 0.0


def test_lognormal_jitter_has_the_stated_standard_deviation() -> None:
    """The standard error of a standard deviation is sd sqrt((kurtosis - 1) / 4n), kurtosis here 8.9 at most."""
    drawn = draws(effect(0.020, lognormal="10 ms"))

    assert drawn.std() == pytest.approx(0.010, rel=3 * math.sqrt(8 / (4 * DRAWS)))


def test_without_jitter_the_delay_is_the_same_for_all() -> None:
    for of in (effect(0.020), effect(0.020, normal="0 ms"), effect(0.020, lognormal="0 ms")):
        assert {delay_quantile(of)(fraction) for fraction in (0.001, 0.5, 0.999)} == {0.020}
        assert mean_delay_s(of) == least_delay_s(of) == 0.020


def test_a_lognormal_delay_of_zero_is_zero() -> None:
    """A fault may set the delay of a jittered link to 0: a positive variable of mean 0 is 0."""
    of = effect(0.0, lognormal="2 ms")

    assert delay_quantile(of)(0.99) == mean_delay_s(of) == 0.0


@pytest.mark.parametrize("name", CASES)
@given(st.lists(st.floats(min_value=2.0**-54, max_value=1 - 2.0**-53), min_size=2, max_size=5))
def test_quantiles_rise_and_stay_finite_to_the_ends(name: str, fractions: list[float]) -> None:
    of, _ = CASES[name]
    found = [delay_quantile(of)(fraction) for fraction in sorted(fractions)]

    assert found == sorted(found)
    assert all(math.isfinite(delay_s) and delay_s >= 0.0 for delay_s in found)


@pytest.mark.parametrize("name", CASES)
def test_doubling_every_duration_doubles_every_delay_to_the_bit(name: str) -> None:
    of, _ = CASES[name]
    jitter = of.jitter
    assert jitter is not None
    doubled_words = {
        key: [f"{2 * each!r} s" for each in value] if isinstance(value, tuple) else f"{2 * value!r} s"
        for key in JITTERS
        if (value := getattr(jitter, key)) is not None
    }
    doubled = effect(2 * of.delay_s, **doubled_words)

    assert (2 * draws(of) == draws(doubled)).all()
    assert 2 * mean_delay_s(of) == mean_delay_s(doubled)
