"""Effective delays and the loop delay, as measures.md section 2 defines it."""

from __future__ import annotations

import math
from typing import Any

import pytest
import yaml

from testbed.analysis.loop_delay import measured_loop_delays, overall_loop_delay_s, predicted_loop_delay_s
from testbed.analysis.records import Window
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import build_topology, reports_of
from testbed.theory.loop_delay import loop_delay_s
from testbed.theory.path_delays import PathDelays
from testbed.verification.trial import run_trial
from tests.traffic.scenes import HERDING, herding

LINKS = yaml.safe_load(HERDING)["links"]


def delays_of(scenario: Scenario) -> PathDelays:
    return PathDelays(build_topology(scenario))


def loop_of(scenario: Scenario, policy: str = "flow") -> float:
    return loop_delay_s(scenario, delays_of(scenario), "west", "us", scenario.policies[policy])


def one_root(policy: str) -> dict[str, Any]:
    return {"west": {"traffic": [{"class": "sand", "rate": "200 /s", "policy": policy}]}}


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


def test_a_decision_that_takes_time_lengthens_the_loop() -> None:
    policies = {"greedy": {"kind": "jsq", "decision_time": "30 ms"}}
    scenario = herding(policies=policies, roots=one_root("greedy"))

    assert loop_of(scenario, "greedy") == pytest.approx(0.030 + 0.520 + 0.1 * (0.5 + 0.01 / 0.99))


def test_a_report_of_changes_alone_counts_as_a_look() -> None:
    reports = {"every": "100 ms", "send": "on_change", "threshold": 3}

    assert loop_of(herding(reports=reports)) == loop_of(herding())


def test_a_report_that_is_polled_for_is_lost_with_the_question_or_the_answer() -> None:
    """The question takes 40 ms, which makes nothing older; 2 % of them are lost, and 1 % of the answers."""
    reports = {"every": "100 ms", "send": "when_polled"}
    links = [*LINKS, {"from": "root.*", "to": "cell.*", "path": "probe", "delay": "40 ms", "loss": "2 %"}]

    lost = 1 - 0.98 * 0.99
    assert loop_of(herding(reports=reports, links=links)) == pytest.approx(
        0.520 + 0.1 * (0.5 + lost / (1 - lost))
    )


def test_polls_in_series_come_round_when_all_have_been_asked() -> None:
    """An answer takes 540 ms, a period 400 ms: one is asked in each period, and the fourth begins a new round."""
    reports = {"every": "400 ms", "send": "when_polled", "polls": "serial"}
    probe = {"from": "root.*", "to": "cell.*", "path": "probe", "delay": "40 ms"}
    links = [*LINKS[:2], {**LINKS[2], "loss": "0 %"}, probe]

    assert loop_of(herding(reports=reports, links=links)) == pytest.approx(0.520 + 3 * 0.4 / 2)


def test_polled_reports_come_together_or_one_after_the_other() -> None:
    """Updates at every report: those of parallel polls are of one instant, those in series a round trip apart."""
    policies = {"flow": {"kind": "flow", "step": "0.12 /s^2", "update": "on_report"}}
    links = [{"from": "cell.*", "to": "root.*", "path": "observation", "delay": "10 ms"}]
    polled = {"every": "90 ms", "send": "when_polled"}

    together = loop_of(herding(policies=policies, links=links, reports=polled))
    in_turn = loop_of(herding(policies=policies, links=links, reports={**polled, "polls": "serial"}))

    assert together == pytest.approx(0.010)
    # gaps of 10, 10 and 70 ms: the mean wait for any report is (0.5 + 0.5 + 24.5) / 0.9 ms
    assert in_turn == pytest.approx(0.010 + 0.045 - (10**2 + 10**2 + 70**2) / 2 / 90 / 1000)


@pytest.mark.parametrize(
    ("reports", "decision_time"),
    [
        ({"every": "80 ms"}, "50 ms"),
        ({"every": "80 ms", "send": "when_polled"}, "0 s"),
        ({"every": "70 ms", "send": "when_polled", "polls": "serial"}, "0 s"),
        ({"every": "20 ms", "send": "when_polled", "polls": "serial"}, "0 s"),
    ],
)
def test_the_prediction_is_what_a_run_shows(reports: dict[str, Any], decision_time: str) -> None:
    """Updates by a timer that keeps no step with the reports; a round in series takes up to two periods or three."""
    links = [
        {"from": "root.*", "to": "cell.*", "delay": "20 ms"},
        {"from": "cell.*", "to": "root.*", "path": "observation", "delay": "12 ms"},
    ]
    policy = {"kind": "flow", "step": "0.01 /s^2", "interval": "7.3 ms", "decision_time": decision_time}
    changes = {"duration": "4 s", "warmup": "1 s", "policies": {"tried": policy}, "roots": one_root("tried")}
    scenario = herding(reports=reports, links=links, **changes)
    topology = build_topology(scenario)

    pairs = measured_loop_delays(scenario, run_trial(scenario).tables, Window(1.0, 4.0))

    assert overall_loop_delay_s(pairs) == pytest.approx(predicted_loop_delay_s(scenario, topology), rel=0.03)
