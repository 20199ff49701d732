"""Runs with thousands of links of a few messages each: no link can be judged alone, and yet all may be late."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from testbed.analysis.hops import Hop, recorded_hops
from testbed.analysis.pools import Pools, judged_hops, judged_links
from testbed.analysis.records import Table
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import Topology, build_topology
from tests.analysis.made_arms import lateness_bins, made_outcome, made_scenario, made_tables, steady
from tests.analysis.test_verdict import verdict

SHARED = {"roots": 1, "named": {"two": ["us/*", "eu/*"]}}
EACH = 24  # messages of a link: enough of a pool, far too few of a link


def sparse(**words: Any) -> tuple[Scenario, Topology]:
    scenario = made_scenario(processes=SHARED, **words)
    return scenario, build_topology(scenario)


def sparse_lateness(topology: Topology, late_s: float = 0.0003, of: str = "") -> Table:
    """A row for every link, with few messages; those to nodes whose name begins so are late."""
    links = topology.links
    lateness_s = [late_s if link.target.startswith(of or "nobody") else 0.0003 for link in links]
    return {
        **{
            key: np.array([getattr(link, key) for link in links], object)
            for key in ("source", "target", "path")
        },
        "delivered": np.full(len(links), EACH),
        "lateness_s_p50": np.array(lateness_s),
        "lateness_s_p99": np.array(lateness_s),
        "lateness_s_max": np.array(lateness_s),
        "lateness_bins": np.array([lateness_bins(each, each, 1, EACH) for each in lateness_s]),
    }


def test_links_of_few_messages_are_judged_by_the_process_that_they_end_in() -> None:
    """Nine links of three roots, 24 messages each: six end in process `two`, three at a leaf of its own."""
    scenario, topology = sparse()
    lateness = sparse_lateness(topology, 0.0031, of="eu/leaf")
    lateness["delivered"][0] = 1000  # root.west -> us/leaf-1, which is judged alone

    found = judged_links(lateness, Pools(scenario, topology))
    requests = {
        each.name: each for each in found if each.source.startswith("root.") and each.path == "request"
    }

    assert [(each.messages, len(each.keys)) for each in requests.values()] == [
        (1000, 1),
        (5 * EACH, 5),
        (3 * EACH, 3),
    ]
    assert list(requests)[1] == (
        "5 links root -> leaf (request) into process two, together since each has fewer than 100 messages"
    )
    assert list(requests)[2].startswith("3 links root -> leaf (request) into asia/leaf-1, ")
    assert list(requests.values())[1].p99_low_s == pytest.approx(0.0031, rel=0.06)
    assert sum(each.messages for each in found) == 1000 + EACH * (len(topology.links) - 1)


def test_a_run_all_of_whose_links_are_sparse_is_invalid_where_a_process_is_late() -> None:
    scenario, topology = sparse()
    tables = made_tables(scenario, steady(0.4, 0.3, 0.3), rate_per_s=100.0)
    late = {**tables, "lateness": sparse_lateness(topology, 0.0031, of="eu/")}

    quiet = verdict(scenario, {**tables, "lateness": sparse_lateness(topology)})
    found = verdict(scenario, late)

    assert quiet.checks["release lateness"] == "valid"
    assert found.word == found.checks["release lateness"] == "invalid"
    assert found.reasons[0].startswith("release lateness: p99 3.1 ms on ")
    assert (
        "links root -> leaf (request) into process two, together since each has fewer than 100"
        in found.reasons[0]
    )


def test_a_pool_is_held_against_the_largest_delay_of_its_links() -> None:
    """Later than that it was later than the delay of any of them."""
    short = [{"from": "root.*", "to": "cell.*", "path": "request", "delay": "0.2 ms"}]
    longer = [*short, {"from": "root.*", "to": "cell.us", "path": "request", "delay": "20 ms"}]

    def words(links: list[dict[str, str]]) -> list[str]:
        scenario, topology = sparse(links=links)
        tables = made_tables(scenario, steady(0.4, 0.3, 0.3), rate_per_s=100.0)
        late = sparse_lateness(topology, 0.0008, of="eu/leaf")
        tables = {
            **tables,
            "requests": {**tables["requests"], "attempts": tables["requests"]["attempts"] * 2},
        }
        return [
            each
            for each in verdict(scenario, {**tables, "lateness": late}).reasons
            if "exceeds the largest delay among them" in each
        ]

    assert len(words(short)) == 1
    assert "6 links root -> leaf (request) into process two" in words(short)[0]
    assert words(longer) == []


def made_hops(scenario: Scenario, topology: Topology, late_s: float) -> list[Hop]:
    """Requests of three seconds over nine links, those to `eu` late."""
    tables = made_tables(scenario, steady(0.4, 0.3, 0.3), rate_per_s=10.0, seed=3)
    requests = tables["requests"]
    requests["at_leaf_s"] += np.where(requests["cell"] == "eu", late_s, 0.0)
    hops = [hop for hop in recorded_hops(scenario, topology, tables) if hop.link.path == "request"]
    assert all(len(hop.sent_at_s) < 100 for hop in hops)
    return hops


def test_recorded_messages_of_sparse_links_are_judged_together() -> None:
    scenario, topology = sparse()
    hops = made_hops(scenario, topology, 0.003)

    pools = judged_hops(hops, Pools(scenario, topology))

    assert [len(each.sent_at_s) for each in pools] == [
        sum(len(hop.sent_at_s) for hop in hops if hop.link.target.startswith(cells))
        for cells in (("us", "eu"), "asia")
    ]
    assert all((np.diff(each.sent_at_s) >= 0.0).all() for each in pools)
    errors_s = pools[0].received_at_s - pools[0].sent_at_s - pools[0].drawn_s
    assert np.isclose(errors_s, 0.003).sum() == sum(
        len(hop.sent_at_s) for hop in hops if hop.link.target[:2] == "eu"
    )


def test_only_links_that_are_to_do_the_same_have_one_distribution_of_delays() -> None:
    scenario, topology = sparse(
        links=[{"from": "root.*", "to": "cell.us", "path": "request", "delay": "5 ms"}]
    )

    pools = judged_hops(made_hops(scenario, topology, 0.0), Pools(scenario, topology), alike=True)

    assert [each.link.effect.delay_s for each in pools] == [0.005, 0.0, 0.0]
    assert [each.name.split(", ")[0] for each in pools] == [
        "3 links root -> leaf (request) into process two",
        "3 links root -> leaf (request) into process two",
        "3 links root -> leaf (request) into asia/leaf-1",
    ]


def test_injection_errors_of_sparse_links_show_in_the_verdict() -> None:
    scenario, _ = sparse()
    tables = made_tables(scenario, steady(0.4, 0.3, 0.3), rate_per_s=20.0, seed=3)
    requests = tables["requests"]
    for column in (
        "at_leaf_s",
        "at_server_s",
        "started_at_s",
        "first_token_at_s",
        "finished_at_s",
        "answered_at_s",
        "left_leaf_s",
        "replied_at_s",
    ):
        requests[column] += np.where(requests["cell"] == "eu", 0.004, 0.0)

    found = verdict(scenario, {**tables, "observations": {}}, made_outcome())

    assert found.checks["injection"] == "invalid"
    assert "6 links root -> leaf (request) into process two" in found.reasons[0]
