"""The plan that `testbed check` prints, and its warnings."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import pytest
from rich.console import Console

from testbed.console.resolved_plan import describe, sections
from testbed.console.section import Section
from testbed.scenario.load import scenario_from_text
from testbed.scenario.schema import Scenario
from tests.traffic.scenes import HERDING, herding, one_line, scene

ARMS = """
arms:
  greedy: {roots.*.traffic.*.policy: greedy}
  flow: {}
"""


def found(arms: Mapping[str, Scenario], title: str, cores: int = 8) -> Section:
    (section,) = [each for each in sections(arms, cores) if each.title == title]
    return section


def warnings_of(scenario: Scenario, cores: int = 8) -> list[str]:
    return [
        row[0]
        for each in sections({"main": scenario}, cores)
        if each.title == "Warnings"
        for row in each.rows
    ]


def column(section: Section, name: str) -> list[str]:
    return [row[section.columns.index(name)] for row in section.rows]


def printed(text: str, width: int = 110) -> str:
    console = Console(file=io.StringIO(), width=width)
    for part in describe(scenario_from_text(text)):
        console.print(part)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_plan_of_herding_says_what_matters() -> None:
    text = printed(HERDING + ARMS)

    for word in (
        "15 processes",
        "500 ms (loss 1 %)",
        "571 ms",
        "0.0918",
        "1.31 /s^2",
        "3.24 s",
        "0.012 /s",
        "0.444",
    ):
        assert word in text
    assert "Warnings" not in text


def test_arms_share_what_they_agree_on_and_name_what_they_do_not() -> None:
    titles = [section.title for section in sections(scenario_from_text(HERDING + ARMS).arms, 8)]

    assert titles == [
        "Arms",
        "Nodes",
        "Traffic",
        "Effective delays",
        "Load",
        "Loops (arm greedy)",
        "Loops (arm flow)",
        "Steps of flow routing (arm flow)",
    ]


def test_every_row_fits_its_columns() -> None:
    file = scenario_from_text(HERDING + ARMS)

    for section in sections(file.arms, 8):
        assert all(len(row) == len(section.columns) for row in section.rows)


def test_the_arms_are_listed_with_their_planned_requests() -> None:
    arms = found(scenario_from_text(HERDING + ARMS).arms, "Arms")

    assert column(arms, "policies") == ["greedy", "flow"]
    assert len(set(column(arms, "planned requests"))) == 1
    assert int(column(arms, "planned requests")[0]) == pytest.approx(20 * 1021.5, rel=0.03)


def test_the_policies_of_classes_and_roots_are_told_apart() -> None:
    text = """
    policies: {even: {kind: random}, turn: {kind: round_robin}}
    classes: {sand: {}, boulder: {}}
    roots:
      west: {traffic: [{class: sand, policy: even, rate: 1 /s}, {class: boulder, policy: turn, rate: 1 /s}]}
      east: {traffic: [{class: sand, policy: %s, rate: 1 /s}]}
    """

    assert column(found({"main": scene(text % "even")}, "Arms"), "policies") == ["sand: even, boulder: turn"]
    assert column(found({"main": scene(text % "turn")}, "Arms"), "policies") == [
        "west sand: even, west boulder: turn, east sand: turn"
    ]


def test_time_scales_show_in_the_wall_time_alone() -> None:
    slow, fast = (found({"main": herding(time_scale=scale)}, "Arms") for scale in (1.0, 0.5))

    assert column(slow, "duration") == column(fast, "duration") == ["20 s"]
    assert (column(slow, "wall time"), column(fast, "wall time")) == (["20 s"], ["10 s"])


def test_pairs_with_equal_delays_share_a_row_and_others_do_not() -> None:
    links = [
        {"from": "root.*", "to": "cell.*", "delay": "20 ms"},
        {
            "from": "root.west",
            "to": "cell.eu",
            "path": "request",
            "delay": "50 ms",
            "jitter": {"uniform": "10 ms"},
        },
        {"from": "us/leaf-*", "to": "us/server-*", "delay": "1 ms"},
    ]

    section = found({"main": herding(links=links)}, "Effective delays")

    assert column(section, "between") == [
        "west - us, asia",
        "north, south - us, eu, asia",
        "west - eu",
        "inside us",
    ]
    assert column(section, "request") == ["20 ms", "20 ms", "50 ms (least 40 ms)", "1 ms"]
    assert column(section, "round trip") == ["20 ms", "20 ms", "50 ms", "1 ms"]


def test_faults_are_listed_in_time_with_what_they_touch() -> None:
    faults = [
        {"at": "12 s", "cell": "eu", "set": {"speed": 0.4}},
        {
            "at": "10 s",
            "for": "4 s",
            "link": {"from": "cell.us", "to": "root.*", "path": "observation"},
            "set": {"delay": "2 s"},
        },
    ]

    assert found({"main": herding(faults=faults)}, "Faults").rows == (
        ("10 s", "14 s", "link cell.us -> root.* observation (3 links)", "delay 2 s"),
        ("12 s", "the end", "cell eu (3 servers)", "speed 0.4"),
    )


def flow(**words: Any) -> dict[str, Any]:
    return {"policies": {"flow": {"kind": "flow", "step": "0.12 /s^2", **words}}}


def rate(words: str, policy: str = "flow") -> dict[str, Any]:
    return {"roots": {"west": {"traffic": [{"class": "sand", "rate": words, "policy": policy}]}}}


def observations(**words: Any) -> dict[str, Any]:
    return {"links": [{"from": "cell.*", "to": "root.*", "path": "observation", **words}]}


WARNINGS: list[tuple[dict[str, Any], str]] = [
    (
        flow(interval="50 ms"),
        "flow updates every 50 ms, more often than reports come (100 ms): it repeats old news",
    ),
    (
        flow() | {"policies": {"flow": {"kind": "flow", "step": "2 /s^2"}}},
        "the step of flow for sand is 1.53 of the critical step: the shares oscillate",
    ),
    (
        flow() | {"policies": {"flow": {"kind": "flow", "step": "0.8 /s^2"}}},
        "the step of flow for sand is 0.612 of the critical step: noise may tip it into oscillation",
    ),
    (
        {"classes": {"sand": {"output_tokens": 8, "timeout": "100 ms"}}},
        "the timeout of sand, 100 ms, is below its mean service time with travel, 139 ms: most requests time out",
    ),
    (
        {
            "cells": {
                name: {"servers": servers, "profile": "small", "step_tokens": 64}
                for name, servers in (("us", 4), ("eu", 3), ("asia", 2))
            }
        },
        "each server of us is asked for 94.94 requests a second, and steps of 64 tokens let 62.53 through,"
        " whatever the capacity says",
    ),
    (
        rate("2100 /s"),
        "the mean offered load is 0.973 of the capacity of all cells (2100 of 2158 /s):"
        " queues grow without end or nearly so",
    ),
    (
        {"warmup": "1 s"},
        "the warm-up, 1 s, is shorter than 3 loop delays (1.71 s): what is measured includes the start",
    ),
    (
        {"reports": {"every": "1 s"}},
        "us, eu, asia report every 1 s, longer than a request stays there (156 ms): each report tells of requests"
        " that have mostly left",
    ),
    (
        observations(loss="100 %"),
        "no report from us, eu, asia reaches west: its observation links lose everything",
    ),
    (
        observations(delay="10 ms", jitter={"normal": "10 ms"}),
        "the jitter from us/leaf-1 to root.west (observation) is cut at 0: the mean delay is 12.9 ms, not 10 ms",
    ),
    (
        flow(stale="ignored", stale_after="300 ms"),
        "stale_after of flow, 300 ms, is below the age that reports of us reach before the next one comes, 600 ms:"
        " they are taken for ignored part of the time",
    ),
    (
        {"policies": {"flow": {"kind": "oracle"}}},
        "live: flow is an oracle, which the virtual engine alone can have: run with --engine virtual",
    ),
    (
        {"reports": {"every": "1 ms"}},
        "live: 9000 reports a second of wall time, above 5000: each is a wake-up; report less often or"
        " through fewer leaves",
    ),
    (
        {"time_scale": 0.05},
        "live: 6 processes handle more than 4000 messages a second, on 2 cores: expect lateness;"
        " raise time_scale or lower the rates",
    ),
]


@pytest.mark.parametrize(("changes", "warning"), WARNINGS, ids=[text[:40] for _, text in WARNINGS])
def test_a_known_bad_pair_is_warned_of(changes: dict[str, Any], warning: str) -> None:
    assert warning in warnings_of(herding(**changes), cores=2)


def test_herding_itself_is_warned_of_nothing() -> None:
    assert warnings_of(herding(), cores=2) == []


def test_a_peak_above_capacity_is_warned_of_though_the_mean_is_below() -> None:
    scenario = one_line("stages: [{at: 0 s, rate: 10 /s}, {at: 9 s, load: 1.2}]")

    assert warnings_of(scenario) == [
        "the peak offered load is 1.2 of the capacity of all cells (120 of 100 /s): queues grow without end or nearly so"
    ]


def test_a_cell_that_must_take_too_much_is_warned_of() -> None:
    roots = {"west": {"traffic": [{"class": "sand", "rate": "940 /s", "policy": "even"}], "allowed": ["us"]}}

    assert warnings_of(herding(roots=roots)) == [
        "us is loaded to 0.98 of its capacity even at the optimum: no other cell is allowed, or near enough,"
        " to take more"
    ]


def test_fixed_work_is_warned_of_where_it_lowers_the_critical_step() -> None:
    fixed = {"servers": 1, "service": {"rate_curve": {"capacity": "50 /s", "half": 100.0}, "work": "fixed"}}
    changes = {"cells": {"a": fixed, "b": fixed}} | rate("70 /s") | {"links": [], "warmup": "5 s"}

    (warning,) = [
        text for text in warnings_of(herding(**changes, **flow(interval="1 s"))) if "memoryless" in text
    ]

    assert warning.startswith("the work of sand is not memoryless: its critical step is 0.")


def test_servers_too_small_for_a_single_request_are_described_and_not_refused() -> None:
    """Requests of 56 tokens on servers with room for 10: a capacity of nothing."""
    cells = {"us": {"servers": 1, "profile": "bench", "kv_tokens": 10}}
    scenario = herding(cells=cells, **rate("5 /s"))

    assert set(column(found({"main": scenario}, "Load"), "rho_cap")) == {"inf"}
    assert "the mean offered load is above the capacity of all cells (5 of 0 /s)" in "".join(
        warnings_of(scenario)
    )


def test_a_plan_without_requests_is_warned_of() -> None:
    assert warnings_of(one_line("stages: [{at: 0 s, rate: 0 /s}]")) == [
        "no request is planned: raise the rates or the duration, or widen the window of the trace"
    ]


def test_an_overloaded_scenario_is_described_and_not_refused() -> None:
    scenario = herding(**rate("5000 /s"))

    assert found({"main": scenario}, "Loops").rows == (
        ("a cell is asked for more than it can carry: no operating point",),
    )
    assert set(column(found({"main": scenario}, "Load"), "N")) == {"grows"}


def test_a_load_beyond_capacity_is_excused_where_prefix_caches_may_carry_it() -> None:
    cells = {"us": {"servers": 1, "profile": "small", "prefix_cache_tokens": 1000}}

    assert "what the prefix caches save" in "".join(warnings_of(herding(cells=cells, **rate("5000 /s"))))
    assert "prefix caches" not in "".join(warnings_of(herding(**rate("5000 /s"))))
