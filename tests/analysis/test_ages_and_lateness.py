import numpy as np
import pytest

from testbed.analysis.lateness import link_lateness, release_lateness_s, worst_link
from testbed.analysis.records import Window
from testbed.analysis.staleness import report_uses, staleness_s, transit_s
from tests.analysis.made_arms import (
    lateness_bins,
    made_lateness,
    made_observations,
    made_requests,
    made_scenario,
    steady,
)

SCENARIO = made_scenario()


def test_staleness_is_weighted_by_requests():
    ages = {"staleness_s": np.array([0.1] * 98 + [5.0] * 2 + [np.nan])}

    assert staleness_s(ages)["p50"] == pytest.approx(0.1)
    assert staleness_s(ages)["p99"] == pytest.approx(5.0)


def test_transit_is_what_the_link_took():
    requests = made_requests(SCENARIO, steady(0.4, 0.3, 0.3), rate_per_s=20.0)

    ages = transit_s(made_observations(SCENARIO, requests), requests, Window(5.0, 20.0))

    assert ages["p50"] == pytest.approx(0.5)
    assert np.isnan(transit_s({}, requests, Window(5.0, 20.0))["p50"])


def test_transit_is_weighted_by_the_requests_that_used_the_report():
    """Three requests go to us while its report of 0.1 s is the newest, one while that of 0.9 s is."""
    observations = {
        "root": np.array(["root.west"] * 3, object),
        "cell": np.array(["us", "us", "eu"], object),
        "measured_at_s": np.array([5.9, 6.1, 0.0]),
        "received_at_s": np.array([6.0, 7.0, 6.0]),
    }
    requests = {
        "root": np.array(["root.west"] * 4 + ["root.north"], object),
        "cell": np.array(["us"] * 5, object),
        "sent_at_s": np.array([6.1, 6.2, 6.3, 7.5, 6.1]),
    }

    assert report_uses(observations, requests).tolist() == [3.0, 1.0, 0.0]
    ages = transit_s(observations, requests, Window(5.0, 20.0))
    assert ages["mean"] == pytest.approx((3 * 0.1 + 0.9) / 4)
    assert ages["p50"] == pytest.approx(0.1)
    assert ages["p99"] == pytest.approx(0.9)


def test_the_worst_link_tells_the_lateness():
    """A percentile over all links together would hide the slowest."""
    table = made_lateness(SCENARIO, p99_s=0.0004)

    assert release_lateness_s(link_lateness(table)) == pytest.approx(
        {"p50": 8e-5, "p99": 4e-4, "link": "root.west -> us/leaf-1 (request)"}
    )


def test_a_link_of_few_messages_does_not_decide():
    table = made_lateness(SCENARIO)
    table["delivered"][0] = 99

    worst = worst_link(link_lateness(table))

    assert worst is not None
    assert worst.name == "us/leaf-1 -> root.west (reply)"


def test_links_that_carried_nothing_are_left_out():
    table = made_lateness(SCENARIO)
    table["delivered"][:] = 0

    assert link_lateness(table) == []
    assert np.isnan(release_lateness_s([])["p99"])


def test_a_percentile_is_not_above_the_largest():
    """Percentiles are ends of bins, up to 5 % too high."""
    table = made_lateness(SCENARIO)
    table["lateness_s_max"] = 0.97 * table["lateness_s_p99"]

    assert all(link.p99_s == link.max_s for link in link_lateness(table))


def test_a_sparse_link_is_not_judged_by_its_two_latest_messages():
    """Of 150 messages one or two exceed any p99 by chance; nine do not."""
    table = made_lateness(SCENARIO, p99_s=0.003)
    table["delivered"][:2] = 150
    table["lateness_bins"][0] = lateness_bins(0.0002, 0.003, late=2, messages=150)
    table["lateness_bins"][1] = lateness_bins(0.0002, 0.003, late=9, messages=150)

    chance, certain = link_lateness(table)[:2]

    assert chance.p99_low_s == pytest.approx(0.0002, rel=0.06)
    assert certain.p99_low_s == pytest.approx(0.003, rel=0.06)


def test_a_busy_link_is_judged_by_its_p99():
    table = made_lateness(SCENARIO)

    assert all(link.p99_low_s == pytest.approx(link.p99_s, rel=0.06) for link in link_lateness(table))
