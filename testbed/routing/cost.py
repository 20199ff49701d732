"""Belief to cost: in flight, in flight per capacity, latency, marginal latency.

With N requests in flight at a target of k equal servers, n = N / k, and alpha, beta and n_cap of its latency model:

    marginal    m = dN/dr = 1 / L'(N) = (alpha + beta n)^2 / alpha up to n_cap, beyond it m(n_cap) + s (n - n_cap)
                with s = 2 beta (alpha + beta n_cap) / alpha, cut at 100 alpha;  cost (m + network) / (1 - e), seconds
    latency     (alpha + beta n + network) / (1 - e), seconds
    in_flight   N, requests
    in_flight_per_capacity  N / capacity, seconds; servers without room for a mean request count as serving one at a time

where e is the error fraction, cut at 0.95, and `network` the round trip that the balancer measured itself, without
the time in the target; it counts as 0 until the first reply. The delay of observations is never part of a cost.
Source of the marginal cost: the gradient of the mean number of requests in the system (DGD-LB, arXiv 2504.10693).
"""

from __future__ import annotations

from collections.abc import Callable

from testbed.routing.view import REPORTED, Target
from testbed.scenario.policy_words import Cost, LatencyModel
from testbed.serving.rate_curve import RateCurve

CEILING = 100.0  # of the marginal cost, in units of alpha: a full target must not outweigh all else for ever
ERROR_FRACTION_MAX = 0.95  # a target that fails always costs 20 times its latency, not infinitely much


def marginal_cost_s(
    curve: RateCurve, servers: int, in_flight: float, network_s: float, error_fraction: float
) -> tuple[float, bool]:
    """Cost by marginal latency in seconds, and whether m was cut at its ceiling."""
    marginal_s = curve.marginal_s(in_flight / servers)
    ceiling_s = CEILING * curve.alpha_s
    return _with_travel_s(min(marginal_s, ceiling_s), network_s, error_fraction), marginal_s > ceiling_s


def latency_cost_s(
    curve: RateCurve, servers: int, in_flight: float, network_s: float, error_fraction: float
) -> float:
    """Cost by latency in seconds; it has no ceiling."""
    return _with_travel_s(curve.latency_s(in_flight / servers), network_s, error_fraction)


def cost_of(
    cost: Cost, curve: RateCurve, servers: int, in_flight: float, network_s: float, error_fraction: float
) -> tuple[float, bool]:
    """Any of the costs from its ingredients, and whether it was cut: for truth as for belief.

    `curve` is that of the latency model (see `model_curve`); `in_flight_per_capacity` has no latency model and
    divides by the capacity of the profile, so it wants the profile's curve.
    """
    if cost == "marginal":
        return marginal_cost_s(curve, servers, in_flight, network_s, error_fraction)
    if cost == "latency":
        return latency_cost_s(curve, servers, in_flight, network_s, error_fraction), False
    return (in_flight if cost == "in_flight" else in_flight / (servers * curve.divisor_per_s)), False


def model_curve(target: Target, model: LatencyModel, output_mean: float) -> RateCurve:
    """The curve of one server of a target as its latency model has it now.

    `scaled` divides the profile's alpha and beta by the reported speed; `fitted` takes the mean output times the
    reported a and b, and the profile while none were reported; n_cap is always the profile's.
    """
    if model == "scaled":
        return target.curve.at_speed(target.speed)
    if model == "fitted" and target.fitted_a_s > 0 and target.fitted_b_s > 0:
        return RateCurve(output_mean * target.fitted_a_s, output_mean * target.fitted_b_s, target.n_cap)
    return target.curve


def cost_function(
    cost: Cost,
    model: LatencyModel,
    output_mean: float,
    count: Callable[[Target], float] = REPORTED,
) -> Callable[[Target], float]:
    """The cost of a target as a balancer believes it; called for every candidate of every decision.

    Args:
        cost: which of the costs.
        model: where alpha and beta come from (see `model_curve`).
        output_mean: mean output tokens of the balancer's mix, for `fitted`.
        count: N, as the balancer believes (see `belief`).
    """
    if cost == "in_flight":
        return count
    if cost == "in_flight_per_capacity":
        return lambda target: count(target) / target.divisor_per_s
    if cost == "latency":
        return _latency_function(count, model, output_mean)
    return _marginal_function(count, model, output_mean)


def clip_function(
    cost: Cost,
    model: LatencyModel,
    output_mean: float,
    count: Callable[[Target], float] = REPORTED,
) -> Callable[[Target], bool]:
    """Whether the cost of the same arguments is cut at its ceiling now; for records, not for every decision."""

    def is_clipped(target: Target) -> bool:
        curve = model_curve(target, model, output_mean)
        return cost_of(cost, curve, target.servers, count(target), 0.0, 0.0)[1]

    return is_clipped


def _with_travel_s(served_s: float, network_s: float, error_fraction: float) -> float:
    known_network_s = network_s if network_s == network_s else 0.0
    return (served_s + known_network_s) / (1.0 - min(error_fraction, ERROR_FRACTION_MAX))


# The two functions below say once more, in one body and without allocating, what `model_curve` and `cost_of` say:
# a decision among three cells has 2 us to spend on its costs. A test holds them against each other.


def _latency_function(
    count: Callable[[Target], float], model: LatencyModel, output_mean: float
) -> Callable[[Target], float]:
    scaled = model == "scaled"
    fitted = model == "fitted"

    def latency(target: Target) -> float:
        total_s = target.alpha_s + target.beta_s * (count(target) / target.servers)
        if scaled:
            total_s /= target.speed
        elif fitted and target.fitted_a_s > 0 and target.fitted_b_s > 0:
            n = count(target) / target.servers
            total_s = output_mean * (target.fitted_a_s + target.fitted_b_s * n)
        network_s = target.network_s
        if network_s == network_s:
            total_s += network_s
        error_fraction = target.error_fraction
        return total_s / (1.0 - min(error_fraction, ERROR_FRACTION_MAX)) if error_fraction else total_s

    return latency


def _marginal_function(
    count: Callable[[Target], float], model: LatencyModel, output_mean: float
) -> Callable[[Target], float]:
    scaled = model == "scaled"
    fitted = model == "fitted"

    def marginal(target: Target) -> float:
        alpha_s = target.alpha_s
        beta_s = target.beta_s
        if fitted and target.fitted_a_s > 0 and target.fitted_b_s > 0:
            alpha_s = output_mean * target.fitted_a_s
            beta_s = output_mean * target.fitted_b_s
        n = count(target) / target.servers
        n_cap = target.n_cap
        if n <= n_cap:
            latency_s = alpha_s + beta_s * n
            total_s = latency_s * latency_s / alpha_s
        else:
            at_cap_s = alpha_s + beta_s * n_cap
            total_s = at_cap_s * (at_cap_s + 2 * beta_s * (n - n_cap)) / alpha_s
        if total_s > CEILING * alpha_s:
            total_s = CEILING * alpha_s
        if scaled:
            total_s /= target.speed  # dividing alpha and beta by the speed divides m and its ceiling by it
        network_s = target.network_s
        if network_s == network_s:
            total_s += network_s
        error_fraction = target.error_fraction
        return total_s / (1.0 - min(error_fraction, ERROR_FRACTION_MAX)) if error_fraction else total_s

    return marginal
