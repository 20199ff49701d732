"""The null run of a scenario: its processes, rates and reports, and nothing that takes time but the testbed itself.

No link has a delay, no server a queue, nothing fails, and nobody decides by what was observed: each line of traffic is split
over its cells by their capacity, request by request, whatever the timing. What such a run takes is the testbed's own:
the overhead of a hop at the planned rate. Under virtual time it is 0, but for a service of 1 us.
"""

from __future__ import annotations

from dataclasses import replace

from testbed.scenario.load import ScenarioFile
from testbed.scenario.policy_words import Policy, WeightedPolicy
from testbed.scenario.schema import Cell, Leaf, Reports, Root, Scenario, Service, Traffic, TrafficClass
from testbed.scenario.topology import build_topology
from testbed.theory.operating_point import at_capacity_split, demand
from testbed.theory.path_delays import PathDelays
from testbed.traffic.capacity import stage_rates

SERVED_AT_ONCE = Service.model_validate({"slots": 1_000, "fixed": "1 us"})
LEAF_POLICY = "null-leaf"
NAME = "null"  # of the arm, where all arms have the same null run


def null_scenario(scenario: Scenario) -> Scenario:
    """Of an arm, unscaled.

    Raises:
        RunError: a trace is missing or malformed.
    """
    policies: dict[str, Policy] = {LEAF_POLICY: WeightedPolicy(kind="weighted", draw="request")}
    policies |= _splits(scenario)
    return scenario.model_copy(
        update={
            "links": (),
            "faults": (),
            "policies": policies,
            "cells": {name: _null_cell(cell) for name, cell in scenario.cells.items()},
            "classes": {name: _null_class(words) for name, words in scenario.classes.items()},
            "roots": {name: _null_root(scenario, name) for name in scenario.roots},
            "reports": _null_reports(scenario.reports),
        }
    )


def null_file(file: ScenarioFile) -> ScenarioFile:
    """The null runs of a file: of each arm, or a single one where all are the same; without expectations.

    Raises:
        RunError: a trace is missing or malformed.
    """
    arms: dict[str, Scenario] = {}
    for name, scenario in file.arms.items():
        null = null_scenario(scenario)
        if null not in arms.values():
            arms[f"{NAME}-{name}"] = null
    if len(arms) == 1:
        arms = dict(zip([NAME], arms.values(), strict=True))
    return replace(file, name=f"{file.name}-{NAME}", arms=arms, expectations=())


def _splits(scenario: Scenario) -> dict[str, Policy]:
    """A policy for each line of traffic: shares in proportion to the capacity of the cells that it may use."""
    point = at_capacity_split(demand(scenario, PathDelays(build_topology(scenario))))
    return {
        _split_name(root, index): WeightedPolicy(
            kind="weighted", draw="request", weights=dict(zip(scenario.cells, shares, strict=True))
        )
        for (root, index), shares in zip(_lines(scenario), point.shares.tolist(), strict=True)
    }


def _lines(scenario: Scenario) -> list[tuple[str, int]]:
    return [(root, index) for root, words in scenario.roots.items() for index in range(len(words.traffic))]


def _split_name(root: str, index: int) -> str:
    return f"{NAME}-{root}-{index}"


def _null_cell(cell: Cell) -> Cell:
    leaf = Leaf(policy=LEAF_POLICY, count=cell.leaf.count, pick=cell.leaf.pick)
    reports = None if cell.reports is None else _null_reports(cell.reports)
    return Cell(servers=cell.servers, service=SERVED_AT_ONCE, leaf=leaf, reports=reports)


def _null_reports(reports: Reports) -> Reports:
    """As often, however little there is to say."""
    return Reports.model_construct(every=reports.every, phase=reports.phase)


def _null_class(words: TrafficClass) -> TrafficClass:
    return words.model_copy(update={"retries": None, "hedging": None, "cancel": False})


def _null_root(scenario: Scenario, name: str) -> Root:
    root = scenario.roots[name]
    lines = tuple(_null_line(scenario, name, index) for index in range(len(root.traffic)))
    return root.model_copy(update={"traffic": lines, "health_checks": None})


def _null_line(scenario: Scenario, root: str, index: int) -> Traffic:
    """The same arrivals; a load is a share of a capacity, which is another one here, so it becomes a rate."""
    line = scenario.roots[root].traffic[index]
    changes = {"policy": _split_name(root, index)}
    if line.trace is not None:
        return line.model_copy(update=changes)
    rates = stage_rates(scenario, root, index)
    if line.stages is None:
        return line.model_copy(update={**changes, "rate": rates[0], "load": None})
    stages = tuple(
        stage.model_copy(update={"rate": rate, "load": None})
        for stage, rate in zip(line.stages, rates, strict=True)
    )
    return line.model_copy(update={**changes, "stages": stages})
