import numpy as np
import pytest

from testbed.analysis.sojourn import (
    first_tokens,
    goodput_per_s,
    outcome_counts,
    percentiles,
    sojourns,
    split_s,
    token_gaps_s,
)
from testbed.scenario.schema import Slo
from tests.analysis.made_arms import fail, made_requests, made_scenario, steady

SCENARIO = made_scenario()


def requests_of_one_second():
    return made_requests(SCENARIO, steady(0.4, 0.3, 0.3), rate_per_s=50.0)


def test_a_sojourn_counts_from_the_plan_not_from_the_sending():
    requests = requests_of_one_second()
    requests["sent_at_s"] = requests["sent_at_s"] + 1e-3

    waits = sojourns(requests, SCENARIO, end_s=22.0)

    assert waits.seconds == pytest.approx(requests["replied_at_s"] - requests["planned_at_s"])
    assert not waits.censored.any()


def test_a_first_token_reaches_the_client_with_the_delay_of_its_reply():
    requests = requests_of_one_second()

    waits = first_tokens(requests, SCENARIO, end_s=22.0)

    assert waits.seconds == pytest.approx(requests["first_token_at_s"] + 0.02 - requests["planned_at_s"])


@pytest.mark.parametrize("outcome", ["timed_out", "shed", "lost", "no_target", "unfinished"])
def test_a_request_without_service_counts_with_its_timeout(outcome: str):
    """Nothing improves by not answering: the bound stays in the mean and in every percentile."""
    requests = requests_of_one_second()
    early = np.flatnonzero(requests["planned_at_s"] < 10.0)[:5]
    fail(requests, early, outcome)

    figures = percentiles(sojourns(requests, SCENARIO, end_s=22.0))

    assert sojourns(requests, SCENARIO, 22.0).seconds[early].tolist() == [10.0] * 5
    assert first_tokens(requests, SCENARIO, 22.0).seconds[early].tolist() == [10.0] * 5
    assert figures["censored"] == 5
    assert figures["count"] == len(requests["request_id"])


def test_a_request_still_open_at_the_end_counts_with_the_time_until_then():
    requests = requests_of_one_second()
    last = len(requests["planned_at_s"]) - 1
    fail(requests, np.array([last]), "unfinished")

    waited = sojourns(requests, SCENARIO, end_s=22.0).seconds[last]

    assert waited == pytest.approx(22.0 - requests["planned_at_s"][last])


def test_a_late_reply_does_not_shorten_or_lengthen_the_wait():
    requests = requests_of_one_second()
    requests["outcome"][3] = "timed_out"
    requests["replied_at_s"][3] = requests["planned_at_s"][3] + 11.0
    requests["late"][3] = True

    waits = sojourns(requests, SCENARIO, end_s=40.0)

    assert waits.seconds[3] == 10.0
    assert outcome_counts(requests)["late"] == 1


def test_outcomes_add_up_to_the_planned():
    requests = requests_of_one_second()
    fail(requests, np.arange(7), "timed_out")
    fail(requests, np.arange(7, 10), "unfinished")

    counts = outcome_counts(requests)

    assert counts["planned"] == len(requests["request_id"])
    assert counts["completed"] == counts["planned"] - 10
    assert counts["timed_out"] == 7
    assert counts["unfinished"] == 3
    assert counts["failed"] == counts["shed"] == counts["no_target"] == counts["lost"] == 0


def test_the_parts_of_the_sojourn_add_up_to_its_mean():
    requests = requests_of_one_second()

    parts = split_s(requests)

    assert sum(parts.values()) == pytest.approx(percentiles(sojourns(requests, SCENARIO, 22.0))["mean"])
    assert parts["request_travel"] == pytest.approx(0.02)
    assert parts["reply_travel"] == pytest.approx(0.02)


def test_gaps_between_tokens_are_one_fewer_than_the_tokens():
    requests = requests_of_one_second()
    requests["output_tokens"][0] = 1

    gaps = token_gaps_s(requests)

    assert gaps[1] == pytest.approx((requests["finished_at_s"][1] - requests["first_token_at_s"][1]) / 7)


def test_goodput_counts_the_replies_within_both_limits():
    requests = requests_of_one_second()
    count = len(requests["request_id"])

    all_good = goodput_per_s(requests, SCENARIO, Slo(first_token="10 s", token_gap="10 s"), 20.0, 22.0)
    none_good = goodput_per_s(requests, SCENARIO, Slo(first_token="1 ms", token_gap="10 s"), 20.0, 22.0)

    assert all_good == pytest.approx(count / 20.0)
    assert none_good == 0.0


def test_no_requests_have_no_percentiles():
    requests = {name: column[:0] for name, column in requests_of_one_second().items()}

    figures = percentiles(sojourns(requests, SCENARIO, 22.0))

    assert figures["count"] == 0
    assert np.isnan(figures["p99"])
