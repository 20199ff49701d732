"""Scenarios as fluids, and those that have none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from testbed.scenario.schema import Scenario
from testbed.scenario.topology import build_topology
from testbed.theory.fluid import solve
from testbed.theory.fluid_form import fluid_form
from testbed.theory.fluid_rule import BetterOfTwo, Gradient, Greedy, Logit, Static
from testbed.theory.operating_point import at_optimum, demand
from testbed.theory.path_delays import PathDelays
from tests.traffic.scenes import herding, scene


def under(policy: dict[str, Any], **changes: Any) -> Scenario:
    """Herding with all roots under one policy."""
    roots = {
        name: {"traffic": [{"class": "sand", "rate": "300 /s", "policy": "tried"}]}
        for name in ("west", "north")
    }
    return herding(roots=roots, policies={"tried": policy}, **changes)


@pytest.mark.parametrize(
    ("policy", "rule"),
    [
        ({"kind": "random"}, Static),
        ({"kind": "weighted"}, Static),
        ({"kind": "static_optimal"}, Static),
        ({"kind": "least_cost"}, Greedy),
        ({"kind": "least_cost", "cost": "latency"}, Greedy),
        ({"kind": "jsq"}, Greedy),
        ({"kind": "gmsr"}, Greedy),
        ({"kind": "worst"}, Greedy),
        ({"kind": "two_choices"}, BetterOfTwo),
        ({"kind": "logit", "temperature": "50 ms"}, Logit),
        ({"kind": "flow", "step": "0.1 /s^2"}, Gradient),
        ({"kind": "flow", "step": "0.1 /s^2", "update": "on_report"}, Gradient),
        ({"kind": "flow", "step": "0.1 /s^2", "explore": "5 %", "max_move": "2 %"}, Gradient),
        ({"kind": "flow", "step": "auto"}, Gradient),
        ({"kind": "dlb", "mode": "flow"}, Gradient),
        ({"kind": "jsq", "decision_time": "20 ms"}, Greedy),
    ],
)
def test_each_of_these_policies_has_a_fluid_that_keeps_its_requests(
    policy: dict[str, Any], rule: type
) -> None:
    form = fluid_form(under(policy))

    assert form.fluid is not None
    assert isinstance(form.fluid.streams[0].rule, rule)
    path = solve(form.fluid, 4.0, in_flight=np.zeros(3), primed=False, spacing_s=form.spacing_s)
    assert np.abs(path.shares.sum(axis=2) - 1.0).max() < 1e-12
    assert 20.0 < path.in_flight[-1].sum() < 1000.0


def test_a_cell_without_room_for_a_mean_request_has_a_finite_cost_in_the_fluid_too() -> None:
    cells = {
        "us": {"servers": 1, "profile": "bench", "kv_tokens": 10},
        "eu": {"servers": 2, "profile": "bench"},
    }
    form = fluid_form(under({"kind": "least_cost"}, cells=cells))

    assert form.fluid is not None
    path = solve(form.fluid, 4.0, in_flight=np.zeros(2), primed=False, spacing_s=form.spacing_s)
    assert np.isfinite(path.in_flight).all()


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"faults": [{"at": "1 s", "cell": "us", "set": {"speed": 0.5}}]}, "faults change"),
        ({"policies": {"tried": {"kind": "prequal"}}}, "tried (prequal) has no fluid form here"),
        ({"policies": {"tried": {"kind": "least_cost", "view": "own_counts"}}}, "its own counts"),
        ({"policies": {"tried": {"kind": "jsq", "count": "queued"}}}, "queued"),
        ({"policies": {"tried": {"kind": "dlb", "mode": "discrete"}}}, "places sand one by one"),
        ({"reports": {"every": "100 ms", "send": "when_polled"}}, "us does not report by the clock"),
        (
            {
                "classes": {"sand": {"output_tokens": 90}},
                "policies": {"tried": {"kind": "flow", "step": "0.1 /s^2"}},
            },
            "memory",
        ),
    ],
)
def test_what_the_fluid_does_not_have_is_refused_with_a_reason(changes: dict[str, Any], why: str) -> None:
    scenario = under({"kind": "random"}).model_dump(mode="json", exclude_none=True, by_alias=True) | changes

    form = fluid_form(Scenario.model_validate(scenario))

    assert form.fluid is None
    assert why in form.refused_because


def test_changing_rates_are_refused() -> None:
    line = {
        "class": "sand",
        "policy": "even",
        "stages": [{"at": "0 s", "rate": "90 /s"}, {"at": "5 s", "rate": "9 /s"}],
    }

    assert "rates change" in fluid_form(herding(roots={"west": {"traffic": [line]}})).refused_because


def test_an_auto_step_is_the_one_that_check_predicts_within_its_bounds() -> None:
    free = fluid_form(under({"kind": "flow", "step": "auto"})).fluid
    bound = fluid_form(under({"kind": "flow", "step": "auto", "step_ceiling": "0.001 /s^2"})).fluid

    assert free is not None
    assert bound is not None
    assert isinstance(free.streams[0].rule, Gradient)
    assert isinstance(bound.streams[0].rule, Gradient)
    assert free.streams[0].rule.steps.min() > 0.001
    assert bound.streams[0].rule.steps.tolist() == [0.001, 0.001]


def test_a_decision_that_takes_time_delays_the_requests() -> None:
    quick, slow = (
        fluid_form(under({"kind": "jsq", "decision_time": each})).fluid for each in ("0 s", "30 ms")
    )

    assert quick is not None
    assert slow is not None
    assert slow.travel_s == pytest.approx(quick.travel_s + 0.030)


def test_moves_keep_to_the_floor_and_to_the_largest_size_of_an_update() -> None:
    """Two updates of 100 ms in five points of the grid: in each step of it nothing moves, or at most 10 %."""
    policy = {"kind": "flow", "step": "500 /s^2", "explore": "5 %", "max_move": "10 %"}
    form = fluid_form(under(policy))
    assert form.fluid is not None

    path = solve(form.fluid, 10.0, in_flight=form.in_flight, primed=False, spacing_s=0.04)

    sizes = 0.5 * np.abs(np.diff(path.shares, axis=0)).sum(axis=2)
    assert sizes.max() == pytest.approx(0.10)
    assert path.shares.min() == pytest.approx(0.05, abs=1e-12)


CALM = """
cells:
  a: {servers: 1, service: {rate_curve: {capacity: 50 /s, half: 20.0}}}
  b: {servers: 2, service: {rate_curve: {capacity: 30 /s, half: 10.0}}}
roots:
  west: {traffic: [{class: sand, policy: flow, rate: 40 /s}]}
  east: {traffic: [{class: sand, policy: flow, rate: 25 /s}]}
reports: {every: 50 ms}
policies: {flow: {kind: flow, step: 0.02 /s^2, interval: 50 ms}}
links:
  - {from: root.*, to: cell.*, path: request, delay: 30 ms}
  - {from: cell.b, to: root.west, path: reply, delay: 500 ms}
  - {from: cell.*, to: root.*, path: observation, delay: 150 ms}
"""


def test_flow_at_a_small_step_comes_to_the_optimum() -> None:
    """The rest point of the fluid is the solution of the convex program: two ways to the same N."""
    scenario = scene(CALM)
    form = fluid_form(scenario)
    assert form.fluid is not None

    path = solve(form.fluid, 400.0, in_flight=form.in_flight, primed=False, spacing_s=0.0125)

    optimum = at_optimum(demand(scenario, PathDelays(build_topology(scenario))))
    assert path.in_flight[-1] == pytest.approx([cell.in_flight for cell in optimum.cells], rel=2e-3)


def test_the_grid_resolves_delays_reports_and_updates() -> None:
    form = fluid_form(scene(CALM))

    assert form.spacing_s == pytest.approx(0.05 / 8)
