"""Scenarios that nobody thought of: whatever is put together, every law holds and no message is unaccounted for."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.analysis.laws import all_laws
from testbed.analysis.records import ended_s
from testbed.analysis.summary import summarize_arm
from testbed.scenario.topology import build_topology
from tests.laws.virtual_run import VirtualRun, run_words

CELLS = ("us", "eu", "asia")
SERVICES = (
    {"service": {"slots": 1, "exponential": "20 ms"}},
    {"service": {"slots": 3, "fixed": "50 ms"}},
    {"service": {"rate_curve": {"capacity": "60 /s", "half": 3}, "work": "fixed"}},
    {"profile": "small", "max_sequences": 4, "kv_tokens": 200, "step_tokens": 32},
    {"profile": "llama3-8b_a100_tp1_composed"},
    {"profile": "llama3-8b_a100_tp1_composed", "prefix_cache_tokens": 400},
)
SHARING: tuple[dict[str, Any], ...] = (
    {},
    {"sessions": {"turns": 3.0, "think_time": "300 ms"}},
    {"prefixes": {"count": 3, "tokens": 60}, "sessions": {"turns": 2.0, "count": 4}},
)
COSTS = ("in_flight", "in_flight_per_capacity", "latency", "marginal")


@st.composite
def beliefs(draw: st.DrawFn) -> dict[str, Any]:
    """What a policy makes of own requests, of old reports and of none."""
    stale = draw(st.sampled_from(("last", "ignored", "empty")))
    when_none = draw(st.sampled_from(("any", "hold", "refuse")))
    own_counts = draw(st.sampled_from(("none", "overwrite", "add", "max", "scaled")))
    return {
        "own_counts": own_counts,
        "stale": stale,
        **({} if stale == "last" else {"stale_after": draw(st.sampled_from(("30 ms", "250 ms")))}),
        "unheard": draw(st.sampled_from(("empty", "ignored"))),
        "decision_time": draw(st.sampled_from(("0 s", "0 s", "15 ms"))),
        "when_none": when_none,
        **({"hold_queue": draw(st.sampled_from((1, 40)))} if when_none == "hold" else {}),
    }


def ways_to_report() -> st.SearchStrategy[dict[str, Any]]:
    return st.sampled_from(
        (
            {},
            {"read": "all"},
            {"send": "on_change", "threshold": 2},
            {"send": "on_change", "lease": "1 s"},
            {"send": "when_polled"},
            {"send": "when_polled", "polls": "serial"},
        )
    )


@st.composite
def cost_policies(draw: st.DrawFn) -> dict[str, Any]:
    view = draw(st.sampled_from(("reports", "own_counts")))
    return {
        "kind": draw(st.sampled_from(("least_cost", "two_choices"))),
        "cost": draw(st.sampled_from(COSTS)),
        "model": draw(st.sampled_from(("profile", "scaled", "fitted"))),
        "view": view,
        "ties": draw(st.sampled_from(("rotated", "random", "first"))),
        **(draw(beliefs()) if view == "reports" else {}),
    }


@st.composite
def flow_policies(draw: st.DrawFn) -> dict[str, Any]:
    cost = draw(st.sampled_from(COSTS))
    in_seconds = cost in ("latency", "marginal", "in_flight_per_capacity")
    update = draw(st.sampled_from(("timer", "on_report")))
    words = {
        **draw(beliefs()),
        "kind": "flow",
        "cost": cost,
        "model": draw(st.sampled_from(("profile", "scaled", "fitted"))),
        "step": "0.3 /s^2" if in_seconds else "0.01 /s",
        "update": update,
        "sampling": draw(st.sampled_from(("chance", "low_discrepancy"))),
        "start": draw(st.sampled_from(("even", "capacity"))),
    }
    return words if update == "on_report" else {**words, "interval": draw(st.sampled_from(("70 ms", "1 s")))}


PLAIN = (
    {"kind": "random"},
    {"kind": "round_robin"},
    *({"kind": "weighted", "draw": draw} for draw in ("chance", "low_discrepancy", "request")),
    {"kind": "consistent_hash", "key": "session"},
    {"kind": "consistent_hash", "key": "prefix", "bound": 1.25, "view": "reports"},
    {"kind": "prefix_aware", "balance_requests": 3.0},
)
# News always takes some time: without any delay there is no loop delay to measure the settling by.
NEWS = {"from": "cell.*", "to": "root.*", "path": "observation", "delay": "5 ms"}
PREQUAL = {"kind": "prequal", "pool": 2, "probes_per_request": 1.5}


def root_policies() -> st.SearchStrategy[dict[str, Any]]:
    return st.one_of(st.sampled_from(PLAIN), cost_policies(), flow_policies())


def leaf_policies() -> st.SearchStrategy[dict[str, Any]]:
    return st.one_of(st.sampled_from((*PLAIN, PREQUAL)), cost_policies())


def subset(draw: st.DrawFn, names: list[str]) -> list[str]:
    return draw(st.lists(st.sampled_from(names), min_size=1, max_size=len(names), unique=True))


@st.composite
def impairments(draw: st.DrawFn) -> dict[str, Any]:
    """Every line says its jitter: one that an earlier line set may not fit a shorter delay."""
    delay = draw(st.sampled_from(("0 ms", "10 ms", "150 ms")))
    jitters = ({"normal": "20 ms"}, {"uniform": "5 ms"}, {"lognormal": "8 ms"}, {"table": ["0 ms", "30 ms"]})
    return {
        "delay": delay,
        "jitter": draw(st.sampled_from(jitters[:1] if delay == "0 ms" else jitters)),
        "loss": draw(st.sampled_from(("0 %", "5 %", "40 %"))),
        "order": draw(st.sampled_from(("kept", "free"))),
    }


@st.composite
def link_sets(draw: st.DrawFn) -> dict[str, str]:
    ends = st.sampled_from(
        (("root.*", "cell.*"), ("cell.*", "root.*"), ("*/leaf-*", "*/server-*"), ("*/server-*", "*/leaf-*"))
    )
    source, target = draw(ends)
    return {"from": source, "to": target}


@st.composite
def faults(draw: st.DrawFn, cells: list[str]) -> dict[str, Any]:
    at_s = draw(st.sampled_from((0, 1, 2.5)))
    when = {"at": f"{at_s} s", **draw(st.sampled_from(({}, {"for": "700 ms"}, {"for": "3 s"})))}
    if draw(st.booleans()):
        return {
            **when,
            "cell": draw(st.sampled_from(cells)),
            "set": {"speed": draw(st.sampled_from((0.2, 3.0)))},
        }
    return {**when, "link": draw(link_sets()), "set": draw(impairments())}


@st.composite
def scenarios(draw: st.DrawFn) -> dict[str, Any]:
    cells = list(CELLS[: draw(st.integers(1, 3))])
    policies = {"one": draw(root_policies()), "two": draw(root_policies()), "inside": draw(leaf_policies())}
    leaf = st.fixed_dictionaries({"policy": st.just("inside"), "count": st.integers(1, 2)})
    streams = [
        {
            "class": name,
            "policy": policy,
            "rate": f"{rate} /s",
            "allowed": subset(draw, cells),
            "arrivals": draw(st.sampled_from(("poisson", "evenly_spaced", {"gamma": {"cv": 3.0}}))),
        }
        for name, policy, rate in (("sand", "one", 40), ("stone", "two", 9), ("sand", "two", 20))
    ]
    return {
        "name": "random",
        "duration": "4 s",
        "drain": draw(st.sampled_from(("0 s", "20 s"))),
        "seed": draw(st.integers(0, 1000)),
        "cells": {
            name: {
                "servers": draw(st.integers(1, 3)),
                **draw(st.sampled_from(SERVICES)),
                "leaf": draw(leaf),
                "server_reports": {"every": "130 ms", **draw(ways_to_report())},
            }
            for name in cells
        },
        "roots": {"a": {"traffic": streams[:2]}, "b": {"traffic": streams[2:]}},
        "reports": {"every": draw(st.sampled_from(("50 ms", "400 ms"))), "phase": draw(st.sampled_from(("staggered", "in_phase"))), **draw(ways_to_report())},
        "classes": {
            "sand": {"prompt_tokens": 20, "output_tokens": {"geometric": {"mean": 5.0}}, "timeout": draw(st.sampled_from(("60 ms", "900 ms")))},
            "stone": {"prompt_tokens": {"lognormal": {"mean": 90.0, "cv": 1.0}}, "output_tokens": 30, "timeout": "2 s", **draw(st.sampled_from(SHARING))},
        },
        "policies": policies,
        "links": [NEWS, *draw(st.lists(st.builds(lambda ends, words: {**ends, **words}, link_sets(), impairments()), max_size=4))],
        "faults": draw(st.lists(faults(cells), max_size=3)),
        "records": {"decisions": "20 %"},
    }  # fmt: skip


@settings(max_examples=20, deadline=None, derandomize=True, database=None)
@given(scenarios())
def test_any_scenario_keeps_every_law(words: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run = run_words(Path(folder) / "main", words)

    ended = ended_s(run.scenario, run.outcome)
    broken = [
        law
        for law in all_laws(run.scenario, build_topology(run.scenario), run.tables, ended)
        if not law.holds
    ]
    assert broken == []
    assert [line for line in run.outcome.ledger if line.gap] == []
    assert run.outcome.log_problems == ()
    assert_constraints_kept(run)
    assert_a_summary_can_be_written(run)


def assert_constraints_kept(run: VirtualRun) -> None:
    """Every stream's requests stay in its allowed cells; shares are a distribution, 0 where forbidden."""
    requests, updates = run.tables["requests"], run.tables["updates"]
    sent = requests["cell"] != ""
    for root, spec in run.scenario.roots.items():
        for line in spec.traffic:
            mine = sent & (requests["root"] == f"root.{root}") & (requests["class"] == line.class_)
            assert set(requests["cell"][mine]) <= set(line.allowed or run.scenario.cells)
    assert (updates["probability"] >= 0.0).all()
    assert (updates["probability"][~updates["allowed"].astype(bool)] == 0.0).all()
    totals = updates["probability"].reshape(-1, len(run.scenario.cells)).sum(axis=1)
    assert np.abs(totals - 1.0).max(initial=0.0) < 1e-12


def assert_a_summary_can_be_written(run: VirtualRun) -> None:
    """Strict JSON, also where nothing was measured."""
    summary = summarize_arm(run.scenario, run.tables, run.outcome, ())
    assert summary["laws"]["broken"] == 0
    assert summary["verdict"] in ("valid", "suspect"), summary["verdict_reasons"]
    json.dumps(summary, allow_nan=False)
