"""From lines of faults to the timeline: when each sets in and heals, whom it touches, the same in every arm and time."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise
from random import Random

import pytest
from scipy import stats

from testbed.scenario.fault_plan import Fault, fault_plan, link_effects, misinforms, picked
from testbed.scenario.load import dump_scenario, scenario_from_text
from testbed.scenario.schema import Scenario
from testbed.scenario.shorten import with_duration
from testbed.scenario.topology import build_topology

TEXT = """\
name: small
duration: 60 s
seed: 4
groups: {atlantic: [root.w1, cell.us], edge: [root.e1, eu/*]}
cells:
  us: {servers: 4, service: {slots: 1, fixed: 1 ms}, leaf: {count: 2}}
  eu: {servers: 1, service: {slots: 1, fixed: 1 ms}}
roots:
  w1: {traffic: [{class: sand, rate: 80 /s, policy: even}]}
  w2: {traffic: [{class: sand, rate: 80 /s, policy: even}, {class: rock, rate: 1 /s, policy: even}]}
  e1: {traffic: [{class: sand, rate: 80 /s, policy: even}]}
classes: {sand: {}, rock: {}}
policies: {even: {kind: random}}
links: [{from: root.*, to: cell.*, delay: 20 ms}]
faults:
"""


def scenario(*lines: str) -> Scenario:
    return scenario_from_text(TEXT + "".join(f"  - {line}\n" for line in lines)).arms["main"]


def plan(*lines: str) -> tuple[Fault, ...]:
    words = scenario(*lines)
    return fault_plan(words, build_topology(words))


def test_for_and_from_to_say_the_same() -> None:
    one, other = plan(
        "{at: 10 s, for: 4 s, cell: eu, set: {speed: 0.5}}",
        "{from: 10 s, to: 14 s, cell: eu, set: {speed: 0.5}}",
    )

    assert (one.at_s, one.until_s) == (other.at_s, other.until_s) == (10.0, 14.0)
    assert plan("{at: 10 s, cell: eu, set: {speed: 0.5}}")[0].until_s == math.inf


def test_a_fault_comes_again_until_the_end_or_so_many_times() -> None:
    line = "{at: 5 s, for: 1 s, every: 20 s, cell: eu, set: {speed: 0.5}%s}"

    assert [fault.at_s for fault in plan(line % "")] == [5.0, 25.0, 45.0]
    assert [(fault.at_s, fault.until_s) for fault in plan(line % ", times: 2")] == [(5.0, 6.0), (25.0, 26.0)]


@pytest.mark.parametrize(
    ("target", "nodes"),
    [
        ("cell: us", ["us/server-1", "us/server-2", "us/server-3", "us/server-4"]),
        ("cell: '*'", ["us/server-1", "us/server-2", "us/server-3", "us/server-4", "eu/server-1"]),
        ("cell: edge", ["eu/server-1"]),
        ("server: 'us/server-[12]'", ["us/server-1", "us/server-2"]),
        ("server: edge", ["eu/server-1"]),
    ],
)
def test_servers_are_named_by_cell_glob_and_group(target: str, nodes: list[str]) -> None:
    assert list(plan(f"{{at: 1 s, {target}, set: {{speed: 0.5}}}}")[0].nodes) == nodes


@pytest.mark.parametrize(
    ("target", "nodes"),
    [
        ("root: w1", ["root.w1"]),
        ("root: w*", ["root.w1", "root.w2"]),
        ("root: root.e1", ["root.e1"]),
        ("root: edge", ["root.e1"]),
        ("class: rock", ["root.w2"]),
    ],
)
def test_loads_are_named_by_root_glob_group_and_class(target: str, nodes: list[str]) -> None:
    assert list(plan(f"{{at: 1 s, {target}, set: {{demand: x2}}}}")[0].nodes) == nodes


def test_a_partition_cuts_all_links_between_its_groups_both_ways_and_no_other() -> None:
    words = scenario("{at: 1 s, partition: [atlantic, edge]}")
    topology = build_topology(words)

    cut = {(topology.links[i].source, topology.links[i].target) for i in fault_plan(words, topology)[0].links}

    one, other = ("root.w1", "us/leaf-1", "us/leaf-2"), ("root.e1", "eu/leaf-1", "eu/server-1")
    joined = {(link.source, link.target) for link in topology.links}
    assert cut == {pair for a in one for b in other for pair in ((a, b), (b, a)) if pair in joined}
    assert ("root.w1", "eu/leaf-1") in cut
    assert ("us/leaf-1", "root.e1") in cut


def test_a_single_group_is_cut_off_from_all_the_others() -> None:
    words = scenario("{at: 1 s, partition: [cell.us]}")
    topology = build_topology(words)

    cut = fault_plan(words, topology)[0].links

    assert cut == tuple(link.number for link in topology.links if "us/leaf" in link.source + link.target)


@pytest.mark.parametrize(("pick", "count"), [("all", 4), ("one", 1), ("half", 2), ("minority", 1)])
def test_pick_takes_its_share_of_what_is_named(pick: str, count: int) -> None:
    fault = plan(f"{{at: 1 s, server: us/*, pick: {pick}, set: {{speed: 0.5}}}}")[0]

    assert len(fault.nodes) == count
    assert fault.target == ("server us/*" if pick == "all" else f"server {', '.join(fault.nodes)}")


def test_pick_of_a_link_picks_senders() -> None:
    words = scenario(
        "{at: 1 s, link: {from: root.*, to: cell.*, path: request}, pick: one, set: {delay: 1 s}}"
    )
    topology = build_topology(words)

    fault = fault_plan(words, topology)[0]

    assert len({topology.links[i].source for i in fault.links}) == 1
    assert len(fault.links) == 3  # to every leaf


def test_every_time_another_is_picked_and_each_as_often() -> None:
    faults = plan("{at: 0 s, for: 5 ms, every: 10 ms, server: us/*, pick: one, set: {speed: 0.5}}")

    counts = Counter(fault.nodes[0] for fault in faults)

    assert len(faults) == 6000
    assert stats.chisquare(list(counts.values())).pvalue > 0.01


def test_at_least_one_is_picked() -> None:
    fault = plan("{at: 1 s, server: eu/*, pick: minority, set: {speed: 0.5}}")[0]

    assert fault.nodes == ("eu/server-1",)


RANDOM = """{random: {rate: 600 /min, from: 6 s, to: 54 s, kinds: [
      {weight: 3, for: 2 s, cell: eu, set: {speed: 0.5}},
      {for: 1 s, link: {from: root.*, to: cell.*}, pick: one, set: {delay: +200 ms}}]}}"""


def test_random_faults_come_at_their_rate_in_their_window_by_weight() -> None:
    """480 expected of a Poisson process, three quarters of the first kind."""
    faults = plan(RANDOM)

    low, high = stats.poisson.interval(0.999, 480)
    assert low <= len(faults) <= high
    assert all(6.0 <= fault.at_s < 54.0 for fault in faults)
    slow = [fault for fault in faults if fault.words.speed is not None]
    low, high = stats.binom.interval(0.999, len(faults), 0.75)
    assert low <= len(slow) <= high
    gaps_s = [b.at_s - a.at_s for a, b in pairwise(faults)]
    assert stats.kstest(gaps_s, stats.expon(scale=0.1).cdf).pvalue > 0.01
    assert {round(fault.until_s - fault.at_s, 9) for fault in slow} == {2.0}


def test_the_same_seed_draws_the_same_faults_and_another_seed_others() -> None:
    first, again = plan(RANDOM), plan(RANDOM)
    other = scenario_from_text(TEXT.replace("seed: 4", "seed: 5") + f"  - {RANDOM}\n").arms["main"]

    assert first == again
    assert fault_plan(other, build_topology(other)) != first


def test_a_line_more_leaves_the_draws_of_the_lines_before_it_alone() -> None:
    one = "{at: 1 s, server: us/*, pick: half, set: {speed: 0.5}}"

    assert plan(one, RANDOM)[0] == plan(one)[0]


def test_the_timeline_stretches_with_the_time_scale_to_the_bit() -> None:
    words = scenario(RANDOM, "{at: 1 s, for: 2 s, every: 7 s, cell: eu, set: {speed: 0.5}}")
    stretched = words.model_copy(update={"time_scale": 4.0}).scaled()

    faults = fault_plan(words, build_topology(words))
    later = fault_plan(stretched, build_topology(stretched))

    assert [(4 * fault.at_s, 4 * fault.until_s, fault.nodes, fault.links) for fault in faults] == [
        (fault.at_s, fault.until_s, fault.nodes, fault.links) for fault in later
    ]


def test_a_shorter_run_has_its_faults_at_the_same_share_of_it() -> None:
    words = scenario(RANDOM, "{from: 12 s, to: 24 s, every: 15 s, cell: eu, set: {speed: 0.5}}")
    short = with_duration(words, 6.0)

    faults, sooner = fault_plan(words, build_topology(words)), fault_plan(short, build_topology(short))

    assert [fault.at_s for fault in sooner] == pytest.approx([fault.at_s / 10 for fault in faults])
    assert [fault.until_s for fault in sooner] == pytest.approx([fault.until_s / 10 for fault in faults])


def test_a_dumped_scenario_has_the_same_timeline() -> None:
    words = scenario(
        RANDOM,
        "{at: 1 s, partition: [atlantic, edge]}",
        "{at: 1 s, link: {from: root.*, to: cell.*}, set: {delay: x3, jitter: {pareto: 1 ms}, queue: 3, rate: 9 /s}}",
        "{at: 1 s, for: 1 s, every: 9 s, root: w1, set: {demand: x2.5, shift: {to: e1, share: 20 %}}}",
        "{at: 1 s, link: {from: root.*, to: cell.*}, set: {flap: {period: 1 s, down: 10 %}, bandwidth: 1 Mbit/s, queue: 0}}",
    )

    again = scenario_from_text(dump_scenario(words)).arms["main"]

    assert again == words
    assert fault_plan(again, build_topology(again)) == fault_plan(words, build_topology(words))


def test_what_runs_from_an_instant_on_runs_from_the_onset_of_its_fault() -> None:
    line = "{at: 7 s, link: {from: root.*, to: cell.*}, set: {flap: {period: 1 s, down: 10 %}}}"

    flap = plan(line)[0].words.flap

    assert flap is not None
    assert flap.since == 7.0


def test_the_effects_of_a_link_are_those_of_the_faults_at_work_together() -> None:
    words = scenario(
        "{at: 10 s, for: 10 s, link: {from: root.w1, to: cell.eu, path: request}, set: {delay: x3}}",
        "{at: 15 s, for: 10 s, link: {from: root.w1, to: cell.eu, path: request}, set: {delay: -10 ms}}",
    )
    topology = build_topology(words)
    effects = link_effects(topology, fault_plan(words, topology))
    number = next(
        i for i, each in enumerate(topology.links) if (each.source, each.target) == ("root.w1", "eu/leaf-1")
    )

    assert [effect.delay_s for effect in effects[number]] == pytest.approx(
        [0.020, 0.060, 0.050, 0.010, 0.020]
    )
    assert [effect.delay_s for effect in effects[number + 1]] == [0.0]


def test_what_is_picked_keeps_the_order_of_the_names() -> None:
    for i in range(20):
        chosen = picked(list("abcdefgh"), "half", Random(i))
        assert chosen == sorted(chosen)
        assert len(chosen) == 4


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("{at: 1 s, partition: [atlantic, edge]}", ("partition atlantic | edge", "cut yes")),
        ("{at: 1 s, class: rock, set: {output_tokens: x4}}", ("class rock", "output_tokens x4")),
        ("{at: 1 s, root: w1, set: {shift: {to: e1, share: 20 %}}}", ("root w1", "shift of 20 % to e1")),
        ("{at: 1 s, link: {from: root.*, to: cell.us}, set: {delay: +200 ms, loss: 2 %, loss_burst: 5}}",
         ("link root.* -> cell.us", "delay +200 ms, loss 2 %, loss_burst 5")),
        ("{at: 1 s, link: {from: root.*, to: cell.us}, set: {reorder: {fraction: 5 %, late: 1 ms}}}",
         ("link root.* -> cell.us", "reorder 5 % late by 1 ms")),
    ],
)  # fmt: skip
def test_a_fault_is_told_in_words(line: str, text: tuple[str, str]) -> None:
    fault = plan(line)[0]

    assert (fault.target, fault.text) == text


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("{at: 1 s, server: us/server-1, set: {telemetry: silent}}", True),
        ("{at: 1 s, server: '*', set: {speed: 0.5, clock_drift: 1 %}}", True),
        ("{random: {rate: 6 /min, kinds: [{server: us/*, set: {gauge_offset: 3}, for: 1 s}]}}", True),
        ("{at: 1 s, server: us/server-1, set: {speed: 0.5}}", False),
        ("{at: 1 s, cell: us, set: {telemetry: silent}}", False),
        ("{at: 1 s, partition: [atlantic, edge]}", False),
    ],
)
def test_servers_tell_something_else_than_they_know_under_faults_of_what_they_tell(
    line: str, wrong: bool
) -> None:
    """What a cell tells, its leaves do."""
    assert misinforms(scenario(line)) == wrong
