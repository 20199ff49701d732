"""Which nodes share a process."""

from __future__ import annotations

import pytest

from testbed.scenario.load import scenario_from_text
from testbed.scenario.process_map import homes, process_map
from testbed.scenario.topology import build_topology

TEXT = """
name: shared
duration: 1 s
groups: {edge: [root.b, eu/leaf-1]}
cells:
  us: {servers: 2, service: {slots: 1, fixed: 1 ms}}
  eu: {servers: 1, service: {slots: 1, fixed: 1 ms}}
  asia: {servers: 1, service: {slots: 1, fixed: 1 ms}}
roots:
  a: {traffic: [{class: c, rate: 1 /s, policy: p}]}
  b: {traffic: [{class: c, rate: 1 /s, policy: p}]}
classes: {c: {}}
policies: {p: {kind: random}}
"""


def shared(processes: str) -> dict[str, tuple[str, ...]]:
    scenario = scenario_from_text(TEXT + f"processes: {processes}\n").arms["main"]
    return process_map(scenario, build_topology(scenario))


def test_each_node_has_a_process_of_its_own_unless_told_otherwise() -> None:
    found = shared("{}")

    assert len(found) == 9
    assert all(nodes == (name,) for name, nodes in found.items())


def test_roots_and_whole_cells_are_dealt_over_processes() -> None:
    found = shared("{roots: 1, cells: 2}")

    assert found == {
        "roots-1": ("root.a", "root.b"),
        "cells-1": ("us/leaf-1", "us/server-1", "us/server-2", "asia/leaf-1", "asia/server-1"),
        "cells-2": ("eu/leaf-1", "eu/server-1"),
    }


def test_named_processes_go_before_the_dealt_ones_and_take_globs_and_groups() -> None:
    found = shared("{cells: 1, named: {mixed: [edge], us-servers: ['us/server-*']}}")

    assert found["mixed"] == ("root.b", "eu/leaf-1")
    assert found["us-servers"] == ("us/server-1", "us/server-2")
    assert found["cells-1"] == ("us/leaf-1", "eu/server-1", "asia/leaf-1", "asia/server-1")
    assert homes(found)["root.a"] == "root.a"


@pytest.mark.parametrize(
    "processes", ["{}", "{roots: 2, cells: 3}", "{roots: 9, named: {x: ['*/server-*']}}"]
)
def test_every_node_is_in_exactly_one_process(processes: str) -> None:
    found = shared(processes)

    assert sorted(node for nodes in found.values() for node in nodes) == sorted(homes(found))
    assert len(homes(found)) == 9
