"""What the theory says of a scenario, and what it refuses to say."""

from __future__ import annotations

from typing import Any

import pytest

from testbed.scenario.schema import Scenario
from testbed.theory.prediction import predict
from testbed.theory.statement import Statement
from tests.traffic.scenes import herding, scene

TWO = """
cells:
  a: {servers: 1, service: {rate_curve: {capacity: 50 /s, half: 10.0}}}
  b: {servers: 1, service: {rate_curve: {capacity: 50 /s, half: 10.0}}}
roots: {r: {traffic: [{class: sand, policy: %s, rate: 80 /s}]}}
reports: {every: 40 ms, phase: in_phase}
policies:
  flow:   {kind: flow, step: %s /s^2, interval: 40 ms, start: {a: 0.51, b: 0.49}}
  greedy: {kind: least_cost}
links:
  - {from: root.*, to: cell.*, path: request, delay: 145 ms}
  - {from: cell.*, to: root.*, path: observation, delay: 135 ms}
"""


def said(scenario: Scenario) -> dict[str, Statement]:
    return {each.what: each for each in predict(scenario)}


def two(policy: str, step: float = 0.01, **changes: Any) -> Scenario:
    return scene(TWO % (policy, step), **changes)


def test_two_greedy_cells_get_the_limit_cycle_and_the_fluid_agrees_with_it() -> None:
    """T = 0.3 s, W = 1 s, aT = 0.06: period and swing of equation (11); no step, so no claim of stability."""
    lines = said(two("greedy"))

    cycle = lines["limit cycle (11)"].figures
    fluid = lines["trajectory from empty"].figures
    assert cycle["relative_swing"] == pytest.approx(0.3, rel=0.05)
    assert fluid["period_s"] == pytest.approx(cycle["period_s"], rel=0.05)
    assert not fluid["settles"]
    assert "no claim of stability" in lines["critical step"].refused_because
    assert "gradient steps" in lines["bound on the mean of (F - F*)/F*"].refused_because


@pytest.mark.parametrize(("fraction", "settles"), [(0.5, True), (1.5, False)])
def test_the_fluid_settles_below_the_critical_step_and_oscillates_above(
    fraction: float, settles: bool
) -> None:
    critical = said(two("flow"))["critical step"].figures["critical_step"]

    lines = said(two("flow", fraction * critical, duration="150 s"))

    assert lines["critical step"].figures["fraction"] == pytest.approx(fraction)
    assert lines["trajectory from empty"].figures["settles"] is settles
    assert (lines["damping at its step"].figures["growth_per_s"] < 0) is settles


def test_the_discrete_form_is_near_the_continuous_one_at_short_intervals() -> None:
    lines = said(two("flow"))

    held, smooth = lines["critical step in updates (8)"].figures, lines["critical step"].figures
    assert held["delay_updates"] == 7
    assert held["critical_step"] == pytest.approx(smooth["critical_step"], rel=0.08)
    assert held["period_s"] == pytest.approx(smooth["period_s"], rel=0.08)


def test_an_optimum_on_the_boundary_gets_no_claim_of_stability() -> None:
    far = [{"from": "cell.b", "to": "root.*", "path": "reply", "delay": "9 s"}]

    line = said(
        two(
            "flow",
            links=far,
            roots={"r": {"traffic": [{"class": "sand", "policy": "flow", "rate": "20 /s"}]}},
        )
    )["critical step"]

    assert "leaves b unused" in line.refused_because


def test_general_work_has_a_critical_step_by_the_general_loop_and_no_damping() -> None:
    fixed = {"servers": 1, "service": {"rate_curve": {"capacity": "50 /s", "half": 10.0}, "work": "fixed"}}

    lines = said(two("flow", cells={"a": fixed, "b": fixed}))

    assert any("general loop" in each for each in lines["critical step"].assumes)
    assert "not memoryless" in lines["damping at its step"].refused_because
    assert "not memoryless" in lines["trajectory from empty"].refused_because


def test_flow_beside_a_greedy_policy_gets_no_claim() -> None:
    roots = {
        name: {"traffic": [{"class": "sand", "policy": name, "rate": "200 /s"}]}
        for name in ("flow", "greedy")
    }

    refused = {
        each.whose: each.refused_because
        for each in predict(herding(roots=roots))
        if each.what == "critical step"
    }

    assert "greedy reacts to the same cells" in refused["sand by flow"]


def test_an_overloaded_scenario_has_no_optimum() -> None:
    roots = {"west": {"traffic": [{"class": "sand", "rate": "5000 /s", "policy": "flow"}]}}

    assert "more than they can carry" in said(herding(roots=roots))["mean latency"].refused_because


def test_every_line_says_something_or_why_not() -> None:
    for each in predict(herding()):
        assert bool(each.value) != bool(each.refused_because), each
        assert not each.value or each.assumes, each
