"""Records of links against records of nodes: each law holds where they agree, and breaks where one is doctored."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from testbed.analysis.laws import all_laws
from testbed.analysis.ledger_laws import ledger_conservation, open_conservation
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import build_topology
from tests.analysis.made_arms import fail, made_ledger, made_requests, made_scenario, steady

SCENARIO = made_scenario()
TOPOLOGY = build_topology(SCENARIO)
EVEN = steady(0.4, 0.3, 0.3)
REQUESTS = made_requests(SCENARIO, EVEN, rate_per_s=30.0)


def made(scenario: Scenario = SCENARIO) -> dict[str, Any]:
    """Requests and the ledger that belongs to them, to be doctored."""
    requests = {name: column.copy() for name, column in REQUESTS.items()}
    return {"requests": requests, "lateness": made_ledger(scenario, requests)}


def with_retries() -> Scenario:
    return made_scenario(classes={"sand": {"output_tokens": 8, "timeout": "10 s", "retries": {}}})


def broken(tables: dict[str, Any], scenario: Scenario = SCENARIO) -> dict[str, str]:
    """Nodes at which the records do not agree, and what is said of them."""
    laws = ledger_conservation(scenario, TOPOLOGY, tables)
    return {law.place: law.detail for law in laws if not law.holds}


def asked(tables: dict[str, Any], scenario: Scenario) -> dict[str, str]:
    return {law.place: law.detail for law in ledger_conservation(scenario, TOPOLOGY, tables)}


def link(tables: dict[str, Any], source: str, target: str, path: str) -> int:
    ledger = tables["lateness"]
    (row,) = np.flatnonzero(
        (ledger["source"] == source) & (ledger["target"] == target) & (ledger["path"] == path)
    )
    return int(row)


def test_every_node_is_asked_and_sound_records_agree():
    laws = ledger_conservation(SCENARIO, TOPOLOGY, made())

    assert {law.place for law in laws} == set(TOPOLOGY.nodes)
    assert all(law.holds for law in laws)
    leaf = next(law for law in laws if law.place == "us/leaf-1")
    here = int((REQUESTS["leaf"] == "us/leaf-1").sum())
    assert leaf.detail == (
        f"{here} requests received by the links, {here} by the records; {here} requests given on by the links, {here} by the "
        f"records; {here} replies sent by the links, {here} by the records"
    )


@pytest.mark.parametrize(
    ("source", "target", "path", "column", "node"),
    [
        ("root.west", "us/leaf-1", "request", "sent", "root.west"),
        ("root.west", "us/leaf-1", "request", "delivered", "us/leaf-1"),
        ("us/leaf-1", "us/server-2", "request", "sent", "us/leaf-1"),
        ("us/leaf-1", "us/server-2", "request", "delivered", "us/server-2"),
        ("us/server-2", "us/leaf-1", "reply", "sent", "us/server-2"),
        ("us/leaf-1", "root.west", "reply", "sent", "us/leaf-1"),
        ("us/leaf-1", "root.west", "reply", "delivered", "root.west"),
    ],
)
@pytest.mark.parametrize("change", [1, -1])
def test_a_link_that_tells_one_message_more_or_less_breaks_the_law_of_the_node_that_wrote_the_rows(
    source, target, path, column, node, change
):
    tables = made()
    row = link(tables, source, target, path)
    carried = tables["lateness"][column]
    carried[row] += change

    found = broken(tables)

    assert list(found) == [node]
    assert f"(the first on {source} -> {target}: {carried[row]} and {carried[row] - change})" in found[node]


def test_two_links_that_tell_wrong_numbers_of_the_right_sum_are_found():
    """Every link is asked by itself."""
    tables = made()
    tables["lateness"]["delivered"][link(tables, "root.west", "us/leaf-1", "request")] += 1
    tables["lateness"]["delivered"][link(tables, "root.north", "us/leaf-1", "request")] -= 1

    assert list(broken(tables)) == ["us/leaf-1"]


@pytest.mark.parametrize(
    ("column", "kinds"),
    [
        ("at_leaf_s", ["leaf"]),
        ("left_leaf_s", ["leaf"]),
        ("finished_at_s", ["server"]),
        ("replied_at_s", ["root"]),
    ],
)
def test_a_request_whose_instant_is_not_recorded_breaks_the_law_of_the_node_that_should_have(column, kinds):
    tables = made()
    tables["requests"][column][7] = np.nan

    assert list(broken(tables)) == [tables["requests"][kind][7] for kind in kinds]


def test_a_request_that_its_server_does_not_record_is_found():
    """It is completed, so it was there."""
    tables = made()
    tables["requests"]["at_server_s"][7] = np.nan

    assert list(broken(tables)) == [tables["requests"]["server"][7]]


def test_a_row_of_another_leaf_than_the_request_went_to_is_found():
    tables = made()
    row = int(np.flatnonzero(tables["requests"]["leaf"] == "us/leaf-1")[0])
    tables["requests"]["leaf"][row] = "eu/leaf-1"

    assert {tables["requests"]["root"][row], "us/leaf-1", "eu/leaf-1"} <= set(broken(tables))


def test_an_answer_that_links_lose_or_hold_at_the_end_breaks_no_law():
    """The ledger of a link has them as dropped or under way, and nobody has a row of their receipt."""
    tables = made()
    requests = tables["requests"]
    requests["replied_at_s"][:5] = np.nan
    requests["outcome"][:5] = "timed_out"
    tables["lateness"] = made_ledger(SCENARIO, requests)

    assert broken(tables) == {}


@pytest.mark.parametrize(
    "scenario",
    [
        made_scenario(faults=[{"at": "5 s", "server": "us/server-1", "set": {"errors": "10 %"}}]),
        made_scenario(faults=[{"at": "5 s", "for": "1 s", "server": "us/server-1", "set": {"kill": True}}]),
    ],
    ids=["errors", "kill"],
)
def test_a_server_that_may_have_requests_without_a_row_has_at_least_those_with_one(scenario):
    """And at most those that may have come: what is lost on the way to it is not known from its rows."""
    tables = made()
    rows = np.flatnonzero(REQUESTS["server"] == "us/server-1")[:3]
    requests = tables["requests"]
    left_at_s = requests["left_leaf_s"].copy()
    fail(requests, rows, "timed_out")
    requests["left_leaf_s"] = left_at_s
    inward = link(tables, "us/leaf-1", "us/server-1", "request")
    recorded = int((np.isfinite(requests["at_server_s"]) & (requests["server"] == "us/server-1")).sum())

    verdicts = {}
    for delivered in (recorded - 1, recorded, recorded + 3, recorded + 4):
        tables["lateness"]["delivered"][inward] = delivered
        verdicts[delivered] = "us/server-1" not in broken(tables, scenario)

    assert list(verdicts.values()) == [False, True, True, False]
    tables["lateness"]["delivered"][inward] = recorded + 3
    assert "us/server-1" in broken(tables)  # without the fault every request that came has a row


def test_requests_that_are_sent_again_are_counted_by_their_attempts():
    """Each attempt is a sending; of the first one the request's own row tells nothing."""
    scenario, tables = with_retries(), made()
    requests = tables["requests"]
    requests["attempts"][3] = 2
    row = {name: requests[name][3] for name in requests}
    nowhere = {"at_leaf_s": np.nan, "at_server_s": np.nan, "finished_at_s": np.nan, "left_leaf_s": np.nan, "replied_at_s": np.nan}  # fmt: skip
    first = {**row, **nowhere, "server": "", "outcome": "timed_out", "leaf_outcome": "", "leaf_attempt": 0}
    second = {**row, "leaf_outcome": "completed", "leaf_attempt": 0}
    tables["attempts"] = {name: np.array([first[name], second[name]]) for name in second}
    lost = link(tables, row["root"], row["leaf"], "request")

    assert list(broken(tables, scenario)) == [row["root"]]  # which sent it once by its ledger

    tables["lateness"]["sent"][lost] += 1

    assert broken(tables, scenario) == {}
    assert "replies received" not in asked(tables, scenario)["root.west"]  # nothing tells of late ones


def test_nothing_is_asked_where_the_tables_do_not_have_every_sending():
    """Requests that were sent again without a table of attempts, and a request that was waiting out its backoff."""
    tables = made()
    tables["requests"]["attempts"][3] = 2
    assert ledger_conservation(SCENARIO, TOPOLOGY, tables) == []

    backoff = made_scenario(
        classes={"sand": {"output_tokens": 8, "timeout": "10 s", "retries": {"backoff": "1 s"}}}
    )
    tables = made()
    tables["requests"]["leaf"][3], tables["requests"]["outcome"][3] = "", "unfinished"
    assert ledger_conservation(backoff, TOPOLOGY, tables) == []


def test_links_that_carry_calls_back_are_not_asked_for_requests():
    """A ledger does not tell a call back from a request, and who calls back is owed no reply."""
    scenario = made_scenario(classes={"sand": {"output_tokens": 8, "timeout": "10 s", "cancel": True}})

    said = asked(made(), scenario)

    assert not any("requests" in each for each in said.values())
    assert "us/leaf-1" not in said
    assert "replies sent" in said["us/server-1"]
    assert "replies received" in said["root.west"]


def test_what_arrives_on_a_link_that_made_copies_is_not_asked():
    """Who receives a copy drops it without a row; what was sent is asked all the same."""
    tables = made()
    row = link(tables, "root.west", "us/leaf-1", "request")
    tables["lateness"]["duplicated"][row] = 2
    tables["lateness"]["delivered"][row] += 2

    assert broken(tables) == {}
    assert "requests received" not in asked(tables, SCENARIO)["us/leaf-1"]
    assert "requests sent" in asked(tables, SCENARIO)["root.west"]


def test_nodes_that_die_are_not_asked_for_what_dies_with_them():
    faults = [
        {"at": "5 s", "for": "1 s", "root": "west", "set": {"kill": True}},
        {"at": "5 s", "for": "1 s", "leaf": "eu/leaf-1", "set": {"kill": True}},
        {"at": "5 s", "for": "1 s", "leaf": "us/leaf-1", "set": {"pause": True}},
        {"at": "5 s", "for": "1 s", "leaf": "asia/leaf-1", "set": {"pause": True}},
        {"at": "5500 ms", "for": "1 s", "leaf": "asia/leaf-1", "set": {"kill": True}},
    ]

    said = asked(made(), made_scenario(faults=faults))

    assert "replies received" not in said["root.west"]
    assert "replies sent" not in said["eu/leaf-1"]
    assert "requests received" in said["eu/leaf-1"]
    assert "requests received" in said["us/leaf-1"]
    assert "requests received" not in said["asia/leaf-1"]


def test_records_of_one_node_are_not_held_against_those_of_another_where_a_log_is_cut_short():
    tables = made()
    tables["lateness"]["sent"][:] += 1

    words = {law.name + law.detail for law in all_laws(SCENARIO, TOPOLOGY, tables, 22.0, is_whole=False)}

    assert not any("by the links" in each for each in words)


def test_a_balancer_has_open_when_it_stops_what_its_rows_leave_without_an_end():
    """Given to a server and not left, at a leaf; sent and unfinished, at a root."""
    tables = made()
    requests = tables["requests"]
    left_out = np.flatnonzero((REQUESTS["leaf"] == "us/leaf-1") & (REQUESTS["root"] == "root.west"))[:4]
    requests["left_leaf_s"][left_out] = requests["replied_at_s"][left_out] = np.nan
    requests["outcome"][left_out] = "unfinished"
    nodes = [node.name for node in TOPOLOGY.nodes.values() if node.kind != "server"]
    counted = np.array([4 if name in ("root.west", "us/leaf-1") else 0 for name in nodes])
    tables["counts"] = {"node": np.array(nodes, object), "open": counted}

    assert all(law.holds for law in open_conservation(SCENARIO, TOPOLOGY, tables))

    counted[nodes.index("us/leaf-1")] = 3
    counted[nodes.index("root.north")] = 1
    wrong = [law for law in open_conservation(SCENARIO, TOPOLOGY, tables) if not law.holds]
    assert [(law.place, law.detail) for law in wrong] == [
        ("open at root.north", "1 open when it stopped, 0 without an end by the records"),
        ("open at us/leaf-1", "3 open when it stopped, 4 without an end by the records"),
    ]
