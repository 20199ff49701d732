"""What was true at an instant, worked out from the records: requests in flight, speeds, and costs on both.

Truth is for records and analysis; no policy ever sees it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from testbed.record.gather import Rows
from testbed.record.streams import Positions, cost_scales, plan_streams, stream_places, streams_of
from testbed.routing.cost import CEILING
from testbed.scenario.fault_plan import Fault, fault_plan
from testbed.scenario.policy_words import Cost
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import Topology
from testbed.serving.rate_curve import RateCurve
from testbed.traffic.capacity import cell_curve, token_means
from testbed.traffic.plan import Plan

Floats = NDArray[np.float64]


class Truth:
    """Puts true requests in flight and true costs beside what balancers believed."""

    def __init__(self, scenario: Scenario, topology: Topology, *, visits: Rows, applied: Rows) -> None:
        """Work out both from what the leaves saw and what the servers applied; the scenario is not scaled."""
        self._scenario = scenario
        self._in_flight = InFlight(topology, visits)
        self._speeds = Speeds(scenario, topology, applied)
        self._costs = Costs(scenario)

    def beside_updates(self, updates: Rows) -> Rows:
        """The logged table in scenario time, with the truth at the instant of each update."""
        streams = streams_of(self._scenario)
        stream = stream_places(streams, updates["root"], updates["class"])
        powers = np.array([each.step_time_power for each in streams])
        scale = self._scenario.time_scale
        step = updates["step"] / scale ** powers[stream]
        product = updates["product"] / scale ** (powers[stream] + 1)
        return {**updates, "step": step, "product": product, **self._at_use(updates, stream)}

    def beside_decisions(self, decisions: Rows, requests: Rows, plan: Plan) -> Rows:
        """The logged table in scenario time, with the truth at each decision and when its request arrived.

        Whatever the request found at its leaf is without itself, so that chosen and other cells compare.
        """
        request = decisions["request_id"]
        stream = plan_streams(self._scenario, plan)[request]
        at_leaf_s, left_leaf_s = requests["at_leaf_s"][request], requests["left_leaf_s"][request]
        is_counted = decisions["chosen"] & ~np.isnan(at_leaf_s) & ~(left_leaf_s <= at_leaf_s)
        in_flight = self._in_flight.at(self._cells(decisions), at_leaf_s) - is_counted
        return {
            **decisions,
            **self._at_use(decisions, stream),
            "true_in_flight_at_arrival": in_flight,
            "true_cost_at_arrival": self._cost(decisions, stream, in_flight, at_leaf_s),
            "true_sojourn_at_arrival_s": self._cost(decisions, stream, in_flight, at_leaf_s, "latency"),
        }

    def _at_use(self, beliefs: Rows, stream: Positions) -> Rows:
        used_at_s = beliefs["used_at_s"]
        in_flight = self._in_flight.at(self._cells(beliefs), used_at_s)
        return {
            "believed_cost": beliefs["believed_cost"] / cost_scales(self._scenario)[stream],
            "true_in_flight": in_flight,
            "true_cost": self._cost(beliefs, stream, in_flight, used_at_s),
        }

    def _cost(
        self, beliefs: Rows, stream: Positions, in_flight: Floats, at_s: Floats, cost: Cost | None = None
    ) -> Floats:
        """By the policy's own cost, unless another is named."""
        cell = self._cells(beliefs)
        speed = self._speeds.at(cell, at_s)
        return self._costs.at(stream, cell, in_flight, beliefs["network_s"], speed, cost)

    def _cells(self, beliefs: Rows) -> Positions:
        places: Positions = beliefs["cell"].places(tuple(self._scenario.cells))
        return places


class InFlight:
    """N_j(t): the requests that had reached the leaves of cell j by t and had not left them."""

    def __init__(self, topology: Topology, visits: Rows) -> None:
        """Count from the visits of all leaves."""
        cells = list(topology.leaves)
        of_leaf = [cells.index(topology.nodes[leaf].cell) for leaf in visits["leaf"].words]
        cell = np.array(of_leaf, dtype=np.int32)[visits["leaf"].numbers]
        self._at_leaf_s = [np.sort(visits["at_leaf_s"][cell == i]) for i in range(len(cells))]
        # NaN, a request that never left, sorts last, after every instant.
        self._left_leaf_s = [np.sort(visits["left_leaf_s"][cell == i]) for i in range(len(cells))]

    def at(self, cell: Positions, at_s: Floats) -> Floats:
        """N of these cells (by position in the scenario) at these instants; NaN where the instant is NaN."""
        counts = np.full(len(at_s), np.nan)
        for i, (came_s, left_s) in enumerate(zip(self._at_leaf_s, self._left_leaf_s, strict=True)):
            mine = (cell == i) & ~np.isnan(at_s)
            came = np.searchsorted(came_s, at_s[mine], side="right")
            counts[mine] = came - np.searchsorted(left_s, at_s[mine], side="right")
        return counts


class Speeds:
    """The mean speed of a cell's servers over time, as the servers applied the faults.

    Of the faults at work on a server, the one that set in last gives its speed.
    """

    def __init__(self, scenario: Scenario, topology: Topology, applied: Rows) -> None:
        """Work out the steps of every cell."""
        plan = fault_plan(scenario, topology)
        self._steps = [
            _mean_steps([_server_steps(plan, applied, server) for server in topology.servers[cell]])
            for cell in scenario.cells
        ]

    def at(self, cell: Positions, at_s: Floats) -> Floats:
        """Mean speed of these cells (by position) at these instants."""
        speeds = np.ones(len(at_s))
        for i, (starts_s, values) in enumerate(self._steps):
            mine = cell == i
            speeds[mine] = values[np.searchsorted(starts_s, at_s[mine], side="right") - 1]
        return speeds


def _server_steps(plan: Sequence[Fault], applied: Rows, server: str) -> list[tuple[float, float]]:
    """(from this instant on, speed) of one server, beginning before the run."""
    speeds = {fault.number: fault.words.speed for fault in plan if fault.words.speed is not None}
    is_mine = (applied["node"].places([server]) == 0) & np.isin(applied["fault"], list(speeds))
    rows = np.flatnonzero(is_mine)
    rows = rows[np.argsort(applied["done_at_s"][rows], kind="stable")]
    active: list[int] = []
    steps = [(-np.inf, 1.0)]
    for row in rows:
        fault = int(applied["fault"][row])
        if not applied["healed"][row]:
            active.append(fault)
        elif fault in active:
            active.remove(fault)
        steps.append((float(applied["done_at_s"][row]), speeds[active[-1]] if active else 1.0))
    return steps


def _mean_steps(servers: list[list[tuple[float, float]]]) -> tuple[Floats, Floats]:
    """The steps of the mean over servers: instants and values, each of shape (steps,)."""
    starts_s = np.unique([at_s for steps in servers for at_s, _ in steps])
    values = np.zeros(len(starts_s))
    for steps in servers:
        at_s, speed = np.array(steps).T
        values += speed[np.searchsorted(at_s, starts_s, side="right") - 1]
    return starts_s, values / len(servers)


class Costs:
    """The costs that policies would have seen, had they known the truth."""

    def __init__(self, scenario: Scenario) -> None:
        """Take the rate curves of every root and cell from an unscaled scenario."""
        cells = list(scenario.cells)
        self._servers = np.array([float(cell.servers) for cell in scenario.cells.values()])
        self._streams = streams_of(scenario)
        mixes = {root: token_means(scenario, root) for root in scenario.roots}
        self._curves = [
            [cell_curve(scenario, cell, *mixes[stream.root]) for cell in cells] for stream in self._streams
        ]

    def at(
        self,
        stream: Positions,
        cell: Positions,
        in_flight: Floats,
        network_s: Floats,
        speed: Floats,
        cost: Cost | None = None,
    ) -> Floats:
        """Cost of each row, the stream's own unless one is named; all of shape (rows,), NaN where `in_flight` is.

        The share of errors counts as 0. Requests in flight per capacity keep the capacity at speed 1, since
        that is what the rule divides by.
        """
        costs = np.full(len(in_flight), np.nan)
        for i, words in enumerate(self._streams):
            for j, curve in enumerate(self._curves[i]):
                mine = np.flatnonzero((stream == i) & (cell == j))
                if len(mine):
                    costs[mine] = costs_of(
                        cost or words.cost,
                        curve,
                        self._servers[j],
                        in_flight[mine],
                        network_s[mine],
                        speed[mine],
                    )
        return costs


def costs_of(
    cost: Cost, curve: RateCurve, servers: float, in_flight: Floats, network_s: Floats, speed: Floats
) -> Floats:
    """`routing.cost.cost_of` for whole columns at once; a test holds the two against each other.

    Args:
        cost: which of the costs.
        curve: of one server at speed 1.
        servers: of the cell.
        in_flight: N, shape (rows,).
        network_s: round trips, NaN: not measured yet, which counts as 0.
        speed: of the servers.
    """
    if cost == "in_flight":
        return in_flight
    if cost == "in_flight_per_capacity":
        return np.asarray(in_flight / (servers * curve.divisor_per_s))
    n = in_flight / servers
    served_s = curve.alpha_s + curve.beta_s * n
    if cost == "marginal":
        at_cap_s = curve.alpha_s + curve.beta_s * np.minimum(n, curve.n_cap)
        beyond = np.maximum(n - curve.n_cap, 0.0)
        marginal_s = at_cap_s * (at_cap_s + 2 * curve.beta_s * beyond) / curve.alpha_s
        served_s = np.minimum(marginal_s, CEILING * curve.alpha_s)
    return np.asarray(served_s / speed + np.nan_to_num(network_s))
