"""The loops of a scenario: delay, sojourn, and the step against the critical one."""

from __future__ import annotations

import math

import pytest

from testbed.scenario.schema import Scenario
from testbed.scenario.topology import build_topology
from testbed.serving.delayed_loop import critical_gain, period_s
from testbed.theory.feedback import Feedback, FlowStep, feedbacks, is_memoryless_enough
from testbed.theory.operating_point import at_optimum, demand
from testbed.theory.path_delays import PathDelays
from tests.traffic.scenes import herding, scene


def loops_of(scenario: Scenario) -> list[Feedback]:
    delays = PathDelays(build_topology(scenario))
    wanted = demand(scenario, delays)
    return feedbacks(scenario, delays, wanted, at_optimum(wanted))


def flow_of(scenario: Scenario) -> FlowStep:
    (loop,) = loops_of(scenario)
    assert loop.flow is not None
    return loop.flow


def test_the_step_of_herding_is_nine_hundredths_of_the_critical_step() -> None:
    """As design section 4 says beside the step."""
    (loop,) = loops_of(herding())

    assert loop.loop_delay_s == pytest.approx(0.571, abs=5e-4)
    assert loop.flow is not None
    assert loop.flow.fraction == pytest.approx(0.09, abs=0.005)
    assert loop.flow.interval_s == 0.1
    assert is_memoryless_enough(loop.flow)


EQUAL = """
cells:
  a: {servers: 1, service: {rate_curve: {capacity: 50 /s, half: 100.0}}}
  b: {servers: 1, service: {rate_curve: {capacity: 50 /s, half: 100.0}}}
roots: {%s}
reports: {every: 1 ms, phase: in_phase}
policies: {flow: {kind: flow, cost: %s, step: 0.001 %s, update: on_report}}
links:
  - {from: root.*, to: cell.*, path: request, delay: 200 ms}
  - {from: cell.*, to: root.*, path: observation, delay: 200 ms}
"""


def equal_cells(roots: int = 1, cost: str = "marginal", unit: str = "/s^2", **changes: object) -> Scenario:
    line = f"{{class: sand, policy: flow, rate: {70 / roots} /s}}"
    words = ", ".join(f"r{i}: {{traffic: [{line}]}}" for i in range(roots))
    return scene(EQUAL % (words, cost, unit), **changes)


@pytest.mark.parametrize("roots", [1, 3])
def test_equal_cells_have_the_published_critical_step_whatever_the_number_of_roots(roots: int) -> None:
    """theory.md, V2 and V3: 1.209e-2 /s^2 and 18.8 s for rho 0.7, C 50, N0 100, 0.2 s one way."""
    flow = flow_of(equal_cells(roots))

    assert flow.critical == pytest.approx(1.209e-2, rel=1e-3)
    assert flow.critical_memoryless == pytest.approx(flow.critical)
    assert flow.period_s == pytest.approx(18.79, rel=1e-3)


@pytest.mark.parametrize(
    ("cost", "unit", "slope"),
    [
        ("marginal", "/s^2", 2 / (50 * 0.3)),
        ("latency", "/s^2", 1 / 50),
        ("in_flight", "/s", 1.0),
        ("in_flight_per_capacity", "/s^2", 1 / 50),
    ],
)
def test_the_gain_follows_the_slope_of_the_cost(cost: str, unit: str, slope: float) -> None:
    """K = slope * sum lambda eta, critical at equation (5) with a = C/N0 (1 - rho)^2."""
    flow = flow_of(equal_cells(cost=cost, unit=unit))

    a = 50 / 100 * 0.3**2
    assert flow.critical == pytest.approx(critical_gain(a, 0.4) / (70 * slope), rel=1e-6)
    assert flow.period_s == pytest.approx(period_s(a, 0.4), rel=1e-6)


def test_fixed_work_has_a_lower_critical_step() -> None:
    fixed = {"servers": 1, "service": {"rate_curve": {"capacity": "50 /s", "half": 100.0}, "work": "fixed"}}

    flow = flow_of(equal_cells(cells={"a": fixed, "b": fixed}))

    assert flow.critical < 0.5 * flow.critical_memoryless
    assert not is_memoryless_enough(flow)


def test_a_discrete_policy_has_a_loop_but_no_step() -> None:
    roots = {"west": {"traffic": [{"class": "sand", "rate": "900 /s", "policy": "greedy"}]}}

    (loop,) = loops_of(herding(roots=roots))

    assert loop.flow is None
    assert loop.policy == "greedy"
    assert loop.loop_delay_s / loop.sojourn_s > 3


def test_policies_that_read_no_reports_have_no_loop() -> None:
    roots = {"west": {"traffic": [{"class": "sand", "rate": "900 /s", "policy": "even"}]}}

    assert loops_of(herding(roots=roots)) == []


def test_a_root_with_one_cell_never_oscillates() -> None:
    roots = {"west": {"traffic": [{"class": "sand", "rate": "90 /s", "policy": "flow"}], "allowed": ["us"]}}

    flow = flow_of(herding(roots=roots))

    assert flow.critical == math.inf
    assert flow.fraction == 0.0


def test_without_reports_the_loop_is_open() -> None:
    links = [{"from": "cell.*", "to": "root.*", "path": "observation", "loss": "100 %"}]

    (loop,) = loops_of(herding(links=links))

    assert loop.loop_delay_s == math.inf
    assert loop.flow is not None
    assert loop.flow.critical == math.inf


def test_an_overloaded_scenario_has_no_operating_point() -> None:
    roots = {"west": {"traffic": [{"class": "sand", "rate": "5000 /s", "policy": "flow"}]}}

    assert loops_of(herding(roots=roots)) == []


def test_the_time_scale_does_not_touch_what_is_said_in_scenario_time() -> None:
    assert loops_of(herding(time_scale=4.0)) == loops_of(herding())
