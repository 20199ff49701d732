"""Greatest marginal service rate (GMSR)."""

from __future__ import annotations

from collections.abc import Callable

from testbed.routing.cost import model_curve
from testbed.routing.greedy import LeastCost
from testbed.routing.view import REPORTED, Target, View
from testbed.scenario.policy_words import LatencyModel, MarginalRatePolicy


class GreatestMarginalRate(LeastCost):
    """The allowed target whose completion rate would rise the most by one more request in flight, l'(N).

    Blind to travel and to delay. The optimum where both are small beside a sojourn, with no step to set and no
    arrival rate to know; among like targets it is join the shortest queue. With delay it is a relay, and herds.
    Costs are kept as 1/l' in seconds; beyond the batch cap, where l' is 0, 1/l' goes on as a straight line, so that
    among full targets the least full is chosen.

    Source: Balseiro, Mirrokni, Wydrowski, greatest marginal service rate (arXiv 2411.17103).
    """


def build_marginal_rate(spec: MarginalRatePolicy, view: View, output_mean: float) -> GreatestMarginalRate:
    """The policy of a scenario, on a view that is configured."""
    return GreatestMarginalRate(inverse_marginal_rate_s(spec.model, output_mean, view.count), spec.ties)


def inverse_marginal_rate_s(
    model: LatencyModel, output_mean: float, count: Callable[[Target], float] = REPORTED
) -> Callable[[Target], float]:
    """1/l'(N) of a target by its latency model at its requests in flight as `count` has them, seconds."""

    def inverse_s(target: Target) -> float:
        return model_curve(target, model, output_mean).marginal_s(count(target) / target.servers)

    return inverse_s
