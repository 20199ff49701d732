"""The stretches of a window in which nothing changes, each with its demand as measured and its optimum.

Rates are those of the requests that were sent in the stretch, and servers have the speeds that the faults of that
stretch leave them. Changed delays of requests and replies are left out.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from testbed.analysis.records import Floats, Table, Window, codes
from testbed.analysis.settling import changes_s
from testbed.scenario.fault_plan import fault_plan
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import build_topology, root_name
from testbed.serving.rate_curve import RateCurve
from testbed.theory.operating_point import Demand, at_optimum, demand
from testbed.theory.path_delays import PathDelays


class Regime(NamedTuple):
    """A stretch without a change.

    Attributes:
        window: of the stretch.
        streams: name of the root's node and class of each line of traffic.
        wanted: what was asked for, as measured.
        optimum_shares: x*, shape (lines, cells).
        optimum: F*, requests in the system.
    """

    window: Window
    streams: tuple[tuple[str, str], ...]
    wanted: Demand
    optimum_shares: Floats
    optimum: float


def regimes_of(scenario: Scenario, requests: Table, window: Window) -> list[Regime]:
    """The stretches of a window between changes; none where one of them asks for more than the cells can carry."""
    inside = [each for each in changes_s(scenario) if window.from_s < each < window.to_s]
    parts = [Window(*each) for each in pairwise((window.from_s, *inside, window.to_s)) if each[0] < each[1]]
    planned = demand(scenario, PathDelays(build_topology(scenario)))
    streams = tuple(
        (root_name(root), scenario.roots[root].traffic[index].class_) for root, index in planned.lines
    )
    regimes = []
    for part in parts:
        wanted = replace(
            planned,
            rates_per_s=_measured_rates(planned, streams, requests, part),
            curves=_curves_at(planned, scenario, part.from_s),
        )
        point = at_optimum(wanted)
        if not (point.is_sustained and point.in_system > 0):
            return []
        regimes.append(Regime(part, streams, wanted, point.shares, point.in_system))
    return regimes


def _measured_rates(
    planned: Demand, streams: tuple[tuple[str, str], ...], requests: Table, part: Window
) -> Floats:
    """Requests sent per second of each line; several lines of one root and class divide theirs as planned."""
    roots, classes = (list(dict.fromkeys(names)) for names in zip(*streams, strict=True))
    inside = part.holds(requests["sent_at_s"])
    stream = codes(requests["root"], roots) * len(classes) + codes(requests["class"], classes)
    counts = np.bincount(stream[inside], minlength=len(roots) * len(classes))
    place = np.array([roots.index(root) * len(classes) + classes.index(name) for root, name in streams])
    totals = np.bincount(place, planned.rates_per_s, minlength=len(counts))[place]
    parts = np.divide(planned.rates_per_s, totals, out=np.zeros(len(place)), where=totals > 0)
    return np.asarray(counts[place] * parts / (part.to_s - part.from_s), np.float64)


def _curves_at(planned: Demand, scenario: Scenario, at_s: float) -> tuple[tuple[RateCurve, ...], ...]:
    """The curves at the mean speed of each cell's servers, as the faults of that instant leave it."""
    topology = build_topology(scenario)
    speeds: dict[str, float] = {}
    for fault in sorted(fault_plan(scenario, topology), key=lambda fault: fault.at_s):
        if fault.words.speed is not None and fault.at_s <= at_s < fault.until_s:
            speeds.update(dict.fromkeys(fault.nodes, fault.words.speed))
    means = [
        float(np.mean([speeds.get(server, 1.0) for server in topology.servers[cell]]))
        for cell in planned.cells
    ]
    return tuple(
        tuple(
            curve if speed == 1.0 else curve.at_speed(speed) for curve, speed in zip(row, means, strict=True)
        )
        for row in planned.curves
    )
