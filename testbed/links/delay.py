"""One-way delay: the quantile function, the true mean and the least value of what a link draws.

A delay comes from one uniform number by the inverse of its distribution, so that a draw is a pure function of
its key. Scale factors stand outside all rounding: doubling every duration doubles every delay to the bit. No
delay is ever negative; a distribution that reaches below 0 is cut there and sampled as such, so its mean is
above `delay`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist

from testbed.links.replay import ReplayedCourse
from testbed.links.tails import TAILS, exponential, least_pareto_s, pareto
from testbed.scenario.topology import Effect

_NORMAL = NormalDist()
# The inverse normal is defined inside (0, 1) only: the ends give way to the floats next to them.
_LEAST_TAIL = 2.0**-1000
_MOST_TAIL = 1.0 - 2.0**-53


def delay_quantile(effect: Effect) -> Callable[[float], float]:
    """The delay in seconds that a fraction in (0, 1) of the messages does not exceed, as a function of it."""
    jitter = effect.jitter
    if jitter is None:
        return _constant(effect.delay_s)
    if jitter.normal is not None:
        return _normal(effect.delay_s, jitter.normal) if jitter.normal > 0.0 else _constant(effect.delay_s)
    if jitter.uniform is not None:
        return _uniform(*_uniform_range_s(effect.delay_s, jitter.uniform))
    if jitter.lognormal is not None:
        return _lognormal(effect.delay_s, jitter.lognormal) if effect.delay_s > 0.0 else _constant(0.0)
    if jitter.pareto is not None:
        return pareto(effect.delay_s, jitter.pareto) if effect.delay_s > 0.0 else _constant(0.0)
    if jitter.exponential is not None:
        return exponential(effect.delay_s, jitter.exponential)
    assert jitter.table is not None, "a jitter is of one of six kinds"
    return _table(effect.delay_s, sorted(jitter.table))


def mean_delay_s(effect: Effect) -> float:
    """The mean of the drawn delays, seconds: of the cut distribution where it is cut at 0, of the file that is replayed.

    Raises:
        RunError: the file to be replayed is missing or malformed.
    """
    replayed = _replayed_delay(effect)
    replayed_s = None if replayed is None else replayed.mean_delay_s()
    mean_s = _jittered_mean_s(effect) if replayed_s is None else replayed_s
    reorder = effect.reorder
    if reorder is None:
        return mean_s
    if reorder.late is not None:
        return mean_s + reorder.fraction * reorder.late
    return mean_s - reorder.fraction * (mean_s if reorder.ahead is None else min(reorder.ahead, mean_s))


def least_delay_s(effect: Effect) -> float:
    """The infimum of the drawn delays, seconds: 0 for normal and lognormal jitter.

    Raises:
        RunError: as `mean_delay_s`.
    """
    replayed = _replayed_delay(effect)
    replayed_s = None if replayed is None else replayed.least_delay_s()
    least_s = _jittered_least_s(effect) if replayed_s is None else replayed_s
    reorder = effect.reorder
    if reorder is None or reorder.late is not None or reorder.fraction == 0.0:
        return least_s
    return 0.0 if reorder.ahead is None else max(0.0, least_s - reorder.ahead)


def mean_loss(effect: Effect) -> float:
    """The mean share of the messages that do not pass, the queue before a limited rate apart.

    Raises:
        RunError: as `mean_delay_s`.
    """
    replayed = None if effect.loss_replay is None else ReplayedCourse(effect.loss_replay).mean_loss()
    loss = effect.loss if replayed is None else replayed
    down = 1.0 if effect.cut else 0.0 if effect.flap is None else effect.flap.down
    return loss if down == 0.0 else 1.0 - (1.0 - loss) * (1.0 - down)


def _replayed_delay(effect: Effect) -> ReplayedCourse | None:
    return None if effect.delay_replay is None else ReplayedCourse(effect.delay_replay, effect.delay_changes)


def _jittered_mean_s(effect: Effect) -> float:
    delay_s, jitter = effect.delay_s, effect.jitter
    if jitter is None or any(getattr(jitter, name) is not None for name in ("lognormal", *TAILS)):
        return delay_s
    if jitter.normal is not None:
        if jitter.normal == 0.0:
            return delay_s
        ratio = delay_s / jitter.normal
        return delay_s + jitter.normal * _NORMAL.pdf(ratio) / _NORMAL.cdf(ratio)
    if jitter.uniform is not None:
        return sum(_uniform_range_s(delay_s, jitter.uniform)) / 2.0
    assert jitter.table is not None, "a jitter is of one of six kinds"
    values_s = sorted(jitter.table)
    return delay_s + (sum(values_s) - (values_s[0] + values_s[-1]) / 2.0) / (len(values_s) - 1)


def _jittered_least_s(effect: Effect) -> float:
    jitter = effect.jitter
    if jitter is None:
        return effect.delay_s
    if jitter.uniform is not None:
        return _uniform_range_s(effect.delay_s, jitter.uniform)[0]
    if jitter.table is not None:
        return effect.delay_s + min(jitter.table)
    if jitter.pareto is not None:
        return least_pareto_s(effect.delay_s, jitter.pareto)
    if jitter.exponential is not None:
        return max(0.0, effect.delay_s - jitter.exponential)
    return 0.0 if jitter.normal or jitter.lognormal else effect.delay_s


def _constant(delay_s: float) -> Callable[[float], float]:
    return lambda fraction: delay_s


def _normal(delay_s: float, sd_s: float) -> Callable[[float], float]:
    """Normal, given that it is not negative.

    The tail above the delay is what is inverted: it keeps its precision far out, where 1 - tail would not.
    """
    not_negative = _NORMAL.cdf(delay_s / sd_s)
    inverse = _NORMAL.inv_cdf

    def quantile(fraction: float) -> float:
        tail = min(max((1.0 - fraction) * not_negative, _LEAST_TAIL), _MOST_TAIL)
        return max(delay_s - sd_s * inverse(tail), 0.0)

    return quantile


def _uniform_range_s(delay_s: float, half_width_s: float) -> tuple[float, float]:
    return max(delay_s - half_width_s, 0.0), delay_s + half_width_s


def _uniform(low_s: float, high_s: float) -> Callable[[float], float]:
    width_s = high_s - low_s
    return lambda fraction: low_s + width_s * fraction


def _lognormal(mean_s: float, sd_s: float) -> Callable[[float], float]:
    """Lognormal with this mean and standard deviation."""
    log_variance = math.log1p((sd_s / mean_s) ** 2)
    log_sd = math.sqrt(log_variance)
    inverse, exp = _NORMAL.inv_cdf, math.exp

    def quantile(fraction: float) -> float:
        inside = min(max(fraction, _LEAST_TAIL), _MOST_TAIL)
        return mean_s * exp(log_sd * inverse(inside) - log_variance / 2.0)

    return quantile


def _table(delay_s: float, values_s: list[float]) -> Callable[[float], float]:
    """The delay plus a value between two neighbours of the table, each gap equally likely."""
    last = len(values_s) - 1

    def quantile(fraction: float) -> float:
        place = fraction * last
        below = min(int(place), last - 1)
        low_s = values_s[below]
        return delay_s + (low_s + (values_s[below + 1] - low_s) * (place - below))

    return quantile
