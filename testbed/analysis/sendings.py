"""Every sending of every request: the requests that were sent once, and the attempts of the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from testbed.analysis.records import Floats, Mask, Table, Tables, codes, row_count
from testbed.scenario.fault_plan import Fault, fault_plan
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import Topology
from testbed.traffic.capacity import cell_profile

Ints = npt.NDArray[np.int64]


class Sendings(NamedTuple):
    """What roots sent, a row for each server that the leaf gave it to; shapes (sendings,).

    Attributes:
        root, leaf, server: position among the nodes of that kind; -1: it was never sent there.
        is_first: not a further copy, made by its leaf.
        is_completed, is_unfinished: how it ended, for the leaf and for the root.
        at_leaf_s, at_server_s, finished_at_s, left_leaf_s, replied_at_s: scenario time; NaN: never.
    """

    root: Ints
    leaf: Ints
    server: Ints
    is_first: Mask
    is_completed: Mask
    is_unfinished: Mask
    at_leaf_s: Floats
    at_server_s: Floats
    finished_at_s: Floats
    left_leaf_s: Floats
    replied_at_s: Floats


def names_of(topology: Topology, kind: str) -> list[str]:
    """The nodes of a kind, in the order of the positions in `Sendings`."""
    return [node.name for node in topology.nodes.values() if node.kind == kind]


def sendings_of(scenario: Scenario, topology: Topology, tables: Tables) -> Sendings | None:
    """Every sending of a run; None where the tables do not have them all.

    That is so where a balancer was stopped or died while a request waited out its backoff: the one row that is left of
    it tells of the sending that was to come.
    """
    requests, attempts = tables["requests"], tables.get("attempts", {})
    if not row_count(attempts):
        again = requests["attempts"] > 1
        return None if again.any() or _hides_some(scenario, requests, ~again) else _once(requests, topology)
    once = ~np.isin(requests["request_id"], attempts["request_id"])
    if _hides_some(scenario, requests, once):
        return None
    parts = _once(requests, topology), _again(attempts, topology)
    kept = once, np.ones(row_count(attempts), bool)
    return Sendings(
        *(np.concatenate([part[i][mask] for part, mask in zip(parts, kept, strict=True)]) for i in range(len(parts[0])))
    )  # fmt: skip


def _hides_some(scenario: Scenario, requests: Table, once: Mask) -> bool:
    at_roots = any(each.retries and each.retries.backoff for each in scenario.classes.values())
    at_leaves = any(each.leaf.retries and each.leaf.retries.backoff for each in scenario.cells.values())
    ends_badly = (requests["outcome"] == "unfinished") | (requests["outcome"] == "lost")
    unsent = (requests["leaf"] == "") & ends_badly
    ungiven = (requests["server"] == "") & np.isfinite(requests["at_leaf_s"])
    return bool(at_roots and (once & unsent).any()) or bool(at_leaves and (once & ungiven).any())


def _once(requests: Table, topology: Topology) -> Sendings:
    return _sendings(
        requests, topology, requests["outcome"] == "completed", np.ones(row_count(requests), bool)
    )


def _again(attempts: Table, topology: Topology) -> Sendings:
    return _sendings(
        attempts, topology, attempts["leaf_outcome"] == "completed", attempts["leaf_attempt"] == 0
    )


def _sendings(table: Table, topology: Topology, is_completed: Mask, is_first: Mask) -> Sendings:
    return Sendings(
        codes(table["root"], names_of(topology, "root")),
        codes(table["leaf"], names_of(topology, "leaf")),
        codes(table["server"], names_of(topology, "server")),
        is_first,
        is_completed,
        table["outcome"] == "unfinished",
        *(table[name] for name in ("at_leaf_s", "at_server_s", "finished_at_s", "left_leaf_s", "replied_at_s")),
    )  # fmt: skip


class Gaps(NamedTuple):
    """Where the records are known not to tell all.

    Attributes:
        killed: nodes that a fault kills.
        forgetful: nodes that a fault both stops and kills: what came while they were stopped is lost with them.
        calling: nodes that may call requests back.
        called: nodes from which requests may be called back; a server writes no row of these.
        silent: servers that may answer a request, or lose it, without a row of it: those with a limit, those that a
            fault kills or has fail requests, those that get requests too large for their memory, and the `called`.
    """

    killed: frozenset[str]
    forgetful: frozenset[str]
    calling: frozenset[str]
    called: frozenset[str]
    silent: frozenset[str]


def gaps_of(scenario: Scenario, topology: Topology, requests: Table) -> Gaps:
    """The gaps in the records of a run."""
    plan = fault_plan(scenario, topology)
    killed = _touched(plan, "kill")
    calling, called = _calls(scenario, topology)
    largest = int((requests["prompt_tokens"] + requests["output_tokens"]).max(initial=0))
    refusing = {
        name
        for cell, words in scenario.cells.items()
        if words.limit is not None or not _fits(scenario, cell, largest)
        for name in topology.servers[cell]
    }
    silent = called | refusing | killed | _touched(plan, "errors")
    return Gaps(killed, killed & _touched(plan, "pause"), calling, called, silent)


def _calls(scenario: Scenario, topology: Topology) -> tuple[frozenset[str], frozenset[str]]:
    """Who may call requests back, and from whom; where roots do, their leaves do."""
    by_roots = any(each.cancel or each.hedging for each in scenario.classes.values())
    cells = [name for name, cell in scenario.cells.items() if by_roots or cell.leaf.hedging]
    roots, all_leaves = frozenset(names_of(topology, "root")), frozenset(names_of(topology, "leaf"))
    leaves = frozenset(name for cell in cells for name in topology.leaves[cell])
    servers = frozenset(name for cell in cells for name in topology.servers[cell])
    return (roots | all_leaves, all_leaves | servers) if by_roots else (leaves, servers)


def _touched(plan: Sequence[Fault], key: str) -> frozenset[str]:
    return frozenset(name for fault in plan if getattr(fault.words, key) is not None for name in fault.nodes)


def _fits(scenario: Scenario, cell: str, tokens: int) -> bool:
    profile = cell_profile(scenario.cells[cell], scenario.stretch)
    return profile is None or tokens <= profile.kv_tokens
