"""Join the shortest queue, as the reports have it."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter

from testbed.routing.greedy import LeastCost
from testbed.routing.view import Target, View
from testbed.scenario.policy_words import ShortestQueuePolicy

QUEUED: Callable[[Target], float] = attrgetter("queued")  # as reported


class ShortestQueue(LeastCost):
    """The allowed target that reported the fewest requests per server: in flight, or waiting alone.

    What was sent since the report is not counted. The best rule for like servers while reports are fresh; once they
    are older than about half a service time all senders join the same queue, and it does worse than two choices,
    later than chance. Put it at leaves whose servers report often, or at roots to see a herd.

    Source: Winston, Optimality of the shortest line discipline (J. Appl. Prob. 14, 1977); on old reports,
    Mitzenmacher, How useful is old information? (TPDS 11, 2000).
    """


def build_shortest_queue(spec: ShortestQueuePolicy, view: View) -> ShortestQueue:
    """The policy of a scenario, on a view that is configured."""
    count = view.count if spec.count == "in_flight" else QUEUED
    # For each of a hundred servers at each request, dividing by 1 would take as long as the rest of the rule.
    single = all(target.servers == 1 for target in view.targets)
    return ShortestQueue(count if single else per_server(count), spec.ties)


def per_server(count: Callable[[Target], float]) -> Callable[[Target], float]:
    """A count of requests at a target over its servers."""
    return lambda target: count(target) / target.servers
