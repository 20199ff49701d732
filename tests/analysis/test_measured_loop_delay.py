import numpy as np
import pytest

from testbed.analysis.loop_delay import (
    best_loop_delay_s,
    measured_loop_delays,
    overall_loop_delay_s,
    predicted_loop_delay_s,
)
from testbed.analysis.records import Window
from testbed.scenario.topology import build_topology
from tests.analysis.made_arms import made_scenario, made_tables, steady

WINDOW = Window(5.0, 20.0)
EVEN = steady(0.4, 0.3, 0.3)


@pytest.mark.parametrize(("policy", "updates"), [("greedy", False), ("flow", True)])
def test_travel_and_age_make_the_loop_delay(policy: str, updates: bool):
    """Travel 20 ms + observation delay 500 ms + half a report period: 570 ms, measured and predicted."""
    scenario = made_scenario(policy)
    tables = made_tables(scenario, EVEN, updates=updates)

    pairs = measured_loop_delays(scenario, tables, WINDOW)

    assert len(pairs) == 9
    assert overall_loop_delay_s(pairs) == pytest.approx(0.570, abs=0.002)
    assert predicted_loop_delay_s(scenario, build_topology(scenario)) == pytest.approx(0.570)


def test_the_age_at_updates_counts_where_probabilities_move():
    scenario = made_scenario()
    tables = made_tables(scenario, EVEN, updates=True)
    tables["requests"]["staleness_s"][:] = 9.0  # the age at requests does not matter to a policy that updates

    assert overall_loop_delay_s(measured_loop_delays(scenario, tables, WINDOW)) == pytest.approx(
        0.570, abs=0.002
    )


def test_without_observations_the_prediction_stands_in():
    scenario = made_scenario("even")
    tables = made_tables(scenario, EVEN)
    tables["requests"]["staleness_s"][:] = np.nan

    pairs = measured_loop_delays(scenario, tables, WINDOW)

    assert np.isnan(overall_loop_delay_s(pairs))
    assert best_loop_delay_s(scenario, build_topology(scenario), pairs) == pytest.approx(0.570)
