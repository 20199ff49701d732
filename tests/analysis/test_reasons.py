"""Whatever a check finds, its reason names the check, the process, the instant and what to try."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from testbed.analysis.fidelity import measure_fidelity
from testbed.analysis.laws import all_laws
from testbed.analysis.pools import Pools, judged_links
from testbed.analysis.reason import Places, reason
from testbed.analysis.records import Tables, Window
from testbed.analysis.verdict import CHECKS, LIVE_CHECKS, Verdict, judge
from testbed.record.outcome import Death, LedgerLine, RunOutcome
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import build_topology
from tests.analysis.made_arms import fail, made_lateness, made_processes, made_scenario, made_tables, steady
from tests.analysis.test_host import under_pressure
from tests.analysis.test_timers import made_timers

ADVICE = re.compile(r"; (try|run|see|compare|end|reports were|keep) ")
INSTANT = re.compile(r"\b\d+\.\d+ s\b|over the whole run|before the start")
OF_A_PROCESS = {"ending", "timers", "stall", "timer lag"}  # which these name, not a node of it
OF_THE_MACHINE = {"pressure"}
AFTER_SENDING = (
    "at_leaf_s", "at_server_s", "started_at_s", "first_token_at_s", "finished_at_s", "answered_at_s", "left_leaf_s",
    "replied_at_s",
)  # fmt: skip


def shared_scenario() -> Scenario:
    """Roots in one process, cells in another; a fault late in the run."""
    fault = {"at": "19 s", "leaf": "asia/leaf-1", "set": {"leak": "5 %"}}
    links = [
        {"from": "root.*", "to": "cell.*", "path": "request", "delay": "20 ms"},
        {"from": "cell.*", "to": "root.*", "path": "reply", "delay": "20 ms", "loss": "50 %"},
        {"from": "cell.*", "to": "root.*", "path": "observation", "delay": "100 ms"},
    ]
    return made_scenario(processes={"roots": 1, "cells": 1}, faults=[fault], links=links)


def bad_tables(scenario: Scenario) -> Tables:
    """All that can be late or wrong is."""
    tables = made_tables(scenario, steady(0.4, 0.3, 0.3), rate_per_s=100.0)
    requests, lateness = tables["requests"], made_lateness(scenario, 0.05)
    for column in ("sent_at_s", *AFTER_SENDING):
        requests[column] += 0.01  # the generator slips
    for column in AFTER_SENDING:
        requests[column] += 0.02  # and so does the first link
    for column in ("answered_at_s", "left_leaf_s"):
        requests[column] += 0.01  # servers are late with their steps, and replies come before their time
    requests["replied_at_s"][7] = requests["left_leaf_s"][7] - 0.001
    unsent = np.arange(50, 100)
    fail(requests, unsent, "unfinished")
    for column in ("sent_at_s", "at_leaf_s"):
        requests[column][unsent] = np.nan
    faults = tables["faults"]
    nodes = {"nodes_expected": np.array([1]), "nodes_applied": np.array([0]), "nodes_healed": np.array([0])}
    done = {"applied_at_s": np.array([19.5]), "healed_at_s": np.array([np.nan])}
    count = lateness["delivered"]
    return {
        **tables,
        "lateness": {
            **lateness,
            "sent": count,
            "dropped_loss": np.full(len(count), 100),
            "drawn_s_mean": np.full(len(count), 0.07),
        },
        "links": {
            **{key: lateness[key] for key in ("source", "target", "path", "lateness_s_max")},
            "at_s": np.full(len(count), 4.0),
        },
        "processes": {**made_processes(0.9), "loop_lag_s": np.full(40, 0.9)},
        "faults": {**faults, **nodes, **done},
        "host": under_pressure(2.0),
        "timers": made_timers(late=[0.005] * 40),
    }


def bad_verdict() -> Verdict:
    scenario = shared_scenario()
    topology, tables = build_topology(scenario), bad_tables(scenario)
    gap = LedgerLine("root.west", "us/leaf-1", "request", 100, 0, {"loss": 1}, 97, 1)
    dead = Death("cells-1", "signal 9", 3.0, "out of memory\n")
    outcome = RunOutcome("live", "actual", 22.0, True, ledger=(gap,), deaths=(dead,), interrupted=True)
    return judge(
        scenario,
        topology,
        tables,
        outcome,
        lateness=judged_links(tables["lateness"], Pools(scenario, topology)),
        laws=all_laws(scenario, topology, tables, 22.0),
        loop_delay_s=0.1,
        fidelity=measure_fidelity(scenario, topology, tables, outcome, Window(5.0, 20.0)),
        log_problems=("cells-1.log: no end marker",),
    )


@pytest.fixture(name="found", scope="module")
def whatever_can_be_found() -> Verdict:
    return bad_verdict()


def reasons_of(found: Verdict, check: str) -> list[str]:
    return [each for each in found.reasons if check in each.split(":")[0]]


@pytest.mark.parametrize("check", [*CHECKS, *LIVE_CHECKS])
def test_a_reason_names_its_check_the_process_the_instant_and_what_to_try(found: Verdict, check: str) -> None:
    assert found.checks[check] not in ("valid", "unknown", "not asked")
    reasons = reasons_of(found, check)
    assert reasons
    for each in reasons:
        assert ADVICE.search(each), each
        assert INSTANT.search(each.split(";")[0]), each
        if check not in OF_A_PROCESS | OF_THE_MACHINE:
            assert re.search(r"(in|and|into) process(es)? (roots|cells)-1", each), each


def test_every_reason_is_that_of_a_check(found: Verdict) -> None:
    assert [
        each for each in found.reasons if not any(check in each.split(":")[0] for check in found.checks)
    ] == []


def test_the_root_that_sent_least_is_named_with_the_first_request_that_it_missed(found: Verdict) -> None:
    (arrivals,) = reasons_of(found, "arrivals")

    assert re.match(
        r"arrivals: 50 of \d+ planned requests \(2\.\d+%\) were never sent, \d+ of them by root\.\w+, in process roots-1, "
        r"the first planned at 0\.\d+ s, limit 1\.0%; try a lower rate or a larger time_scale$",
        arrivals,
    )


def test_a_process_is_named_where_nodes_share_it_and_not_where_a_node_has_its_own() -> None:
    scenario = made_scenario(processes={"named": {"us_and_eu": ["us/*", "eu/*"]}})
    places = Places(scenario, build_topology(scenario))

    assert places.process("us/leaf-1") == "in process us_and_eu"
    assert places.process("root.west") == places.process() == places.process("nobody") == ""
    assert places.process("root.west", "us/leaf-1", "eu/leaf-1") == "in process us_and_eu"


def test_a_reason_without_an_instant_or_a_limit_leaves_them_out() -> None:
    words: dict[str, Any] = {"process": "in process p", "when": "", "advice": "try an idle host"}

    assert reason("stall", "9 s at a", **words) == "stall: 9 s at a, in process p; try an idle host"
    assert reason("stall", "9 s at a", **words | {"when": "at 1 s"}, limit="2 s", why="; it slept") == (
        "stall: 9 s at a, in process p, at 1 s, limit 2 s; try an idle host; it slept"
    )
