"""The split that `static_optimal` is told before the run: least mean number of requests in the system."""

from __future__ import annotations

from testbed.scenario.policy_words import StaticOptimalPolicy
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import Topology, root_name
from testbed.theory.operating_point import at_optimum, demand
from testbed.theory.path_delays import PathDelays


def optimal_shares(scenario: Scenario, topology: Topology) -> dict[str, list[float]]:
    """Shares of the cells at the optimum for every line of traffic whose policy is `static_optimal`.

    At the mean rates of the plan, the speeds of the profiles and the mean delays of the links, without faults; all
    lines of all policies are taken to be at the optimum together.

    Args:
        scenario: in scenario time.
        topology: of the scenario.

    Returns:
        By the name of the line (`root.west:0`), in the order of the cells; empty where nobody asks.
    """
    asking = {
        (root, index): f"{root_name(root)}:{index}"
        for root, words in scenario.roots.items()
        for index, line in enumerate(words.traffic)
        if isinstance(scenario.policies[line.policy], StaticOptimalPolicy)
    }
    if not asking:
        return {}
    wanted = demand(scenario, PathDelays(topology))
    shares = at_optimum(wanted).shares
    return {
        asking[line]: [float(share) for share in row]
        for line, row in zip(wanted.lines, shares, strict=True)
        if line in asking
    }
