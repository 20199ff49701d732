"""The lines of the roots' traffic, and the units in which their policies count cost and step."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from testbed.record.gather import Texts
from testbed.scenario.policy_words import Cost, Policy
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import root_name
from testbed.traffic.plan import Plan

Positions = NDArray[np.integer[Any]]


class Stream(NamedTuple):
    """A line of a root's traffic, and the cost by which its policy judges cells."""

    root: str
    class_name: str
    cost: Cost
    step_time_power: int  # of the unit of the policy's step; 0 where it has none


def streams_of(scenario: Scenario) -> list[Stream]:
    """Every line of traffic, root by root, in the scenario's order."""
    return [
        _stream(root, line.class_, scenario.policies[line.policy])
        for root, words in scenario.roots.items()
        for line in words.traffic
    ]


def plan_streams(scenario: Scenario, plan: Plan) -> Positions:
    """The position in `streams_of` of each planned request's line; shape (requests,)."""
    lines = [len(words.traffic) for words in scenario.roots.values()]
    before = np.cumsum([0, *lines])
    return np.asarray(before[plan.root] + plan.traffic)


def cost_scales(scenario: Scenario) -> NDArray[np.float64]:
    """What divides a cost of run time, by stream: 1 where it counts requests, else the time scale."""
    return np.array(
        [1.0 if stream.cost == "in_flight" else scenario.time_scale for stream in streams_of(scenario)]
    )


def stream_places(streams: list[Stream], roots: Texts, classes: Texts) -> Positions:
    """The first stream of each row's root (a node's name) and class; shape (rows,)."""
    first: dict[tuple[str, str], int] = {}
    for position, stream in enumerate(streams):
        first.setdefault((root_name(stream.root), stream.class_name), position)
    places = np.full((len(roots.words), len(classes.words)), -1)
    for i, root in enumerate(roots.words):
        for j, name in enumerate(classes.words):
            places[i, j] = first.get((root, name), -1)
    rows = places[roots.numbers, classes.numbers]
    assert (rows >= 0).all(), "an update names a root and class that the scenario does not have"
    return np.asarray(rows)


def _stream(root: str, class_name: str, policy: Policy) -> Stream:
    unit = getattr(policy, "step_unit", None)
    power = 0 if unit is None else -2 if unit == "/s^2" else -1
    # Policies without a cost are judged by the one that greedy routing between unequal cells takes.
    return Stream(root, class_name, getattr(policy, "cost", "in_flight_per_capacity"), power)
