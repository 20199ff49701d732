"""The null run: the same requests through the same processes, and nothing that takes time or hangs on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from testbed.fitness.footprint import footprint
from testbed.fitness.null_run import null_file, null_scenario
from testbed.scenario.load import ScenarioFile, dump_scenario, scenario_from_text
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import build_topology
from testbed.traffic.plan import build_plan
from tests.analysis.made_arms import made_scenario
from tests.laws.virtual_run import run_one


def root_with(**traffic: Any) -> dict[str, Any]:
    return {"west": {"traffic": [{"class": "sand", "policy": "greedy", **traffic}]}}


def laden() -> Scenario:
    """All that a null run leaves out."""
    fault = {"at": "5 s", "for": "5 s", "cell": "us", "set": {"speed": 0.2}}
    retries = {"attempts": 2}
    return made_scenario(
        duration="6 s",
        faults=[fault],
        classes={"sand": {"timeout": "80 ms", "retries": retries, "cancel": True}},
        reports={"every": "50 ms", "send": "on_change", "threshold": 3},
    )


@pytest.mark.parametrize(
    "traffic",
    [
        {"rate": "300 /s"},
        {"load": 0.4},
        {"stages": [{"at": "0 s", "load": 0.2}, {"at": "3 s", "load": 0.6}, {"at": "5 s", "rate": "7 /s"}]},
        {"rate": "200 /s", "arrivals": {"gamma": {"cv": 2.0}}},
    ],
)
def test_every_request_is_planned_as_in_the_scenario(traffic: dict[str, Any]) -> None:
    scenario = made_scenario(duration="6 s", roots=root_with(**traffic))
    null = null_scenario(scenario)

    ours, theirs = build_plan(scenario), build_plan(null)

    assert theirs.requests > 100
    assert np.array_equal(ours.at_s, theirs.at_s)
    assert np.array_equal(ours.output_tokens, theirs.output_tokens)


def test_the_processes_and_their_messages_are_those_of_the_scenario() -> None:
    scenario = made_scenario(processes={"cells": 2})

    ours, theirs = footprint(scenario), footprint(null_scenario(scenario))

    assert theirs.processes == ours.processes
    assert theirs.reports_per_s == ours.reports_per_s
    assert dict(theirs.messages_per_s)["root.west"] == pytest.approx(dict(ours.messages_per_s)["root.west"])


def test_what_takes_time_or_goes_wrong_is_left_out() -> None:
    null = null_scenario(laden())

    assert {link.effect.delay_s for link in build_topology(null).links} == {0.0}
    assert (null.links, null.faults) == ((), ())
    assert {policy.kind for policy in null.policies.values()} == {"weighted"}
    assert null.classes["sand"].retries is None
    assert (null.reports.send, null.reports.every) == ("periodic", 0.05)


def test_a_null_run_is_a_scenario_like_any_other() -> None:
    null = null_scenario(laden())

    assert scenario_from_text(dump_scenario(null)).arms["main"] == null
    assert null_scenario(null).roots["west"].traffic[0].rate == null.roots["west"].traffic[0].rate


def test_requests_go_by_capacity_whatever_the_clock_does_and_wait_nowhere(tmp_path: Path) -> None:
    null = null_scenario(laden())
    fast, slow = (
        run_one(tmp_path / f"at-{scale}", null.model_copy(update={"time_scale": scale}))
        for scale in (1.0, 4.0)
    )

    requests = fast.tables["requests"]
    assert np.array_equal(requests["cell"], slow.tables["requests"]["cell"])
    assert np.array_equal(requests["server"], slow.tables["requests"]["server"])
    assert requests["replied_at_s"] - requests["planned_at_s"] == pytest.approx(1e-6, abs=1e-9)
    shares = [float((requests["cell"] == cell).mean()) for cell in ("us", "eu", "asia")]
    assert shares == pytest.approx([4 / 9, 3 / 9, 2 / 9], abs=0.03)


def test_arms_that_differ_in_a_policy_alone_have_one_null_run() -> None:
    arms = {"greedy": made_scenario("greedy"), "even": made_scenario("even")}
    other = {"halved": made_scenario("even", roots=root_with(rate="150 /s"))}

    alike = null_file(ScenarioFile(Path("x.yaml"), "x", "", arms, ()))
    unlike = null_file(ScenarioFile(Path("x.yaml"), "x", "", arms | other, ()))

    assert (alike.name, list(alike.arms)) == ("x-null", ["null"])
    assert list(unlike.arms) == ["null-greedy", "null-halved"]
