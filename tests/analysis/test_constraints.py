import numpy as np

from testbed.analysis.constraints import audit
from tests.analysis.made_arms import ROOTS, made_requests, made_scenario, made_updates, steady

FORBIDS_ASIA = {
    "roots": {
        root: {"traffic": [{"class": "sand", "rate": "300 /s", "policy": "flow"}], "allowed": ["us", "eu"]}
        for root in ROOTS
    }
}


def test_nothing_is_forbidden_by_default():
    scenario = made_scenario()
    shares = steady(0.4, 0.3, 0.3)
    tables = {
        "requests": made_requests(scenario, shares, rate_per_s=50.0),
        "updates": made_updates(scenario, shares),
    }

    assert audit(scenario, tables) == {"violations": 0, "forbidden_probability_max": 0.0}


def test_requests_and_probabilities_where_they_may_not_be_are_counted():
    scenario = made_scenario(**FORBIDS_ASIA)
    tables = {
        "requests": made_requests(scenario, steady(0.5, 0.5, 0.0), rate_per_s=50.0),
        "updates": made_updates(scenario, steady(0.5, 0.5, 0.0)),
    }
    tables["requests"]["cell"][:2] = "asia"
    asia = np.flatnonzero(tables["updates"]["cell"] == "asia")
    tables["updates"]["probability"][asia[0]] = 0.25

    assert audit(scenario, tables) == {"violations": 3, "forbidden_probability_max": 0.25}


def test_a_line_of_traffic_may_be_narrower_than_its_root():
    traffic = {"class": "sand", "rate": "300 /s", "policy": "flow", "allowed": ["us"]}
    scenario = made_scenario(roots={"west": {"traffic": [traffic], "allowed": ["us", "eu"]}})
    requests = made_requests(scenario, steady(0.5, 0.5, 0.0), rate_per_s=50.0)

    found = audit(scenario, {"requests": requests})

    assert found["violations"] == (requests["cell"] == "eu").sum()


def test_a_request_without_a_target_breaks_nothing():
    scenario = made_scenario(**FORBIDS_ASIA)
    requests = made_requests(scenario, steady(0.5, 0.5, 0.0), rate_per_s=50.0)
    requests["cell"][:5] = ""
    requests["outcome"][:5] = "no_target"

    assert audit(scenario, {"requests": requests})["violations"] == 0
