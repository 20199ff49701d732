"""Warnings about the processes of a live run: by what each handles, however nodes are put together."""

from __future__ import annotations

from typing import Any

import pytest

from testbed.scenario.schema import Scenario
from testbed.scenario.topology import build_topology
from testbed.theory.live_cautions import live_cautions
from testbed.theory.operating_point import at_capacity_split, demand
from testbed.theory.path_delays import PathDelays
from testbed.theory.process_load import process_rates, reports_per_s
from tests.analysis.made_arms import made_scenario

GREEDY_LEAVES = {"kind": "least_cost"}


def found(scenario: Scenario, cores: int = 2) -> list[str]:
    topology = build_topology(scenario)
    wanted = demand(scenario, PathDelays(topology))
    return list(live_cautions(scenario, topology, wanted, at_capacity_split(wanted), cores))


def rates(scenario: Scenario) -> dict[str, float]:
    topology = build_topology(scenario)
    wanted = demand(scenario, PathDelays(topology))
    return process_rates(scenario, topology, wanted, at_capacity_split(wanted).cells)


def roots_of(rate: str) -> dict[str, Any]:
    line = {"class": "sand", "rate": rate, "policy": "even"}
    return {root: {"traffic": [line]} for root in ("west", "north", "south")}


def test_nodes_that_share_a_process_are_busy_together() -> None:
    """Alone no node handles 4,000 messages a second at a fifth of the time; three roots and three leaves do."""
    alone = made_scenario(time_scale=0.2)
    together = made_scenario(time_scale=0.2, processes={"roots": 1, "cells": 1})
    said = "live: {} processes handle more than 4000 messages a second, on 1 core: expect lateness;"

    assert sum(rate > 4000 for rate in rates(alone).values()) == 1
    assert found(alone, cores=1) == []
    assert [text.startswith(said.format(2)) for text in found(together, cores=1)] == [True]


def test_what_is_handled_does_not_hang_on_who_shares_a_process() -> None:
    grouped = rates(made_scenario(processes={"roots": 2, "cells": 1}))

    assert list(grouped) == ["roots-1", "root.north", "cells-1"]
    assert sum(grouped.values()) == pytest.approx(sum(rates(made_scenario()).values()))


def test_reports_count_at_both_ends_and_by_the_wall() -> None:
    often = made_scenario(reports={"every": "1 ms"}, roots=roots_of("1 /s"), time_scale=2.0)

    assert reports_per_s(often, build_topology(often)) == pytest.approx(9_000.0)
    assert rates(often)["root.west"] == pytest.approx(1_500.0 + 1.0)
    assert rates(often)["us/leaf-1"] == pytest.approx(1_500.0, rel=0.01)
    assert rates(often)["us/server-1"] < 1.0


def test_reports_of_servers_count_where_their_leaf_reads_them() -> None:
    cells = {
        "us": {
            "servers": 4, "service": {"slots": 32, "exponential": "100 ms"}, "leaf": {"policy": "greedy"},
            "server_reports": {"every": "50 ms"},
        }
    }  # fmt: skip
    read = made_scenario(cells=cells, roots=roots_of("1 /s"))

    assert reports_per_s(read, build_topology(read)) == pytest.approx(3 * 10.0 + 4 * 20.0)
    assert rates(read)["us/server-1"] == pytest.approx(20.0 + 0.75)


@pytest.mark.parametrize(
    ("spacing", "time_scale", "is_told"),
    [
        ("10 ms", 1.0, False),
        ("10.1 ms", 1.0, True),
        ("10.1 ms", 2.0, False),
        ("6 ms", 0.5, True),
        ("0 s", 1.0, False),
    ],
)
def test_passes_are_spaced_by_no_more_than_half_of_the_smallest_delay(
    spacing: str, time_scale: float, is_told: bool
) -> None:
    """20 ms of scenario time against wall time."""
    texts = [
        text
        for text in found(made_scenario(live={"pass_spacing": spacing}, time_scale=time_scale), cores=99)
        if "pass_spacing" in text
    ]

    assert bool(texts) == is_told
    if is_told and time_scale == 1.0:
        assert texts == [
            "live: pass_spacing, 10.1 ms, is above half of the smallest delay of a link, 20 ms of wall time:"
            " messages come later than their links have it"
        ]


def test_links_without_a_delay_ask_for_no_spacing() -> None:
    assert found(made_scenario(live={"pass_spacing": "10 ms"}, links=[])) == []
