"""Arms made up in memory: requests whose choice of cell follows a given swing, and all tables that belong to them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from testbed.analysis.records import Table, Tables
from testbed.links.lateness import BIN_COUNT, bin_of
from testbed.record.outcome import LedgerLine, RunOutcome
from testbed.scenario.fault_plan import fault_plan
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import build_topology

CELLS = ("us", "eu", "asia")
ROOTS = ("west", "north", "south")
OUTCOME = RunOutcome(engine="live", dating="actual", ended_at_s=22.0, drained=True)
TRAVEL_S = 0.02
NEWS_S = 0.5
PERIOD_S = 0.1

Shares = Callable[[np.ndarray], np.ndarray]  # instants -> probabilities of the cells, shape (instants, cells)


def made_scenario(policy: str = "flow", **changes: Any) -> Scenario:
    """Three roots and three cells, as in the herding scenario."""
    words: dict[str, Any] = {
        "name": "herding",
        "duration": "20 s",
        "warmup": "5 s",
        "seed": 1,
        "cells": {
            cell: {"servers": servers, "service": {"slots": 32, "exponential": "100 ms"}}
            for cell, servers in zip(CELLS, (4, 3, 2), strict=True)
        },
        "roots": {
            root: {"traffic": [{"class": "sand", "rate": "300 /s", "policy": policy}]} for root in ROOTS
        },
        "reports": {"every": "100 ms"},
        "classes": {"sand": {"prompt_tokens": 48, "output_tokens": 8, "timeout": "10 s"}},
        "policies": {
            "flow": {"kind": "flow", "step": "0.12 /s^2", "interval": "100 ms"},
            "greedy": {"kind": "least_cost"},
            "even": {"kind": "random"},
            "static": {"kind": "weighted"},
        },
        "links": [
            {"from": "root.*", "to": "cell.*", "path": "request", "delay": "20 ms"},
            {"from": "cell.*", "to": "root.*", "path": "reply", "delay": "20 ms"},
            {"from": "cell.*", "to": "root.*", "path": "observation", "delay": "500 ms"},
        ],
    }
    return Scenario.model_validate({**words, **changes})


def steady(*probabilities: float) -> Shares:
    """The same probabilities all the time."""
    return lambda at_s: np.tile(probabilities, (len(at_s), 1))


def swinging(size: float, period_s: float) -> Shares:
    """Probabilities that swing around a third, a third of a turn apart."""

    def shares(at_s: np.ndarray) -> np.ndarray:
        turns = at_s[:, np.newaxis] / period_s + np.arange(3) / 3
        return (1.0 + size * np.sin(2 * math.pi * turns)) / 3

    return shares


def made_requests(
    scenario: Scenario, shares: Shares, *, rate_per_s: float = 900.0, sojourn_s: float = 0.1, seed: int = 1
) -> Table:
    """Poisson arrivals, cells by chance from `shares`, exponential service, all completed."""
    rng = np.random.default_rng(seed)
    count = rng.poisson(rate_per_s * scenario.duration)
    planned = np.sort(rng.uniform(0, scenario.duration, count))
    draws = rng.uniform(size=count)[:, np.newaxis]
    cell = (draws > np.cumsum(shares(planned), axis=1)).sum(axis=1).clip(0, len(scenario.cells) - 1)
    cells, roots, classes = list(scenario.cells), list(scenario.roots), list(scenario.classes)
    servers = np.array([scenario.cells[name].servers for name in cells])
    server = (rng.uniform(size=count) * servers[cell]).astype(int)
    root = rng.integers(len(roots), size=count)
    sent = planned + rng.exponential(5e-5, count)
    at_leaf = sent + TRAVEL_S
    started = at_leaf + rng.exponential(0.01, count)
    first = started + 0.2 * sojourn_s
    finished = first + rng.exponential(0.8 * sojourn_s, count)
    text = np.array
    columns = {
        "request_id": np.arange(count),
        "class": text([classes[i % len(classes)] for i in range(count)], object),
        "root": text([f"root.{roots[i]}" for i in root], object),
        "cell": text([cells[i] for i in cell], object),
        "leaf": text([f"{cells[i]}/leaf-1" for i in cell], object),
        "server": text([f"{cells[i]}/server-{j + 1}" for i, j in zip(cell, server, strict=True)], object),
        "attempts": np.ones(count, int),
        "outcome": text(["completed"] * count, object),
        "prompt_tokens": np.full(count, 48),
        "output_tokens": np.full(count, 8),
        "planned_at_s": planned,
        "held_s": np.zeros(count),
        "sent_at_s": sent,
        "at_leaf_s": at_leaf,
        "at_server_s": at_leaf,
        "started_at_s": started,
        "first_token_at_s": first,
        "finished_at_s": finished,
        "answered_at_s": finished,
        "left_leaf_s": finished,
        "replied_at_s": finished + TRAVEL_S,
        "residence_s": finished - at_leaf,
        "staleness_s": np.where(planned > 0.6, NEWS_S + rng.uniform(0, PERIOD_S, count), np.nan),
        "believed_cost": np.ones(count),
        "preemptions": np.zeros(count, int),
        "late": np.zeros(count, bool),
    }
    return {key: column.copy() for key, column in columns.items()}  # no column is another one's array


def fail(requests: Table, rows: np.ndarray, outcome: str) -> None:
    """Let these requests end another way: received by the leaf, never served, never answered."""
    requests["outcome"][rows] = outcome
    for column in (
        "at_server_s",
        "started_at_s",
        "first_token_at_s",
        "finished_at_s",
        "answered_at_s",
        "left_leaf_s",
        "replied_at_s",
    ):
        requests[column][rows] = np.nan


def made_observations(scenario: Scenario, requests: Table) -> Table:
    """Reports of every leaf to every root, with the arrivals counted until they were measured."""
    measured = np.arange(PERIOD_S, scenario.duration, PERIOD_S)
    columns: dict[str, list[Any]] = {key: [] for key in ("root", "leaf", "cell")}
    names = ("sequence", "measured_at_s", "received_at_s", "arrivals")
    numbers: dict[str, list[np.ndarray]] = {key: [] for key in names}
    for cell in scenario.cells:
        arrived = np.sort(requests["at_leaf_s"][requests["cell"] == cell])
        counted = np.searchsorted(arrived, measured, side="right")
        for root in scenario.roots:
            columns["root"] += [f"root.{root}"] * len(measured)
            columns["leaf"] += [f"{cell}/leaf-1"] * len(measured)
            columns["cell"] += [cell] * len(measured)
            numbers["sequence"].append(np.arange(len(measured)))
            numbers["measured_at_s"].append(measured)
            numbers["received_at_s"].append(measured + NEWS_S)
            numbers["arrivals"].append(counted)
    texts = {key: np.array(values, object) for key, values in columns.items()}
    return {**texts, **{key: np.concatenate(values) for key, values in numbers.items()}}


def made_updates(scenario: Scenario, shares: Shares, every_s: float = 0.1) -> Table:
    """Probabilities that follow `shares`, updated by every root on a timer."""
    at = np.arange(every_s, scenario.duration, every_s)
    before, after = shares(at - every_s), shares(at)
    parts: list[Table] = []
    for i, root in enumerate(scenario.roots):
        for j, cell in enumerate(scenario.cells):
            shift = (
                0.01 * (i - 1) * (1 if j == 0 else -1 if j == 1 else 0)
            )  # roots differ a little, as they do
            parts.append(
                {
                    "root": np.array([f"root.{root}"] * len(at), object),
                    "class": np.array([next(iter(scenario.classes))] * len(at), object),
                    "update": np.arange(len(at)),
                    "cell": np.array([cell] * len(at), object),
                    "used_at_s": at,
                    "interval_s": np.full(len(at), every_s),
                    "measured_at_s": np.where(at > 0.6, at - NEWS_S - PERIOD_S / 2, np.nan),
                    "received_at_s": np.where(at > 0.6, at - PERIOD_S / 2, np.nan),
                    "sequence": np.where(at > 0.6, np.arange(len(at)), -1),
                    "believed_cost": np.full(len(at), 0.1),
                    "clipped": np.zeros(len(at), bool),
                    "probability_before": before[:, j] + shift,
                    "probability": after[:, j] + shift,
                    "allowed": np.ones(len(at), bool),
                }
            )
    return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}


def made_decisions(requests: Table, every: int = 100) -> Table:
    """The chosen candidate of some decisions."""
    some = slice(None, None, every)
    used = requests["sent_at_s"][some]
    return {
        "request_id": requests["request_id"][some],
        "root": requests["root"][some],
        "cell": requests["cell"][some],
        "used_at_s": used,
        "measured_at_s": used - requests["staleness_s"][some],
        "received_at_s": used - requests["staleness_s"][some] + NEWS_S,
        "chosen": np.ones(len(used), bool),
    }


def made_samples(scenario: Scenario) -> Table:
    """Every server busy for half of the time."""
    at = np.arange(0.0, scenario.duration, 0.1)
    servers = [
        (cell, f"{cell}/server-{i + 1}")
        for cell, words in scenario.cells.items()
        for i in range(words.servers)
    ]
    return {
        "cell": np.array([cell for cell, _ in servers for _ in at], object),
        "server": np.array([server for _, server in servers for _ in at], object),
        "at_s": np.tile(at, len(servers)),
        "queued": np.zeros(len(at) * len(servers), int),
        "running": np.ones(len(at) * len(servers), int),
        "busy_s": np.tile(0.5 * at, len(servers)),
    }


def made_lateness(scenario: Scenario, p99_s: float = 0.0003) -> Table:
    """One row a link between roots and leaves, alike but for a few per cent."""
    links = [
        (source, target, path)
        for root in scenario.roots
        for cell in scenario.cells
        for source, target, path in (
            (f"root.{root}", f"{cell}/leaf-1", "request"),
            (f"{cell}/leaf-1", f"root.{root}", "reply"),
            (f"{cell}/leaf-1", f"root.{root}", "observation"),
        )
    ]
    spread = 1.0 - 0.02 * np.arange(len(links))
    columns = {
        key: np.array(values, object)
        for key, values in zip(("source", "target", "path"), zip(*links, strict=True), strict=True)
    }
    return {
        **columns,
        "delivered": np.full(len(links), 1000),
        "lateness_s_p50": 0.2 * p99_s * spread,
        "lateness_s_p99": p99_s * spread,
        "lateness_s_max": 3.0 * p99_s * spread,
        "lateness_bins": np.array([lateness_bins(0.2 * p99_s * each, p99_s * each) for each in spread]),
    }


def made_ledger(scenario: Scenario, requests: Table) -> Table:
    """What each link carried of these requests, each sent once and none lost on a link."""
    count = {
        ("root", "leaf", "request"): ("sent_at_s", "at_leaf_s"),
        ("leaf", "server", "request"): ("at_server_s", "at_server_s"),
        ("server", "leaf", "reply"): ("answered_at_s", "left_leaf_s"),
        ("leaf", "root", "reply"): ("left_leaf_s", "replied_at_s"),
    }
    topology = build_topology(scenario)
    columns: dict[str, list[Any]] = {
        name: [] for name in ("source", "target", "path", "sent", "duplicated", "delivered")
    }
    for link in topology.links:
        ends = topology.nodes[link.source].kind, topology.nodes[link.target].kind
        names = count.get((*ends, link.path))
        here = np.zeros(len(requests["request_id"]), bool)
        if names is not None:
            here = (requests[ends[0]] == link.source) & (requests[ends[1]] == link.target)
        sent, received = names or ("sent_at_s", "sent_at_s")
        row = (
            *(link.source, link.target, link.path, int((here & np.isfinite(requests[sent])).sum()), 0),
            int((here & np.isfinite(requests[received])).sum()),
        )
        for name, value in zip(columns, row, strict=True):
            columns[name].append(value)
    texts = ("source", "target", "path")
    return {name: np.array(values, object if name in texts else int) for name, values in columns.items()}


def made_server_counts(scenario: Scenario, requests: Table) -> Table:
    """Samples of every server every 0.1 s: what it has received and what is there, by the instants of these requests."""
    at_s = np.arange(0.05, scenario.duration, 0.1)
    servers = [node.name for node in build_topology(scenario).nodes.values() if node.kind == "server"]
    parts = []
    for server in servers:
        mine = requests["server"] == server
        came, left = (
            np.searchsorted(np.sort(requests[name][mine]), at_s) for name in ("at_server_s", "finished_at_s")
        )
        parts.append((at_s, came, np.zeros(len(at_s), int), came - left))
    columns = zip(("at_s", "arrivals", "queued", "running"), zip(*parts, strict=True), strict=True)
    names = np.array([server for server in servers for _ in at_s], object)
    return {"server": names, **{name: np.concatenate(values) for name, values in columns}}


def lateness_bins(usual_s: float, late_s: float, late: int = 50, messages: int = 1000) -> list[int]:
    """The bins of so many messages, some of them late."""
    bins = [0] * BIN_COUNT
    bins[bin_of(usual_s)] += messages - late
    bins[bin_of(late_s)] += late
    return bins


def made_processes(stall_s: float = 0.001) -> Table:
    """Two processes over twenty seconds."""
    at = np.arange(1.0, 21.0)
    return {
        "node": np.array(["root.west"] * 20 + ["us/leaf-1"] * 20, object),
        "at_s": np.tile(at, 2),
        "stall_s": np.full(40, stall_s),
        "loop_lag_s": np.full(40, 0.0002),
    }


def made_tables(scenario: Scenario, shares: Shares, *, updates: bool = False, **words: Any) -> Tables:
    """All tables of an arm."""
    requests = made_requests(scenario, shares, **words)
    return {
        "requests": requests,
        "observations": made_observations(scenario, requests),
        "updates": made_updates(scenario, shares) if updates else {},
        "decisions": made_decisions(requests),
        "cells": made_samples(scenario),
        "lateness": made_lateness(scenario),
        "processes": made_processes(),
        "faults": made_faults(scenario),
    }


def made_faults(scenario: Scenario) -> Table:
    """The faults of the scenario as its plan has them."""
    plan = fault_plan(scenario, build_topology(scenario))
    return {
        "fault": np.arange(len(plan)),
        "target": np.array([fault.target for fault in plan], object),
        "parameters": np.array([fault.text for fault in plan], object),
        "planned_at_s": np.array([fault.at_s for fault in plan], float),
        "heal_planned_at_s": np.array(
            [fault.until_s if math.isfinite(fault.until_s) else math.nan for fault in plan], float
        ),
    }


def made_outcome(**changes: Any) -> RunOutcome:
    """The end of a sound live run."""
    ledger = (LedgerLine("root.west", "us/leaf-1", "request", 100, 0, {"loss": 1}, 98, 1),)
    return replace(OUTCOME, ledger=ledger, **changes)
