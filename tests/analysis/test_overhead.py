"""The overhead of hops, from the lateness of links."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from testbed.analysis.overhead import hop_overheads
from testbed.links.lateness import BIN_COUNT, bin_of
from testbed.scenario.topology import build_topology
from tests.analysis.made_arms import made_lateness, made_scenario

TOPOLOGY = build_topology(made_scenario())


def made(*links: tuple[str, str, str, list[float]]) -> dict[str, Any]:
    """The table of these links: from, to, path, lateness of each message."""
    late = [np.array(each[3]) for each in links]
    return {
        **{
            name: np.array([each[i] for each in links], object)
            for i, name in enumerate(("source", "target", "path"))
        },
        "delivered": np.array([len(each) for each in late]),
        "lateness_s_p99": np.array([np.quantile(each, 0.99) if len(each) else math.nan for each in late]),
        "lateness_s_max": np.array([each.max() if len(each) else math.nan for each in late]),
        "lateness_bins": np.array(
            [np.bincount([bin_of(one) for one in each], minlength=BIN_COUNT) for each in late]
        ),
    }


def test_links_of_one_kind_are_taken_together_and_kinds_stand_in_the_order_of_a_request_s_way() -> None:
    table = made(
        ("us/leaf-1", "root.west", "observation", [0.004] * 10),
        ("us/server-1", "us/leaf-1", "reply", [0.003] * 100),
        ("us/leaf-1", "us/server-1", "request", []),
        ("root.west", "us/leaf-1", "request", [0.001] * 300),
        ("root.north", "eu/leaf-1", "request", [0.002] * 200),
    )

    found = hop_overheads(TOPOLOGY, table)

    assert [(each.hop, each.messages) for each in found] == [
        ("root -> leaf (request)", 500),
        ("server -> leaf (reply)", 100),
        ("leaf -> root (observation)", 10),
    ]
    assert found[0].p50_s == pytest.approx(0.001, rel=0.06)
    assert found[0].p99_s == found[0].max_s == found[0].worst_p99_s == 0.002


def test_a_link_with_few_messages_is_not_the_worst() -> None:
    table = made(
        ("root.west", "us/leaf-1", "request", [0.001] * 300),
        ("root.north", "us/leaf-1", "request", [0.5] * 99),
        ("us/leaf-1", "root.west", "observation", [0.5] * 99),
    )

    requests, reports = hop_overheads(TOPOLOGY, table)

    assert requests.worst_p99_s == pytest.approx(0.001)
    assert requests.p99_s == 0.5
    assert math.isnan(reports.worst_p99_s)


def test_later_links_never_make_a_hop_quicker() -> None:
    found = [
        hop_overheads(TOPOLOGY, made_lateness(made_scenario(), p99_s))[0] for p99_s in (1e-4, 1e-3, 1e-2)
    ]

    for one, later in pairwise(found):
        assert later[2:] > one[2:]


def test_without_links_there_is_no_hop() -> None:
    assert hop_overheads(TOPOLOGY, {}) == []
