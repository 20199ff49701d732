"""Merging joins what every node saw: each joined column checked by hand on a run of eight requests.

The scenario runs at time scale 2, so what the logs call 3.0 s is 1.5 s in the tables. Its requests:

    0  served in us by leaf 1        1  served in us by leaf 2     2  timed out, its reply came late
    3  lost on the way to eu         4  unfinished, still in us    5  had no cell to go to
    6  its root's log tells nothing, leaf 2 of us served it        7  nobody tells anything
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.errors import RunError
from testbed.links.lateness import bin_end_s, bin_of
from testbed.record.gather import Texts
from testbed.record.log import LogWriter, log_header
from testbed.record.merge import merge_run
from testbed.record.parquet import read_run
from testbed.record.read import Columns, read_tables
from testbed.record.run_folder import ArmFolder
from testbed.record.tables import LOGGED, MERGED
from testbed.record.truth import InFlight
from testbed.roles.messages import Outcome
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import build_topology
from testbed.traffic.plan import Plan
from testbed.traffic.sharing import Sharing

NAN = float("nan")
SCALE = 2.0
PLANNED_S = [0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0]

SCENARIO = Scenario.model_validate(
    {
        "name": "tiny",
        "duration": "10 s",
        "time_scale": SCALE,
        "cells": {
            # alpha = half / capacity = 0.1 s and beta = 1 / capacity = 0.1 s
            "us": {
                "servers": 2,
                "leaf": {"count": 2},
                "service": {"rate_curve": {"capacity": "10 /s", "half": 1.0}},
            },
            # alpha = 0.2 s and beta = 0.2 s / 2; capacity 10 /s
            "eu": {"servers": 1, "service": {"slots": 2, "fixed": "200 ms"}},
        },
        "roots": {
            "west": {"traffic": [{"class": "sand", "rate": "5 /s", "policy": "flow"}]},
            "north": {
                "traffic": [
                    {"class": "rock", "rate": "5 /s", "policy": "idlest"},
                    {"class": "sand", "rate": "5 /s", "policy": "even"},
                ]
            },
        },
        "classes": {"sand": {}, "rock": {}},
        "policies": {
            "flow": {"kind": "flow", "step": "0.1 /s^2"},
            "idlest": {"kind": "least_cost", "cost": "in_flight"},
            "even": {"kind": "random"},
        },
        "faults": [
            {"at": "1 s", "for": "2 s", "cell": "us", "set": {"speed": 0.5}},
            {
                "at": "4 s",
                "link": {"from": "cell.us", "to": "root.*", "path": "observation"},
                "set": {"delay": "2 s", "loss": "1 %", "jitter": {"normal": "5 ms"}},
            },
            {"at": "1.1 s", "link": {"from": "us/server-1", "to": "us/leaf-*"}, "set": {"order": "kept"}},
        ],
    }
)
TOPOLOGY = build_topology(SCENARIO)
PLAN = Plan(
    at_s=SCALE * np.array(PLANNED_S),
    root=np.array([0, 0, 1, 1, 1, 1, 0, 0], dtype=np.int32),
    traffic=np.array([0, 0, 0, 0, 1, 0, 0, 0], dtype=np.int32),
    class_index=np.array([0, 0, 1, 1, 0, 1, 0, 0], dtype=np.int32),
    prompt_tokens=np.arange(10, 18),
    output_tokens=np.arange(20, 28),
    sharing=Sharing(  # a prefix and a session, a session alone, blocks of a trace, nothing
        session=np.array([91, 91, 92, 0, 0, 0, 0, 0]),
        starts=np.array([0, 4, 8, 10, 14, 14, 14, 14, 14]),
        pairs=np.array([7, 5, 91, 5, 7, 5, 91, 6, 92, 12, 8, 6, 9, 7]),
    ),
)
LINK_0 = TOPOLOGY.links[0]

# In scenario time; `write_logs` stretches what LOGGED calls a time. Costs and steps stand as a node writes them.
ROWS: list[tuple[str, str, tuple[Any, ...]]] = [
    ("root.west", "dispatches", (0, 0, "root.west", "us", "us/leaf-1", Outcome.COMPLETED, 0.5, 0.55, 1.7, 1.0, 0.3, 1.2)),
    ("root.west", "dispatches", (1, 0, "root.west", "us", "us/leaf-2", Outcome.COMPLETED, 1.0, 1.0, 2.2, 1.0, NAN, 1.4)),
    ("root.north", "dispatches", (2, 0, "root.north", "eu", "eu/leaf-1", Outcome.TIMED_OUT, 1.5, 1.5, NAN, NAN, 0.1, 3.0)),
    ("root.north", "dispatches", (3, 0, "root.north", "eu", "eu/leaf-1", Outcome.TIMED_OUT, 2.0, 2.0, NAN, NAN, 0.1, 4.0)),
    ("root.north", "dispatches", (4, 0, "root.north", "us", "us/leaf-1", Outcome.UNFINISHED, 2.5, 2.5, NAN, NAN, 0.1, 0.5)),
    ("root.north", "dispatches", (5, 0, "root.north", "", "", Outcome.NO_TARGET, 3.0, 3.0, NAN, NAN, NAN, NAN)),
    ("root.north", "late_replies", (2, 0, 9.25)),
    ("us/leaf-1", "visits", (0, 0, "us/leaf-1", "us/server-1", Outcome.COMPLETED, 0.6, 1.6)),
    ("us/leaf-2", "visits", (1, 0, "us/leaf-2", "us/server-2", Outcome.COMPLETED, 1.1, 2.1)),
    ("eu/leaf-1", "visits", (2, 0, "eu/leaf-1", "eu/server-1", Outcome.COMPLETED, 1.7, 9.0)),
    ("us/leaf-1", "visits", (4, 0, "us/leaf-1", "us/server-1", Outcome.UNFINISHED, 2.6, NAN)),
    ("us/leaf-2", "visits", (6, 0, "us/leaf-2", "us/server-2", Outcome.COMPLETED, 3.6, 4.6)),
    ("us/server-1", "services", (0, 0, "us/server-1", 0.7, 0.75, 0.8, 1.5, 1.55, 2, 30)),
    ("us/server-2", "services", (1, 0, "us/server-2", 1.2, 1.2, 1.3, 2.0, 2.0, 0, 0)),
    ("eu/server-1", "services", (2, 0, "eu/server-1", 1.8, 1.9, 2.0, 8.9, 8.95, 0, 12)),
    ("us/server-1", "services", (4, 0, "us/server-1", 2.7, 2.75, NAN, NAN, NAN, 0, 0)),
    ("us/server-2", "services", (6, 0, "us/server-2", 3.7, 3.7, 3.8, 4.5, 4.5, 1, 0)),
    ("root.north", "observations", ("root.north", "eu/leaf-1", "eu", 1, 1.0, 1.5, 1, 2, (1, 2), 30, 40, 7, 0.25, 0.5, 0.001, 0.002, 0.1, NAN, (3, 4), 0.0)),
    ("root.west", "observations", ("root.west", "us/leaf-1", "us", 0, 0.5, 1.0, 3, 4, (3, 4), 50, 60, 8, 0.0, 1.0, NAN, NAN, 0.0, 4.5, (), 0.2)),
    ("us/leaf-1", "news", ("us/leaf-1", "us/server-2", "probe", 3, 0.75, 1.25, 9, -0.25)),
    ("us/leaf-1", "news", ("us/leaf-1", "us/server-1", "observation", 0, 0.5, 1.0, 7, 0.0)),
    ("root.west", "updates", ("root.west", "sand", 0, "us", 1.25, 0.025, 0.1, 0.0025, 0, 0.5, 1.0, 7.0, 1.2, False, 0.05, 0.5, 0.4, True)),
    ("root.west", "updates", ("root.west", "sand", 0, "eu", 1.25, 0.025, 0.1, 0.0025, -1, NAN, NAN, 0.0, 0.4, False, NAN, 0.5, 0.6, True)),
    ("root.west", "updates", ("root.west", "sand", 1, "us", 1.75, 0.025, 0.1, 0.0025, 0, 0.5, 1.0, 7.0, 1.2, True, 0.05, 0.4, 0.3, True)),
    ("root.west", "updates", ("root.west", "sand", 2, "us", 3.25, 0.025, 0.1, 0.0025, 0, 0.5, 1.0, 7.0, 1.2, True, 0.05, 0.3, 0.2, True)),
    ("root.west", "tunings", ("root.west", "sand", 1.25, "flow", 40.0, 30.0, 1.0, 4.0, NAN, NAN, 0.025, 0.25)),
    ("root.north", "decisions", (2, "root.north", "us", 1.5, 0, 0.5, 1.0, 5.0, 5.0, NAN, False)),
    ("root.north", "decisions", (2, "root.north", "eu", 1.5, 1, 1.0, 1.5, 3.0, 3.0, 0.1, True)),
    ("root.north", "decisions", (3, "root.north", "eu", 2.0, 1, 1.0, 1.5, 4.0, 4.0, 0.1, True)),
    ("root.north", "decisions", (4, "root.north", "us", 2.5, 0, 0.5, 1.0, 5.0, 0.5, 0.1, True)),
    ("root.north", "decisions", (4, "root.north", "eu", 2.5, 1, 1.0, 1.5, 3.0, 0.3, 0.1, False)),
    ("us/leaf-2", "counts", ("us/leaf-2", 5.5, 3, 1, 2, 1)),
    ("us/server-2", "samples", ("us/server-2", 0.2, 1, 3, (3, 1), 11, 12, 0.75, 0.15, 9)),
    ("eu/server-1", "samples", ("eu/server-1", 0.1, 0, 1, (0, 1), 13, 14, 0.5, 0.05, 2)),
    ("us/server-1", "applied", (0, "us/server-1", False, 1.0, 1.0)),
    ("us/server-2", "applied", (0, "us/server-2", False, 1.0, 1.5)),
    ("us/server-1", "applied", (0, "us/server-1", True, 3.0, 3.0)),
    ("us/server-2", "applied", (0, "us/server-2", True, 3.0, 3.125)),
    ("us/leaf-1", "applied", (1, "us/leaf-1", False, 4.0, 4.0)),
    # a link of a server may be at fault as well: it must not pass for its speed
    ("us/server-1", "applied", (2, "us/server-1", False, 1.1, 1.1)),
    ("root.west", "processes", ("root.west", 0.5, 0.01, 1000, 0.001, 0.002, 0.3, 0.0, 0.0, 40, 3)),
]  # fmt: skip


def stretched(table: str, row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(
        value * SCALE**column.time_power
        if column.time_power
        else int(value)
        if column.type == "int"
        else value
        for column, value in zip(LOGGED[table], row, strict=True)
    )


def bins(*lateness_s: float) -> list[int]:
    counts = [0] * (max(map(bin_of, lateness_s)) + 1)
    for each in lateness_s:
        counts[bin_of(each)] += 1
    return counts


# In run time and wall time, as the engine writes them: link 0 in its first two seconds, and link 1 in virtual time.
LINK_ROWS: list[tuple[str, str, tuple[Any, ...]]] = [
    ("root.west", "sent", (0, 1.0003, 7, 1, 1, 1, 2, 2, 3, 0.16)),
    ("us/leaf-1", "delivered", (0, 0.9998, 3, 1, 0.006, 0.004, bins(0.001, 0.001, 0.004))),
    ("us/leaf-1", "delivered", (0, 1.2, 1, 0, 0.01, 0.01, bins(0.01))),
    ("us/leaf-1", "delivered", (0, 2.0, 2, 0, 0.004, 0.002, bins(0.002, 0.002))),
    ("root.north", "sent", (1, 3.0, 2, 2, 0, 0, 0, 0, 0, 0.0)),
    ("us/leaf-1", "delivered", (2, 3.0, 4, 0, 0.0, 0.0, ())),
]


def header(node: str, **changes: Any) -> dict[str, Any]:
    words = {"scenario": "tiny", "scenario_hash": "abc", "seed": 3, "version": "1.2", "engine": "virtual"}
    return log_header(**{**words, "node": node, "started": "virtual", **changes})


def write_logs(folder: ArmFolder) -> None:
    folder.make()
    writers = {node: LogWriter(folder.log(node), header(node), rows_per_chunk=2) for node in TOPOLOGY.nodes}
    for node, table, row in ROWS:
        writers[node].append(table, stretched(table, row))
    for node, table, row in LINK_ROWS:
        writers[node].append(table, row)
    for writer in writers.values():
        writer.close()


@pytest.fixture(scope="module")
def arm(tmp_path_factory: pytest.TempPathFactory) -> ArmFolder:
    folder = ArmFolder(tmp_path_factory.mktemp("run") / "main")
    write_logs(folder)
    assert merge_run(folder, SCENARIO, TOPOLOGY, PLAN) == ()
    return folder


@pytest.fixture(scope="module")
def tables(arm: ArmFolder) -> dict[str, Columns]:
    return read_tables(arm.tables)


def assert_columns(table: Columns, expected: dict[str, list[Any]]) -> None:
    for name, values in expected.items():
        if table[name].dtype.kind == "f":
            np.testing.assert_allclose(table[name], values, rtol=1e-12, err_msg=name)
        else:
            assert table[name].tolist() == values, name


def test_every_table_has_the_columns_that_are_promised(tables: dict[str, Columns]) -> None:
    assert {name: list(table) for name, table in tables.items()} == {
        name: [column.name for column in due] for name, due in MERGED.items()
    }


def test_every_planned_request_has_one_row(tables: dict[str, Columns]) -> None:
    assert_columns(
        tables["requests"],
        {
            "request_id": list(range(8)),
            "class": ["sand", "sand", "rock", "rock", "sand", "rock", "sand", "sand"],
            "root": ["root.west"] * 2 + ["root.north"] * 4 + ["root.west"] * 2,
            "prompt_tokens": list(range(10, 18)),
            "output_tokens": list(range(20, 28)),
            "planned_at_s": PLANNED_S,
            "outcome": [
                "completed", "completed", "timed_out", "timed_out", "unfinished", "no_target", "unfinished", "unfinished",
            ],
            "attempts": [1, 1, 1, 1, 1, 0, 1, 0],
            "session": [91, 91, 92, 0, 0, 0, 0, 0],
            "prefix": [7, 7, 0, 8, 0, 0, 0, 0],
        },
    )  # fmt: skip


def test_requests_tell_where_they_went(tables: dict[str, Columns]) -> None:
    assert_columns(
        tables["requests"],
        {
            "cell": ["us", "us", "eu", "eu", "us", "", "us", ""],
            "leaf": ["us/leaf-1", "us/leaf-2", "eu/leaf-1", "eu/leaf-1", "us/leaf-1", "", "us/leaf-2", ""],
            "server": ["us/server-1", "us/server-2", "eu/server-1", "", "us/server-1", "", "us/server-2", ""],
            "preemptions": [2, 0, 0, 0, 0, 0, 1, 0],
            "cached_tokens": [30, 0, 12, 0, 0, 0, 0, 0],
        },
    )


def test_requests_carry_the_instants_of_every_node(tables: dict[str, Columns]) -> None:
    assert_columns(
        tables["requests"],
        {
            "sent_at_s": [0.55, 1.0, 1.5, 2.0, 2.5, 3.0, NAN, NAN],
            "at_leaf_s": [0.6, 1.1, 1.7, NAN, 2.6, NAN, 3.6, NAN],
            "at_server_s": [0.7, 1.2, 1.8, NAN, 2.7, NAN, 3.7, NAN],
            "started_at_s": [0.75, 1.2, 1.9, NAN, 2.75, NAN, 3.7, NAN],
            "first_token_at_s": [0.8, 1.3, 2.0, NAN, NAN, NAN, 3.8, NAN],
            "finished_at_s": [1.5, 2.0, 8.9, NAN, NAN, NAN, 4.5, NAN],
            "answered_at_s": [1.55, 2.0, 8.95, NAN, NAN, NAN, 4.5, NAN],
            "left_leaf_s": [1.6, 2.1, 9.0, NAN, NAN, NAN, 4.6, NAN],
            "residence_s": [1.0, 1.0, NAN, NAN, NAN, NAN, NAN, NAN],
            "staleness_s": [0.3, NAN, 0.1, 0.1, 0.1, NAN, NAN, NAN],
        },
    )


def test_a_late_reply_is_told_beside_the_timeout(tables: dict[str, Columns]) -> None:
    assert_columns(
        tables["requests"],
        {
            "replied_at_s": [1.7, 2.2, 9.25, NAN, NAN, NAN, NAN, NAN],
            "late": [False, False, True, False, False, False, False, False],
        },
    )


def test_believed_costs_in_seconds_are_in_scenario_time_and_those_in_requests_are_not(
    tables: dict[str, Columns],
) -> None:
    """flow and even count seconds; idlest counts requests in flight."""
    assert_columns(tables["requests"], {"believed_cost": [0.6, 0.7, 3.0, 4.0, 0.25, NAN, NAN, NAN]})
    assert_columns(
        tables["updates"], {"believed_cost": [0.6, 0.2, 0.6, 0.6], "step": [0.1] * 4, "product": [0.005] * 4}
    )
    assert_columns(tables["decisions"], {"believed_cost": [5.0, 3.0, 4.0, 0.25, 0.15]})


def test_updates_stand_beside_the_truth_at_their_instant(tables: dict[str, Columns]) -> None:
    """Requests 0 and 1 are in us at 1.25 s, 1 alone at 1.75 s, 4 alone at 3.25 s; servers fell to half speed one by one.

    The marginal cost of n per server at speed v is (0.1 + 0.1 n)^2 / (0.1 v), and the root's round trip on top.
    """
    assert_columns(
        tables["updates"],
        {
            "cell": ["us", "eu", "us", "us"],
            "used_at_s": [1.25, 1.25, 1.75, 3.25],
            "true_in_flight": [2.0, 0.0, 1.0, 1.0],
            "true_cost": [
                0.2**2 / (0.1 * 0.75) + 0.05,
                0.2,
                0.15**2 / (0.1 * 0.5) + 0.05,
                0.15**2 / 0.1 + 0.05,
            ],
        },
    )


def test_what_a_policy_settled_on_is_told_in_scenario_time(tables: dict[str, Columns]) -> None:
    assert_columns(
        tables["tunings"],
        {
            "at_s": [1.25],
            "mode": ["flow"],
            "rate_per_s": [40.0],
            "loop_delay_s": [1.0],
            "step": [0.1],
            "critical_step": [1.0],
        },
    )


def test_decisions_stand_beside_the_truth_then_and_when_the_request_arrived(
    tables: dict[str, Columns],
) -> None:
    """Request 2 found eu without itself; request 3 never arrived; `even` counts requests per capacity, 10 /s in eu."""
    assert_columns(
        tables["decisions"],
        {
            "request_id": [2, 2, 3, 4, 4],
            "cell": ["us", "eu", "eu", "us", "eu"],
            "chosen": [False, True, True, True, False],
            "true_in_flight": [2.0, 0.0, 1.0, 0.0, 1.0],
            "true_cost": [2.0, 0.0, 1.0, 0.0, 0.1],
            "true_in_flight_at_arrival": [1.0, 0.0, NAN, 0.0, 1.0],
            "true_cost_at_arrival": [1.0, 0.0, NAN, 0.0, 0.1],
            "measured_at_s": [0.5, 1.0, 1.0, 0.5, 1.0],
            "network_s": [NAN, 0.1, 0.1, 0.1, 0.1],
        },
    )


def test_observations_are_in_the_order_of_their_receipt(tables: dict[str, Columns]) -> None:
    assert_columns(
        tables["observations"],
        {
            "root": ["root.west", "root.north"],
            "received_at_s": [1.0, 1.5],
            "by_class": [[3, 4], [1, 2]],
            "fitted_b_s": [NAN, 0.002],
            "error_fraction": [0.0, 0.25],
        },
    )


def test_news_of_servers_are_in_the_order_of_their_receipt(tables: dict[str, Columns]) -> None:
    assert_columns(
        tables["news"],
        {
            "server": ["us/server-1", "us/server-2"],
            "path": ["observation", "probe"],
            "measured_at_s": [0.5, 0.75],
            "received_at_s": [1.0, 1.25],
            "in_flight": [7, 9],
            "clock_error_s": [0.0, -0.25],
        },
    )


def test_counts_of_balancers_keep_what_they_counted(tables: dict[str, Columns]) -> None:
    assert_columns(
        tables["counts"],
        {"node": ["us/leaf-2"], "at_s": [5.5], "counted": [3], "least": [1], "open": [2], "miscounted": [1]},
    )


def test_samples_gain_their_cell(tables: dict[str, Columns]) -> None:
    assert_columns(
        tables["cells"],
        {
            "cell": ["eu", "us"],
            "server": ["eu/server-1", "us/server-2"],
            "at_s": [0.1, 0.2],
            "busy_s": [0.05, 0.15],
            "by_class": [[0, 1], [3, 1]],
        },
    )


def test_links_join_both_ends_by_second(tables: dict[str, Columns]) -> None:
    """Drawn delays are in scenario time, lateness in wall time; what the end of the run adds counts to its second."""
    fourth, second = bin_end_s(bin_of(0.01)), bin_end_s(bin_of(0.001))
    assert (LINK_0.source, LINK_0.target, LINK_0.path) == ("root.west", "us/leaf-1", "request")
    assert_columns(
        tables["links"],
        {
            "source": [TOPOLOGY.links[i].source for i in (0, 0, 1, 2)],
            "target": [TOPOLOGY.links[i].target for i in (0, 0, 1, 2)],
            "path": [TOPOLOGY.links[i].path for i in (0, 0, 1, 2)],
            "at_s": [0.5, 1.0, 1.5, 1.5],
            "sent": [7, 0, 2, 0],
            "dropped_loss": [1, 0, 2, 0],
            "dropped_cut": [1, 0, 0, 0],
            "dropped_queue": [1, 0, 0, 0],
            "dropped_dead": [2, 0, 0, 0],
            "duplicated": [2, 0, 0, 0],
            "reordered": [3, 0, 0, 0],
            "delivered": [4, 2, 0, 4],
            "inversions": [1, 0, 0, 0],
            "drawn_s_mean": [0.16 / 4 / SCALE, NAN, NAN, NAN],
            "lateness_s_mean": [0.004, 0.002, NAN, 0.0],
            "lateness_s_p50": [second, bin_end_s(bin_of(0.002)), NAN, 0.0],
            "lateness_s_p99": [fourth, bin_end_s(bin_of(0.002)), NAN, 0.0],
            "lateness_s_max": [0.01, 0.002, NAN, 0.0],
        },
    )


def test_lateness_sums_up_each_link(tables: dict[str, Columns]) -> None:
    table = tables["lateness"]
    assert len(table["source"]) == len(TOPOLOGY.links)
    assert table["lateness_bins"].sum(axis=1).tolist() == [6] + [0] * (len(TOPOLOGY.links) - 1)
    first = {name: values[:4] for name, values in table.items()}
    assert_columns(
        first,
        {
            "sent": [7, 2, 0, 0],
            "dropped_loss": [1, 2, 0, 0],
            "delivered": [6, 0, 4, 0],
            "lateness_s_mean": [0.02 / 6, NAN, 0.0, NAN],
            "lateness_s_p50": [bin_end_s(bin_of(0.002)), NAN, 0.0, NAN],
            "lateness_s_p99": [bin_end_s(bin_of(0.01)), NAN, 0.0, NAN],
            "lateness_s_max": [0.01, NAN, 0.0, NAN],
        },
    )


def test_faults_tell_plan_and_deed(tables: dict[str, Columns]) -> None:
    """Leaf 2 of us was to slow its observations down as well, and did not say that it did."""
    assert_columns(
        tables["faults"],
        {
            "fault": [0, 1, 2],
            "target": ["cell us", "link cell.us -> root.* observation", "link us/server-1 -> us/leaf-*"],
            "parameters": ["speed 0.5", "delay 2 s, jitter normal 5 ms, loss 1 %", "order kept"],
            "planned_at_s": [1.0, 4.0, 1.1],
            "applied_at_s": [1.5, 4.0, 1.1],
            "heal_planned_at_s": [3.0, NAN, NAN],
            "healed_at_s": [3.125, NAN, NAN],
            "nodes_expected": [2, 2, 1],
            "nodes_applied": [2, 1, 1],
            "nodes_healed": [2, 0, 0],
            "nodes_missed": [0, 0, 0],
        },
    )


def test_every_node_tells_when_it_applied_and_healed_each_fault(tables: dict[str, Columns]) -> None:
    assert_columns(
        tables["applied"],
        {
            "fault": [0, 2, 0, 0, 0, 1],
            "node": [
                f"us/{name}"
                for name in ("server-1", "server-1", "server-2", "server-1", "server-2", "leaf-1")
            ],
            "healed": [False, False, False, True, True, False],
            "planned_at_s": [1.0, 1.1, 1.0, 3.0, 3.0, 4.0],
            "done_at_s": [1.0, 1.1, 1.5, 3.0, 3.125, 4.0],
        },
    )


def test_processes_keep_wall_time(tables: dict[str, Columns]) -> None:
    assert_columns(
        tables["processes"],
        {"node": ["root.west"], "at_s": [0.5], "cpu_s": [0.01], "stall_s": [0.002], "stall_at_s": [0.3]},
    )


def test_equal_logs_give_equal_bytes(arm: ArmFolder, tmp_path: Path) -> None:
    again = ArmFolder(tmp_path / "again")
    write_logs(again)

    merge_run(again, SCENARIO, TOPOLOGY, PLAN)

    for name in MERGED:
        file = f"{name}.parquet"
        assert (again.tables / file).read_bytes() == (arm.tables / file).read_bytes(), name


def test_a_table_tells_its_run(arm: ArmFolder) -> None:
    said = read_run(arm.tables / "requests.parquet")

    assert {
        key: said[key] for key in ("table", "scenario", "scenario_hash", "seed", "engine", "version")
    } == {
        "table": "requests",
        "scenario": "tiny",
        "scenario_hash": "abc",
        "seed": "3",
        "engine": "virtual",
        "version": "1.2",
    }


def test_only_the_last_attempt_of_a_request_is_told(tmp_path: Path) -> None:
    """The first attempt went to eu and timed out; the second came back from us."""
    folder = ArmFolder(tmp_path / "arm")
    folder.make()
    log = LogWriter(folder.log("all"), header("all"))
    log.append("dispatches", (0, 1, "root.west", "us", "us/leaf-1", 0, 1.0, 3.0, 4.0, 0.5, 0.1, 1.0))
    log.append("dispatches", (0, 0, "root.west", "eu", "eu/leaf-1", 2, 1.0, 1.0, NAN, NAN, 0.1, 1.0))
    log.append("visits", (0, 1, "us/leaf-1", "us/server-2", 0, 3.2, 3.7))
    log.append("visits", (0, 0, "eu/leaf-1", "eu/server-1", 0, 1.2, 6.0))
    log.append("late_replies", (0, 0, 6.2))
    log.close()

    merge_run(folder, SCENARIO, TOPOLOGY, PLAN)

    requests = read_tables(folder.tables, ["requests"])["requests"]
    first = {name: values[:1] for name, values in requests.items()}
    expected = {
        "attempts": [2],
        "cell": ["us"],
        "server": ["us/server-2"],
        "outcome": ["completed"],
        "late": [False],
    }
    assert_columns(first, {**expected, "at_leaf_s": [1.6], "replied_at_s": [2.0]})


def test_a_run_of_which_nothing_was_logged_still_has_all_tables(tmp_path: Path) -> None:
    """Everybody died before the first chunk: every planned request is unfinished."""
    folder = ArmFolder(tmp_path / "arm")
    folder.make()
    LogWriter(folder.log("us/leaf-1"), header("us/leaf-1"))

    problems = merge_run(folder, SCENARIO, TOPOLOGY, PLAN)

    assert problems == ("us_leaf-1.log: no end marker: the node did not close its log",)
    requests = read_tables(folder.tables)["requests"]
    assert requests["outcome"].tolist() == ["unfinished"] * 8
    assert np.isnan(requests["sent_at_s"]).all()


def test_a_torn_log_is_merged_and_named(arm: ArmFolder, tmp_path: Path) -> None:
    folder = ArmFolder(tmp_path / "torn")
    write_logs(folder)
    path = folder.log("us/server-2")
    path.write_bytes(path.read_bytes()[:-3])

    problems = merge_run(folder, SCENARIO, TOPOLOGY, PLAN)

    assert len(problems) == 1
    assert problems[0].startswith("us_server-2.log: cut short: the frame at byte ")
    found, whole = read_tables(folder.tables)["requests"], read_tables(arm.tables)["requests"]
    assert found["finished_at_s"].tolist()[:2] == whole["finished_at_s"].tolist()[:2]


def test_logs_of_two_runs_are_not_merged(tmp_path: Path) -> None:
    folder = ArmFolder(tmp_path / "arm")
    folder.make()
    LogWriter(folder.log("a"), header("a")).close()
    LogWriter(folder.log("b"), header("b", seed=4)).close()

    with pytest.raises(RunError, match="is of another run than the logs beside it"):
        merge_run(folder, SCENARIO, TOPOLOGY, PLAN)


instants = st.sampled_from([0.0, 0.5, 1.0, 1.5, 2.0])


@given(
    st.lists(
        st.tuples(st.sampled_from(["us/leaf-1", "us/leaf-2", "eu/leaf-1"]), instants, instants | st.just(NAN))
    )
)
def test_requests_in_flight_count_those_that_came_and_have_not_left(
    stays: list[tuple[str, float, float]],
) -> None:
    """N_j(t) = requests with at_leaf <= t < left_leaf over all leaves of the cell, one by one."""
    stays = [(leaf, came_s, came_s + stay_s) for leaf, came_s, stay_s in stays]
    visits = {
        "leaf": Texts.of([leaf for leaf, *_ in stays]),
        "at_leaf_s": np.array([came_s for _, came_s, _ in stays]),
        "left_leaf_s": np.array([left_s for *_, left_s in stays]),
    }
    at_s = np.array([0.0, 0.25, 1.0, 2.0, 3.0, NAN])

    for position, cell in enumerate(SCENARIO.cells):
        found = InFlight(TOPOLOGY, visits).at(np.full(len(at_s), position), at_s)

        mine = [(came_s, left_s) for leaf, came_s, left_s in stays if leaf.startswith(cell)]
        counts = [sum(came_s <= t and not left_s <= t for came_s, left_s in mine) for t in at_s[:-1]]
        assert found[:-1].tolist() == counts
        assert np.isnan(found[-1])
