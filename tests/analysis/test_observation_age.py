"""The age of observations over time, against the saw-tooth of periodic reports."""

from __future__ import annotations

import numpy as np
import pytest

from testbed.analysis.host import HostSeries
from testbed.analysis.observation_age import age_findings, observation_ages, worst_age
from testbed.analysis.reason import Places
from testbed.analysis.records import Table, Window
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import build_topology
from tests.analysis.made_arms import made_scenario

WINDOW = Window(5.0, 200.0)
HOST = HostSeries({}, 1.0)
PLACES = Places(made_scenario(), build_topology(made_scenario()))


def reports(every_s: float, delay_s: float, loss: float = 0.0) -> Table:
    """Of one leaf at one root."""
    measured = np.arange(every_s, 200.0, every_s)
    kept = np.random.default_rng(1).uniform(size=len(measured)) >= loss
    measured = measured[kept]
    return {
        "root": np.array(["root.west"] * len(measured), object),
        "leaf": np.array(["us/leaf-1"] * len(measured), object),
        "measured_at_s": measured,
        "received_at_s": measured + delay_s,
    }


def scenario_with(loss: str = "0 %", jitter: str | None = None) -> Scenario:
    line = {"from": "cell.*", "to": "root.*", "path": "observation", "delay": "500 ms", "loss": loss}
    return made_scenario(links=[line if jitter is None else {**line, "jitter": {"normal": jitter}}])


@pytest.mark.parametrize("loss", [0.0, 0.1])
def test_the_mean_age_is_the_delay_and_half_a_period_longer_where_reports_are_lost(loss: float) -> None:
    scenario = scenario_with(f"{100 * loss:g} %")

    (age,) = observation_ages(scenario, build_topology(scenario), reports(0.1, 0.5, loss), WINDOW)

    assert age.expected_s == pytest.approx(0.5 + 0.05 * (1 + loss) / (1 - loss))
    assert age.mean_s == pytest.approx(age.expected_s, rel=0.01)
    assert list(age_findings([age], HOST, 0.002, WINDOW, PLACES)) == []


def test_reports_that_are_skipped_make_a_run_suspect() -> None:
    """They are to come every 100 ms, and come every 400 ms."""
    scenario = scenario_with()

    ages = observation_ages(scenario, build_topology(scenario), reports(0.4, 0.5), WINDOW)
    (finding,) = age_findings(ages, HOST, 0.002, WINDOW, PLACES)

    assert (finding.word, finding.check) == ("suspect", "observation age")
    assert (
        "mean 700 ms of us/leaf-1 at root.west, where its period and link lead to 550 ms, from "
        in finding.reason
    )


def test_reports_that_overtake_each_other_follow_no_saw_tooth() -> None:
    scenario = scenario_with(jitter="100 ms")

    assert observation_ages(scenario, build_topology(scenario), reports(0.1, 0.5), WINDOW) == []
    assert worst_age([]) is None
