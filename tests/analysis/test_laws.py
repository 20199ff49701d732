import numpy as np
import pytest

from testbed.analysis.laws import (
    all_laws,
    counter_conservation,
    in_flight_conservation,
    least_delays_s,
    little,
)
from testbed.scenario.topology import build_topology
from tests.analysis.made_arms import fail, made_requests, made_scenario, made_tables, steady

SCENARIO = made_scenario()
TOPOLOGY = build_topology(SCENARIO)
EVEN = steady(0.4, 0.3, 0.3)


def broken(tables):
    return [(law.name, law.place) for law in all_laws(SCENARIO, TOPOLOGY, tables, 22.0) if not law.holds]


def test_sound_records_break_no_law():
    tables = made_tables(SCENARIO, EVEN, rate_per_s=100.0)

    laws = all_laws(SCENARIO, TOPOLOGY, tables, 22.0)

    assert {law.name for law in laws} == {"conservation", "little", "causality"}
    assert [law for law in laws if not law.holds] == []


def test_requests_without_an_end_break_no_law():
    """Timed out and unfinished requests are still somewhere: Little counts them up to the end."""
    tables = made_tables(SCENARIO, EVEN, rate_per_s=100.0)
    fail(tables["requests"], np.arange(0, 50), "timed_out")

    assert broken(tables) == []
    law = next(law for law in little(tables["requests"], TOPOLOGY, 22.0) if law.place == "us")
    assert "0 still inside" not in law.detail


def test_a_leaf_that_counts_other_arrivals_is_found():
    tables = made_tables(SCENARIO, EVEN, rate_per_s=100.0)
    wrong = tables["observations"]["leaf"] == "eu/leaf-1"
    tables["observations"]["arrivals"] = tables["observations"]["arrivals"] + wrong

    assert broken(tables) == [("conservation", "eu/leaf-1")]


def test_counters_are_not_asked_of_a_run_with_retries():
    tables = made_tables(SCENARIO, EVEN, rate_per_s=20.0)
    tables["requests"]["attempts"][0] = 2

    assert counter_conservation(tables["requests"], tables["observations"], TOPOLOGY) == []


def test_a_completed_request_without_a_reply_is_found():
    tables = made_tables(SCENARIO, EVEN, rate_per_s=20.0)
    tables["requests"]["replied_at_s"][0] = np.nan

    assert broken(tables) == [("conservation", tables["requests"]["root"][0])]


def test_a_request_that_left_without_arriving_is_found():
    tables = made_tables(SCENARIO, EVEN, rate_per_s=20.0)
    tables["requests"]["at_server_s"][0] = np.nan

    assert broken(tables) == [("conservation", tables["requests"]["server"][0])]


def test_an_effect_before_its_cause_is_found():
    tables = made_tables(SCENARIO, EVEN, rate_per_s=20.0)
    tables["requests"]["started_at_s"][4] = tables["requests"]["at_server_s"][4] - 0.001

    laws = [law for law in all_laws(SCENARIO, TOPOLOGY, tables, 22.0) if not law.holds]

    assert [(law.name, law.place) for law in laws] == [("causality", "started_at_s after at_server_s")]
    assert laws[0].detail == "1 breaches, first by request 4: -0.001000000 s, at least 0.000000000 s is due"


def test_a_message_faster_than_its_link_is_found():
    tables = made_tables(SCENARIO, EVEN, rate_per_s=20.0)
    tables["requests"]["replied_at_s"][4] = tables["requests"]["left_leaf_s"][4] + 0.019

    assert broken(tables) == [("causality", "reply from leaf to root")]


def test_a_fault_that_shortens_a_link_lowers_its_least_delay():
    line = {
        "at": "10 s",
        "link": {"from": "cell.us", "to": "root.*", "path": "reply"},
        "set": {"delay": "5 ms"},
    }
    scenario = made_scenario(faults=[line])

    least = least_delays_s(scenario, build_topology(scenario))

    assert least[("us/leaf-1", "root.west", "reply")] == pytest.approx(0.005)
    assert least[("eu/leaf-1", "root.west", "reply")] == pytest.approx(0.020)


def test_a_root_has_in_flight_what_it_has_sent_and_has_no_reply_to():
    """A request that it never sent is nowhere; a timed out one stays, up to the end."""
    requests = made_requests(SCENARIO, EVEN, rate_per_s=20.0)
    west = np.flatnonzero(requests["root"] == "root.west")
    fail(requests, west[:3], "timed_out")
    requests["outcome"][west[3]], requests["leaf"][west[3]] = "no_target", ""
    requests["replied_at_s"][west[3]] = np.nan

    law = next(law for law in little(requests, TOPOLOGY, end_s=22.0) if law.place == "root.west")

    others = west[4:]
    sojourns_s = (requests["replied_at_s"] - requests["sent_at_s"])[others].sum()
    sojourns_s += (22.0 - requests["sent_at_s"][west[:3]]).sum()
    assert law.holds
    assert law.detail.endswith(f"sum of sojourns {sojourns_s:.9g} s, 3 still inside")


def test_area_is_the_sum_of_the_sojourns():
    requests = made_requests(SCENARIO, EVEN, rate_per_s=100.0)

    laws = little(requests, TOPOLOGY, end_s=22.0)

    assert [law.place for law in laws][:3] == ["us", "eu", "asia"]
    assert len(laws) == 3 + 3 + 9 + 3  # cells, leaves, servers, roots
    assert all(law.holds for law in laws)


@pytest.mark.parametrize(
    ("counted", "least", "still_open", "miscounted", "holds"),
    [
        (3, 1, 3, 0, True),
        (5, 2, 3, 2, True),
        (-1, -2, 3, -4, True),
        (3, 1, 2, 0, False),
        (2, 1, 3, 0, False),
        (3, -1, 3, 0, False),
    ],
)
def test_a_balancer_counts_what_is_open_there_and_what_faults_have_it_miscount(
    counted, least, still_open, miscounted, holds
):
    """Too many, too few, or below nought at one target and above it at another."""
    row = {"node": "us/leaf-1", "at_s": 9.0, "counted": counted, "least": least}
    counts = {
        name: np.array([value])
        for name, value in {**row, "open": still_open, "miscounted": miscounted}.items()
    }

    (law,) = in_flight_conservation(counts)

    assert (law.place, law.holds) == ("in flight of us/leaf-1", holds)
