"""Steps as multiples of the critical one, predicted `auto` steps, and what `dlb` is expected to decide."""

from __future__ import annotations

from typing import Any

import pytest

from testbed.errors import UsageError
from testbed.scenario.policy_words import FlowPolicy
from testbed.scenario.quantity import Step
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import build_topology
from testbed.theory.feedback import feedbacks
from testbed.theory.line_step import line_decision, line_steps, with_steps
from testbed.theory.operating_point import at_optimum, demand
from testbed.theory.path_delays import PathDelays
from tests.traffic.scenes import herding


def flow(step: Any, **words: Any) -> dict[str, Any]:
    return {"flow": {"kind": "flow", "step": step, **words}}


def fraction_of(scenario: Scenario) -> float:
    delays = PathDelays(build_topology(scenario))
    wanted = demand(scenario, delays)
    (loop,) = feedbacks(scenario, delays, wanted, at_optimum(wanted))
    assert loop.flow is not None
    return loop.flow.fraction


def step_of(scenario: Scenario) -> float:
    policy = scenario.policies["flow"]
    assert isinstance(policy, FlowPolicy)
    assert isinstance(policy.step, Step)
    return policy.step.value


def test_a_multiple_of_the_critical_step_at_the_load_of_the_scenario_is_that_multiple() -> None:
    """Herding offers 0.5 of its capacity: there the step is 0.09 of the critical one."""
    scenario = herding()
    delays = PathDelays(build_topology(scenario))
    optimum = at_optimum(demand(scenario, delays))
    load = sum(cell.rate_per_s for cell in optimum.cells) / sum(cell.capacity_per_s for cell in optimum.cells)

    known = fraction_of(scenario)

    resolved = with_steps(herding(policies=flow({"critical": known, "load": load})))

    assert step_of(resolved) == pytest.approx(0.12, rel=1e-3)
    assert fraction_of(resolved) == pytest.approx(known, rel=1e-3)
    assert with_steps(resolved) is resolved


def test_at_a_higher_load_the_same_multiple_is_a_smaller_step() -> None:
    steps = [
        step_of(with_steps(herding(policies=flow({"critical": 0.1, "load": load}))))
        for load in (0.5, 0.7, 0.9)
    ]

    assert steps[0] > 3 * steps[1]
    assert steps[1] > 8 * steps[2]


def test_a_step_in_the_unit_of_a_cost_in_requests() -> None:
    resolved = with_steps(herding(policies=flow({"critical": 0.1, "load": 0.5}, cost="in_flight")))

    policy = resolved.policies["flow"]
    assert isinstance(policy, FlowPolicy)
    assert isinstance(policy.step, Step)
    assert policy.step.unit == "/s"


def test_where_nothing_can_oscillate_there_is_no_critical_step() -> None:
    roots = {"west": {"traffic": [{"class": "sand", "rate": "90 /s", "policy": "flow"}], "allowed": ["us"]}}

    with pytest.raises(UsageError, match=r"policies\.flow\.step: nothing oscillates at load 0\.2"):
        with_steps(herding(roots=roots, policies=flow({"critical": 0.1, "load": 0.2})))


def test_a_load_that_some_cell_cannot_carry_is_refused() -> None:
    """Two roots with one cell each: at 0.9 of all capacity the small one is asked for more than it has."""
    line = {"class": "sand", "rate": "300 /s", "policy": "flow"}
    roots = {
        "west": {"traffic": [line], "allowed": ["us"]},
        "north": {"traffic": [line], "allowed": ["asia"]},
        "south": {"traffic": [line]},
    }

    with pytest.raises(UsageError, match=r"policies\.flow\.step\.load: at 0\.9 a cell is asked for more"):
        with_steps(herding(roots=roots, policies=flow({"critical": 0.1, "load": 0.9})))


def test_an_auto_step_is_predicted_within_its_bounds() -> None:
    """About a tenth of the critical step or less; never outside floor and ceiling."""
    assert 0.02 < fraction_of(herding(policies=flow("auto"))) <= 0.105
    high = herding(policies=flow("auto", step_floor="0.5 /s^2"))
    assert fraction_of(high) == pytest.approx(0.5 / 0.12 * fraction_of(herding()), rel=1e-6)


def test_dlb_is_expected_to_place_boulders_one_by_one_and_to_let_sand_flow() -> None:
    traffic = [
        {"class": "sand", "rate": "300 /s", "policy": "flow"},
        {"class": "boulder", "rate": "0.5 /s", "policy": "flow"},
    ]
    scenario = herding(
        policies={"flow": {"kind": "dlb"}},
        roots={name: {"traffic": traffic} for name in ("west", "north")},
        classes={
            "sand": {"prompt_tokens": 48, "output_tokens": {"geometric": {"mean": 8}}},
            "boulder": {"prompt_tokens": 8000, "output_tokens": {"geometric": {"mean": 50}}},
        },
    )
    delays = PathDelays(build_topology(scenario))
    wanted = demand(scenario, delays)
    optimum = at_optimum(wanted)

    sand, boulder = (line_decision(scenario, delays, wanted, optimum, i) for i in (0, 1))

    assert sand is not None
    assert boulder is not None
    assert (sand.is_discrete, boulder.is_discrete) == (False, True)
    assert sand.decisions == pytest.approx(600 * 0.571, rel=1e-3)
    steps = line_steps(scenario, delays, wanted, optimum)
    assert steps[1] is None
    assert steps[0] is not None
    assert steps[0] > 0.0
