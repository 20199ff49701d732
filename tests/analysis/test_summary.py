import json
import math

import numpy as np
import pytest

from testbed.analysis.summary import plain, summarize_arm, summarize_run
from testbed.scenario.expectation import parse_expectation
from tests.analysis.made_arms import (
    fail,
    made_outcome,
    made_scenario,
    made_tables,
    steady,
    swinging,
)


@pytest.fixture(scope="module")
def flow():
    scenario = made_scenario("flow")
    return summarize_arm(
        scenario, made_tables(scenario, steady(0.44, 0.34, 0.22), updates=True), made_outcome()
    )


@pytest.fixture(scope="module")
def greedy():
    scenario = made_scenario("greedy")
    return summarize_arm(scenario, made_tables(scenario, swinging(0.8, 1.8)), made_outcome())


@pytest.fixture(scope="module")
def static():
    scenario = made_scenario("static")
    return summarize_arm(scenario, made_tables(scenario, steady(0.44, 0.34, 0.22)), made_outcome())


def test_an_arm_has_every_key_that_readers_rely_on(flow):
    assert {"planned", "completed", "failed", "timed_out", "lost", "unfinished"} <= set(flow["requests"])
    for waits in ("sojourn_s", "first_token_s"):
        assert {"mean", "p50", "p90", "p95", "p99", "count"} <= set(flow[waits])
        assert {"mean", "p50", "p90", "p95", "p99", "count"} <= set(flow["classes"]["sand"][waits])
    assert {"amplitude", "period_s", "significant", "coherence"} <= set(flow["oscillation"])
    assert {"p50", "p99"} <= set(flow["staleness_s"])
    assert {"p50", "p99", "link"} <= set(flow["release_lateness_s"])
    assert {"share", "in_flight_mean", "in_flight_sd", "requests", "utilisation"} <= set(flow["cells"]["us"])
    assert {"servers", "top_share_per_period"} <= set(flow["cells"]["us"])
    assert {"step", "interval_s", "product", "loop_delay_s", "loop_delay_predicted_s"} <= set(flow["policy"])
    assert {"violations", "forbidden_probability_max"} == set(flow["constraints"])
    assert {"shares_settled_s", "sojourn_settled_s"} <= set(flow["settled"])
    assert (flow["engine"], flow["dating"], flow["seed"]) == ("live", "actual", 1)


def test_an_arm_says_what_it_was_made_of(flow):
    assert flow["verdict"] == "valid"
    assert flow["verdict_reasons"] == []
    assert flow["cells"]["us"]["share"] == pytest.approx(0.44, abs=0.02)
    assert flow["cells"]["us"]["in_flight_mean"] == pytest.approx(900 * 0.44 * 0.11, rel=0.05)
    assert flow["cells"]["us"]["utilisation"] == pytest.approx(0.5)
    assert flow["sojourn_s"]["mean"] == pytest.approx(0.04 + 0.01 + 0.1, rel=0.05)
    assert flow["staleness_s"]["p50"] == pytest.approx(0.55, abs=0.01)
    assert flow["policy"]["product"] == pytest.approx(0.12 * 0.1)
    assert flow["policy"]["loop_delay_s"] == pytest.approx(0.57, abs=0.01)
    assert flow["policy"]["classes"]["sand"]["loop_delay_s"] == pytest.approx(0.57, abs=0.01)
    assert flow["windows"] == {}
    assert flow["settled"]["shares_settled_s"] is None


def test_a_herd_is_told_from_noise(flow, greedy):
    """A swing of shares of 0.8 with a period of 18 sojourns passes to the requests in flight nearly whole."""
    assert greedy["oscillation"]["significant"]
    assert greedy["oscillation"]["period_s"] == pytest.approx(1.8, rel=0.03)
    assert greedy["oscillation"]["amplitude"] == pytest.approx(0.8, rel=0.12)
    assert not flow["oscillation"]["significant"]
    assert flow["oscillation"]["period_s"] is None
    assert flow["oscillation"]["amplitude"] < 0.25


def test_a_policy_without_a_step_has_none(greedy):
    assert greedy["policy"]["kind"] == "least_cost"
    assert greedy["policy"]["step"] is None
    assert greedy["policy"]["product"] is None
    assert greedy["policy"]["loop_delay_s"] == pytest.approx(0.57, abs=0.01)


def test_only_requests_planned_after_the_warm_up_count():
    scenario = made_scenario("greedy")
    tables = made_tables(scenario, steady(0.4, 0.3, 0.3), rate_per_s=100.0)
    early = tables["requests"]["planned_at_s"] < 5.0
    fail(tables["requests"], np.flatnonzero(early), "timed_out")

    summary = summarize_arm(scenario, tables, made_outcome())

    assert summary["requests"]["timed_out"] == early.sum()
    assert summary["sojourn_s"]["censored"] == 0
    assert summary["sojourn_s"]["count"] == (~early).sum()


def test_virtual_runs_have_no_lateness():
    scenario = made_scenario("greedy")
    tables = made_tables(scenario, steady(0.4, 0.3, 0.3), rate_per_s=50.0)

    assert summarize_arm(scenario, tables, made_outcome(engine="virtual"))["release_lateness_s"] == {
        "p50": None,
        "p99": None,
        "link": "",
    }


def test_a_fault_splits_the_run_into_windows():
    """The swing ends at the fault: the window before it is wild, the last one calm."""
    scenario = made_scenario("greedy", faults=[{"at": "12 s", "cell": "eu", "set": {"speed": 0.4}}])
    herd = swinging(0.8, 1.4)

    def shares(at_s):
        return np.where(at_s[:, np.newaxis] < 12.0, herd(at_s), 1 / 3)

    summary = summarize_arm(scenario, made_tables(scenario, shares), made_outcome())

    before, last = summary["windows"]["before"], summary["windows"]["last"]
    assert (before["from_s"], before["to_s"]) == (5.0, 12.0)
    assert (last["from_s"], last["to_s"]) == (pytest.approx(15.2), 20.0)
    assert before["oscillation"]["amplitude"] > 3 * last["oscillation"]["amplitude"]
    assert summary["settled"]["change_at_s"] == 12.0
    assert summary["settled"]["sojourn_settled_s"] is not None


def test_windows_that_a_scenario_names_stand_beside_those_of_its_changes_or_in_their_place():
    """An arm without a fault can so be held against one with it, over the same seconds."""
    windows = {"early": {"from": "6 s", "to": "9 s"}, "last": {"from": "18 s", "to": "20 s"}}
    fault = {"at": "12 s", "cell": "eu", "set": {"speed": 0.4}}
    herd = swinging(0.8, 1.4)

    def shares(at_s):
        return np.where(at_s[:, np.newaxis] < 12.0, herd(at_s), 1 / 3)

    harmed, unharmed = (
        summarize_arm(scenario, made_tables(scenario, shares), made_outcome())["windows"]
        for scenario in (made_scenario("greedy", faults=faults, windows=windows) for faults in ([fault], []))
    )

    assert sorted(harmed) == ["before", "early", "last"]
    assert sorted(unharmed) == ["early", "last"]
    assert (harmed["early"]["from_s"], harmed["early"]["to_s"]) == (6.0, 9.0)
    assert (harmed["last"]["from_s"], harmed["last"]["to_s"]) == (18.0, 20.0)
    assert unharmed["early"]["oscillation"]["amplitude"] > 3 * unharmed["last"]["oscillation"]["amplitude"]
    assert unharmed["early"]["oscillation"] == harmed["early"]["oscillation"]


def test_a_run_cut_short_has_what_there_is_of_its_windows():
    windows = {"early": {"from": "6 s", "to": "15 s"}, "late": {"from": "15 s", "to": "20 s"}}
    scenario = made_scenario("greedy", windows=windows)
    tables = made_tables(scenario, steady(0.4, 0.3, 0.3), rate_per_s=50.0)
    outcome = made_outcome().__class__("live", "actual", 10.0, False, interrupted=True)

    found = summarize_arm(scenario, tables, outcome)["windows"]

    assert list(found) == ["early"]
    assert (found["early"]["from_s"], found["early"]["to_s"]) == (6.0, 10.0)


def test_a_run_cut_short_in_its_warm_up_is_summarised_all_the_same():
    scenario = made_scenario("greedy")
    tables = made_tables(scenario, steady(0.4, 0.3, 0.3), rate_per_s=50.0)
    outcome = made_outcome().__class__("live", "actual", 3.0, False, interrupted=True)

    summary = summarize_arm(scenario, tables, outcome)

    assert summary["verdict"] == "incomplete"
    assert summary["oscillation"]["amplitude"] is None
    json.dumps(summary, allow_nan=False)


def test_a_run_without_any_request_is_summarised_all_the_same():
    scenario = made_scenario("greedy")
    tables = made_tables(scenario, steady(0.4, 0.3, 0.3), rate_per_s=1e-9)

    summary = summarize_arm(scenario, tables, made_outcome())

    assert summary["requests"]["planned"] == 0
    assert summary["sojourn_s"]["p99"] is None
    assert summary["verdict"] == "valid"
    json.dumps(summary, allow_nan=False)


def test_the_summary_is_plain_json(flow, greedy):
    text = json.dumps(summarize_run("herding", {"flow": flow, "greedy": greedy}), allow_nan=False)

    assert json.loads(text)["schema_version"] == 2


def test_the_excess_is_what_the_noise_of_a_static_split_leaves(flow, greedy, static):
    run = summarize_run("herding", {"greedy": greedy, "static": static})

    noise = static["oscillation"]["amplitude"]
    swing = run["arms"]["greedy"]["oscillation"]
    assert swing["amplitude_noise"] == noise
    assert swing["excess"] == pytest.approx(math.sqrt(swing["amplitude"] ** 2 - noise**2))
    assert run["arms"]["static"]["oscillation"]["excess"] == 0.0
    alone = summarize_run("herding", {"flow": flow})
    assert alone["arms"]["flow"]["oscillation"]["amplitude_noise"] is None


def test_expectations_are_held_against_the_summary(flow, greedy):
    lines = [
        parse_expectation("greedy", "oscillation.amplitude > 3 * flow.oscillation.amplitude"),
        parse_expectation("flow", "cells.us.share > 0.9"),
        parse_expectation("flow", "oscillation.period_s > 1 s"),
    ]

    met, unmet, unknown = summarize_run("herding", {"flow": flow, "greedy": greedy}, lines)["expectations"]

    assert met["met"]
    assert met["text"] == "greedy: oscillation.amplitude > 3 * flow.oscillation.amplitude"
    assert not unmet["met"]
    assert unmet["limit"] == 0.9
    assert not unknown["met"]
    assert unknown["said"] == "no value against 1"


def test_numbers_that_are_none_are_null():
    assert plain({"a": np.float64("nan"), "b": [np.int64(3), float("inf")], "c": {"d": np.bool_(True)}}) == {
        "a": None,
        "b": [3, None],
        "c": {"d": True},
    }
