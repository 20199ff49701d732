"""Effective delays and the loop delay, as measures.md section 2 defines it."""

from __future__ import annotations

import math

import pytest

from testbed.scenario.schema import Scenario
from testbed.scenario.topology import build_topology, reports_of
from testbed.theory.loop_delay import PathDelays, loop_delay_s
from tests.traffic.scenes import herding


def delays_of(scenario: Scenario) -> PathDelays:
    return PathDelays(build_topology(scenario))


def loop_of(scenario: Scenario, policy: str = "flow") -> float:
    return loop_delay_s(scenario, delays_of(scenario), "west", "us", scenario.policies[policy])


@pytest.mark.parametrize("policy", ["flow", "greedy"])
def test_a_free_running_timer_sees_reports_half_a_period_old_and_longer_when_some_are_lost(
    policy: str,
) -> None:
    """20 ms + 500 ms + 100 ms (1/2 + 0.01/0.99)."""
    assert loop_of(herding(), policy) == pytest.approx(0.020 + 0.500 + 0.1 * (0.5 + 0.01 / 0.99))


def test_an_update_at_every_report_sees_the_reported_cell_as_it_comes_and_the_others_as_they_wait() -> None:
    """Three cells in turn: two thirds of what a timer of its own would see beyond the delay."""
    policies = {"flow": {"kind": "flow", "step": "0.12 /s^2", "update": "on_report"}}

    assert loop_of(herding(policies=policies)) == pytest.approx(0.520 + 2 / 3 * 0.1 * (0.5 + 0.01 / 0.99))


def test_in_phase_reports_are_all_used_at_their_instant_unless_they_are_lost() -> None:
    """The wait for a cell's own report, p / (1 - p) periods, less that for any of the three."""
    policies = {"flow": {"kind": "flow", "step": "0.12 /s^2", "update": "on_report"}}
    reports = {"every": "100 ms", "phase": "in_phase"}

    delay_s = loop_of(herding(policies=policies, reports=reports))

    assert delay_s == pytest.approx(0.520 + 0.1 * (0.01 / 0.99 - 1e-6 / (1 - 1e-6)))


def test_a_cell_may_report_at_its_own_pace() -> None:
    cells = {"us": {"servers": 1, "profile": "bench", "reports": {"every": "2 s"}}}
    scenario = herding(
        cells=cells, roots={"west": {"traffic": [{"class": "sand", "rate": "1 /s", "policy": "flow"}]}}
    )

    assert reports_of(scenario, "us").every == 2.0
    assert loop_of(scenario) == pytest.approx(0.520 + 2.0 * (0.5 + 0.01 / 0.99))


def test_lost_reports_never_come() -> None:
    links = [{"from": "cell.*", "to": "root.*", "path": "observation", "loss": "100 %"}]

    assert loop_of(herding(links=links)) == math.inf


def test_several_leaves_of_a_cell_are_taken_together() -> None:
    cells = {"us": {"servers": 1, "profile": "bench", "leaf": {"count": 2}}}
    links = [
        {"from": "root.west", "to": "us/leaf-1", "path": "request", "delay": "10 ms"},
        {"from": "root.west", "to": "us/leaf-2", "path": "request", "delay": "30 ms", "loss": "2 %"},
    ]
    scenario = herding(
        cells=cells,
        links=links,
        roots={"west": {"traffic": [{"class": "sand", "rate": "1 /s", "policy": "flow"}]}},
    )

    delay = delays_of(scenario).between("west", "us", "request")

    assert delay.mean_s == pytest.approx(0.020)
    assert delay.least_s == 0.010
    assert delay.loss == pytest.approx(0.01)


def test_paths_inside_a_cell_are_known_where_there_are_some() -> None:
    links = [{"from": "us/leaf-*", "to": "us/server-*", "path": "request", "delay": "1 ms"}]

    delays = delays_of(herding(links=links))

    request = delays.inside("us", "request")
    assert request is not None
    assert request.mean_s == 0.001
    assert delays.inside("us", "probe") is None
