"""Scenario to topology: names of nodes, the links there are, and which lines touch them."""

from __future__ import annotations

import pytest

from testbed.scenario.fault_plan import fault_plan
from testbed.scenario.load import scenario_from_text
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import (
    build_nodes,
    build_topology,
    leaf_policy,
    matching_nodes,
)

TEXT = """\
name: small
duration: 20 s
groups: {west: [root.w1, root.w2], edge: [west, eu/leaf-1]}
cells:
  us: {servers: 2, profile: small, leaf: {count: 2, policy: probing}}
  eu: {servers: 1, profile: small, leaf: {policy: told}}
roots:
  w1: {traffic: [{class: sand, rate: 80 /s, policy: even}]}
  w2: {traffic: [{class: sand, rate: 80 /s, policy: even}]}
  e1: {traffic: [{class: sand, rate: 80 /s, policy: even}]}
classes: {sand: {}}
policies:
  even: {kind: random}
  probing: {kind: prequal}
  told: {kind: least_cost, cost: in_flight}
links:
  - {from: root.*, to: cell.*, delay: 20 ms, loss: 1 %}
  - {from: west, to: cell.eu, delay: 70 ms}
  - {from: us/leaf-2, to: root.w1, path: observation, delay: 500 ms, order: kept}
faults:
  - {at: 1 s, link: {from: cell.us, to: west, path: observation}, set: {delay: 2 s}}
  - {at: 1 s, cell: us, set: {speed: 0.4}}
  - {at: 1 s, server: '*/server-1', set: {speed: 0.4}}
"""


@pytest.fixture(name="scenario")
def a_scenario() -> Scenario:
    return scenario_from_text(TEXT).arms["main"]


def test_nodes_are_named_in_the_order_of_the_file(scenario: Scenario) -> None:
    nodes = build_nodes(scenario)

    assert list(nodes) == [
        "root.w1", "root.w2", "root.e1",
        "us/leaf-1", "us/leaf-2", "us/server-1", "us/server-2", "eu/leaf-1", "eu/server-1",
    ]  # fmt: skip
    assert [node.kind for node in nodes.values()] == ["root"] * 3 + ["leaf"] * 2 + ["server"] * 2 + [
        "leaf",
        "server",
    ]
    assert nodes["us/leaf-2"].cell == "us"
    assert nodes["us/leaf-2"].index == 1
    assert build_topology(scenario).nodes == nodes


def test_every_root_talks_to_every_leaf_and_a_leaf_to_the_servers_of_its_cell(scenario: Scenario) -> None:
    topology = build_topology(scenario)
    pairs = {(link.source, link.target) for link in topology.links}

    assert {
        (root, leaf) for root in ("root.w1", "root.w2", "root.e1") for leaf in topology.leaves["us"]
    } <= pairs
    assert ("us/leaf-1", "us/server-2") in pairs
    assert ("us/leaf-1", "eu/server-1") not in pairs
    assert ("root.w1", "us/server-1") not in pairs
    assert [link.number for link in topology.links] == list(range(len(topology.links)))


def test_servers_report_or_are_probed_only_where_the_leaf_policy_looks(scenario: Scenario) -> None:
    topology = build_topology(scenario)

    assert {link.path for link in topology.outgoing("us/server-1")} == {"reply", "probe"}
    assert {link.path for link in topology.outgoing("eu/server-1")} == {"reply", "observation"}
    assert {link.path for link in topology.incoming("us/server-1")} == {"request", "probe"}


def test_later_lines_override_the_keys_they_give_and_keep_the_others(scenario: Scenario) -> None:
    effects = {(link.source, link.target, link.path): link.effect for link in build_topology(scenario).links}

    assert effects["root.e1", "eu/leaf-1", "request"].delay_s == 0.02
    assert effects["root.w1", "eu/leaf-1", "request"].delay_s == 0.07
    assert effects["root.w1", "eu/leaf-1", "request"].loss == 0.01
    assert effects["us/leaf-2", "root.w1", "observation"].delay_s == 0.5
    assert effects["us/leaf-2", "root.w1", "observation"].order == "kept"
    assert effects["us/leaf-1", "root.w1", "observation"].delay_s == 0.0
    assert effects["us/leaf-2", "root.w1", "reply"].delay_s == 0.0


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("root.w1", ["root.w1"]),
        ("root.w*", ["root.w1", "root.w2"]),
        ("west", ["root.w1", "root.w2"]),
        ("edge", ["root.w1", "root.w2", "eu/leaf-1"]),
        ("cell.us", ["us/leaf-1", "us/leaf-2"]),
        ("cell.*", ["us/leaf-1", "us/leaf-2", "eu/leaf-1"]),
        ("us/server-*", ["us/server-1", "us/server-2"]),
        ("w1", []),
        ("us", []),
    ],
)
def test_a_pattern_is_a_name_a_glob_a_cell_or_a_group(
    scenario: Scenario, pattern: str, names: list[str]
) -> None:
    assert matching_nodes(scenario, build_nodes(scenario), pattern) == names


def test_a_fault_of_links_touches_the_path_that_it_names(scenario: Scenario) -> None:
    topology = build_topology(scenario)
    fault = fault_plan(scenario, topology)[0]

    touched = [topology.links[number] for number in fault.links]
    assert {(link.source, link.target, link.path) for link in touched} == {
        (leaf, root, "observation") for leaf in ("us/leaf-1", "us/leaf-2") for root in ("root.w1", "root.w2")
    }
    assert fault.nodes == ()


def test_a_fault_of_a_cell_or_of_servers_touches_servers_only(scenario: Scenario) -> None:
    topology = build_topology(scenario)

    plan = fault_plan(scenario, topology)

    assert plan[1].nodes == ("us/server-1", "us/server-2")
    assert plan[2].nodes == ("us/server-1", "eu/server-1")
    assert plan[1].links == plan[2].links == ()


def test_a_leaf_without_a_policy_counts_its_own_requests(scenario: Scenario) -> None:
    text = TEXT.replace("leaf: {policy: told}", "leaf: {count: 1}")
    policy = leaf_policy(scenario_from_text(text).arms["main"], "eu")

    assert policy.kind == "least_cost"
    assert getattr(policy, "view", None) == "own_counts"
    assert leaf_policy(scenario, "eu") == scenario.policies["told"]
