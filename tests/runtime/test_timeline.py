"""What faults change at a node, and when."""

from __future__ import annotations

from testbed.roles.messages import Setting
from testbed.runtime.timeline import AtWork, Change, node_changes
from testbed.scenario.fault_plan import fault_plan
from testbed.scenario.topology import Topology, build_topology
from tests.runtime.fake_sockets import TEXT, pair_world


def changes(faults: str, node: str) -> tuple[list[Change], Topology]:
    """The changes of a node in the pair scenario with these fault lines."""
    world = pair_world(text=f"{TEXT}faults:\n{faults}")
    plan = fault_plan(world.scenario, world.topology)
    return node_changes(plan, world.topology, node), build_topology(world.scenario)


def speeds_told(change: Change, at_work: AtWork) -> tuple[float, ...]:
    """What the role of a server is told of its speed when this change is made."""
    return tuple(told.value for told in at_work.note(change) if isinstance(told, Setting))


def test_the_sender_alone_changes_a_link() -> None:
    """One fault, one path: the root changes one of its links, once when it sets in and once when it heals."""
    line = "  - {at: 0.2 s, for: 0.3 s, link: {from: root.*, to: cell.*, path: request}, set: {delay: 1 s}}\n"

    root, topology = changes(line, "root.r")
    leaf, _ = changes(line, "a/leaf-1")

    number = next(link.number for link in topology.links if (link.source, link.path) == ("root.r", "request"))
    assert [(each.at_s, each.healed, each.links) for each in root] == [
        (0.2, False, (number,)),
        (0.5, True, (number,)),
    ]
    assert root[0].words.delay == 1.0
    assert leaf == []


def test_of_overlapping_speeds_the_latest_holds_and_healing_falls_back() -> None:
    """Fault 0 from 0.1 to 0.7 s, fault 1 from 0.3 to 0.5 s, fault 2 from 0.4 s for good."""
    lines = (
        "  - {at: 0.1 s, for: 0.6 s, cell: a, set: {speed: 0.5}}\n"
        "  - {at: 0.3 s, for: 0.2 s, server: a/server-1, set: {speed: 0.25}}\n"
        "  - {at: 0.4 s, cell: a, set: {speed: 0.75}}\n"
    )

    at_work = AtWork("server")
    server, _ = changes(lines, "a/server-1")

    assert [(each.fault, each.healed, *speeds_told(each, at_work)) for each in server] == [
        (0, False, 0.5),
        (1, False, 0.25),
        (2, False, 0.75),
        (1, True, 0.75),
        (0, True, 0.75),
    ]


def test_speed_is_that_of_the_profile_again_when_all_have_healed() -> None:
    """Nothing is left of a fault that has healed."""
    at_work = AtWork("server")
    server, _ = changes("  - {at: 0.1 s, for: 0.1 s, cell: a, set: {speed: 0.5}}\n", "a/server-1")

    assert [speeds_told(each, at_work) for each in server] == [(0.5,), (1.0,)]


def test_at_one_instant_healing_goes_first() -> None:
    """A fault that follows another without a gap is not undone by the healing of the first."""
    lines = "  - {at: 0.5 s, cell: a, set: {speed: 0.25}}\n  - {at: 0.25 s, for: 0.25 s, cell: a, set: {speed: 0.5}}\n"

    at_work = AtWork("server")
    server, _ = changes(lines, "a/server-1")

    assert [(each.fault, each.healed, *speeds_told(each, at_work)) for each in server] == [
        (1, False, 0.5),
        (1, True, 1.0),
        (0, False, 0.25),
    ]


def test_what_is_done_once_is_told_when_it_sets_in_and_by_no_heal() -> None:
    """Two resets that overlap: the counts are reset twice, not a third time as the first of them heals."""
    lines = (
        "  - {at: 0.1 s, for: 0.2 s, cell: a, set: {reset_counts: true}}\n"
        "  - {at: 0.2 s, for: 0.2 s, cell: a, set: {reset_counts: true}}\n"
    )
    at_work = AtWork("leaf")
    leaf, _ = changes(lines, "a/leaf-1")

    told = [(each.fault, each.healed, [word.value for word in at_work.note(each)]) for each in leaf]

    assert told == [(0, False, [1.0]), (1, False, [1.0]), (0, True, []), (1, True, [])]
