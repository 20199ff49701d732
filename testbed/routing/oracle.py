"""The oracle: what no balancer can have, the truth of this very instant, requests still on their way included.

It bounds what any policy could gain by better news. Without the requests under way even fresh truth herds over 20 ms of
travel: all that is sent within it goes to the target that is idlest at its beginning.

The truth comes through a narrow seam, a function from the name of a target, which an engine gives that has all nodes in
one process. Nothing else in `routing` may look at it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from testbed.errors import RunError
from testbed.routing.greedy import LeastCost
from testbed.routing.view import Target, View
from testbed.scenario.policy_words import OraclePolicy


class Truth(NamedTuple):
    """A target as it is now.

    `under_way` are the requests that were sent to it, or within it, and have not arrived; `in_flight` those at its
    servers; `speed` the mean of its servers', as a factor on their profile.
    """

    in_flight: int
    under_way: int
    speed: float


TruthOf = Callable[[str], Truth]


class Oracle(LeastCost):
    """The allowed target in which the request will stay the shortest, as things really are; ties as in `LeastCost`.

    Source: shortest expected delay (Selen, Adan, Kapodistria, van Leeuwaarden, Steady-state analysis of shortest
    expected delay routing, Queueing Systems 84, 2016).
    """


def build_oracle(spec: OraclePolicy, view: View, truth_of: TruthOf | None) -> Oracle:
    """The policy of a scenario; what the view counts is the truth, for the records too.

    Raises:
        RunError: the engine does not know the truth.
    """
    if truth_of is None:
        raise RunError("an oracle wants an engine that knows the truth; accepted: --engine virtual")

    def count(target: Target) -> int:
        truth = truth_of(target.name)
        return truth.in_flight + truth.under_way if spec.under_way else truth.in_flight

    def sojourn_s(target: Target) -> float:
        return expected_sojourn_s(target, count(target), truth_of(target.name).speed)

    view.count = count
    return Oracle(sojourn_s, spec.ties)


def expected_sojourn_s(target: Target, in_flight: int, speed: float) -> float:
    """Round trip and stay of one more request at a target with so many in flight, if it is served like the mean.

    alpha + beta n with n = (N + 1) / k up to the cap of a server, n / capacity beyond; over the speed.
    """
    n = (in_flight + 1) / target.servers
    curve = target.curve
    stay_s = curve.latency_s(n) if n <= curve.n_cap else n / curve.divisor_per_s
    network_s = target.network_s
    return stay_s / speed + (network_s if network_s == network_s else 0.0)
