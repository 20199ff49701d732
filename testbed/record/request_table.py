"""A row per planned request, joined from what its root, its leaf and its server logged.

Rows are joined by id, and by attempt where a request was sent again: a row tells of the attempt that was completed, or
else of the last one that was not called off. Whoever died leaves holes (NaN, empty text), never a missing row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testbed.record.gather import Rows, Texts
from testbed.record.outages import Outages
from testbed.record.streams import cost_scales, plan_streams
from testbed.roles.attempt_keys import LEAF_ATTEMPT
from testbed.roles.messages import OUTCOMES, Outcome
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import Topology, root_name
from testbed.traffic.plan import Plan

Places = NDArray[np.int64]  # for each request the position of its row in a logged table, or _NONE
_NONE = -1


def requests_table(logged: dict[str, Rows], scenario: Scenario, topology: Topology, plan: Plan) -> Rows:
    """The requests of a plan in its order; `scenario` is not scaled, `plan` is in run time."""
    number = plan.requests
    dispatches, visits = logged["dispatches"], logged["visits"]
    dispatch, seen = _deciding(dispatches, number), _deciding(visits, number)
    # A root that died leaves no row of a request; its leaf may still tell of it.
    attempt = _filled(np.zeros(number, dtype=np.int64), visits["attempt"] % LEAF_ATTEMPT, seen)
    attempt = _filled(attempt, dispatches["attempt"], dispatch)
    never = _arrived_at_nobody(scenario, topology, plan, logged["applied"])
    outcome = np.where(never, int(Outcome.LOST), int(Outcome.UNFINISHED))
    outcome = _filled(outcome, dispatches["outcome"], dispatch)
    was_sent = ((dispatch != _NONE) | (seen != _NONE)) & (outcome != Outcome.NO_TARGET)
    was_sent &= ~_held_to_the_end(dispatches, dispatch)
    return {
        "request_id": np.arange(number, dtype=np.int64),
        "class": Texts(tuple(scenario.classes), plan.class_index),
        "root": Texts(tuple(root_name(root) for root in scenario.roots), plan.root),
        "attempts": _latest(dispatches, attempt) + was_sent,
        "outcome": Texts(OUTCOMES, outcome.astype(np.int32)),
        "prompt_tokens": plan.prompt_tokens,
        "output_tokens": plan.output_tokens,
        "session": _sessions(plan),
        "prefix": _prefixes(plan),
        "planned_at_s": plan.at_s / scenario.time_scale,
        **_at_root(logged, dispatch, attempt, cost_scales(scenario)[plan_streams(scenario, plan)]),
        **_in_cell(logged, topology, dispatch, attempt),
    }


def _arrived_at_nobody(
    scenario: Scenario, topology: Topology, plan: Plan, applied: Rows
) -> NDArray[np.bool_]:
    """Requests that were planned while their root was dead."""
    outages = Outages(scenario, topology, applied)
    at_s = plan.at_s / scenario.time_scale
    never = np.zeros(plan.requests, dtype=bool)
    for i, root in enumerate(scenario.roots):
        for from_s, until_s in outages.of(root_name(root), "kill"):
            never |= (plan.root == i) & (at_s >= from_s) & (at_s < until_s)
    return never


def _held_to_the_end(dispatches: Rows, dispatch: Places) -> NDArray[np.bool_]:
    """Requests that their root never sent: they were shed, or held until their time was up."""
    never = dispatches["leaf"].places(("",)) == 0
    return _filled(np.zeros(len(dispatch), dtype=bool), never, dispatch)


def _held_s(holds: Rows, attempt: Places, dispatches: Rows, dispatch: Places) -> NDArray[np.float64]:
    """How long the root let each request wait, for a usable cell and for its decision; 0 for most, NaN: to the end."""
    held_s = np.zeros(len(attempt))
    mine = holds["attempt"] == attempt[holds["request_id"]]
    np.add.at(held_s, holds["request_id"][mine], (holds["released_at_s"] - holds["held_at_s"])[mine])
    sent_at_s = _filled(np.zeros(len(attempt)), dispatches["sent_at_s"], dispatch)
    held_s[np.isnan(sent_at_s)] = np.nan
    return held_s


def _at_root(
    logged: dict[str, Rows], dispatch: Places, attempt: Places, cost_scale: NDArray[np.float64]
) -> Rows:
    """What the root knew and saw of each request."""
    dispatches, late_replies = logged["dispatches"], logged["late_replies"]
    late = _of_attempt(late_replies, attempt)
    replied_at_s = _filled(_nan(attempt), dispatches["replied_at_s"], dispatch)
    return {
        **{
            name: _filled(_nan(attempt), dispatches[name], dispatch)
            for name in ("sent_at_s", "residence_s", "staleness_s")
        },
        "held_s": _held_s(logged["holds"], attempt, dispatches, dispatch),
        "replied_at_s": _filled(replied_at_s, late_replies["replied_at_s"], late),
        "believed_cost": _filled(_nan(attempt), dispatches["believed_cost"], dispatch) / cost_scale,
        "late": late != _NONE,
    }


def _in_cell(logged: dict[str, Rows], topology: Topology, dispatch: Places, attempt: Places) -> Rows:
    """Where each request went, and what happened to it there."""
    visits, services = logged["visits"], logged["services"]
    received, visit = _of_attempt(visits, attempt), _deciding(visits, len(attempt), attempt)
    service = _of_attempt(services, _filled(attempt, visits["attempt"], visit))
    leaf = _named(topology.leaves, [(visits["leaf"], visit), (logged["dispatches"]["leaf"], dispatch)])
    instants = ("at_server_s", "started_at_s", "first_token_at_s", "finished_at_s", "answered_at_s")
    return {
        "cell": _cells_of(leaf, topology),
        "leaf": leaf,
        "server": _named(topology.servers, [(services["server"], service), (visits["server"], visit)]),
        "at_leaf_s": _filled(_nan(attempt), visits["at_leaf_s"], received),
        "left_leaf_s": _filled(_nan(attempt), visits["left_leaf_s"], visit),
        **{name: _filled(_nan(attempt), services[name], service) for name in instants},
        **{
            name: _filled(np.zeros_like(attempt), services[name], service)
            for name in ("preemptions", "cached_tokens")
        },
    }


def _sessions(plan: Plan) -> Places:
    return np.zeros(plan.requests, np.int64) if plan.sharing is None else plan.sharing.session


def _prefixes(plan: Plan) -> Places:
    """The key of each prompt's first segment, unless that is the session's own."""
    if plan.sharing is None:
        return np.zeros(plan.requests, np.int64)
    first = plan.sharing.first_keys()
    return np.where(first == plan.sharing.session, 0, first)


def _deciding(table: Rows, number: int, attempt: Places | None = None) -> Places:
    """The row that tells how each request ended: the completed one, or else the last one that was not called off.

    With `attempt`, each request's attempt of its root, that of the leaf's attempts of it. Nodes log in order of time.
    """
    of_root = table["attempt"] % LEAF_ATTEMPT
    rows = np.arange(len(of_root))
    if attempt is not None:
        rows = np.flatnonzero(of_root == attempt[table["request_id"]])
    if not table["attempt"].any():
        return _placed(table, rows, number)
    outcome = table["outcome"][rows]
    rank = (outcome != Outcome.CANCELLED) + 2 * (outcome == Outcome.COMPLETED)
    by_attempt = of_root[rows] if "leaf" in table and "server" in table else np.zeros(len(rows), np.int64)
    return _placed(table, rows[np.lexsort((rank, by_attempt))], number)


def _latest(dispatches: Rows, attempt: Places) -> Places:
    """The highest attempt of each request, at least that which decided."""
    if not dispatches["attempt"].any():
        return attempt
    latest = attempt.copy()
    np.maximum.at(latest, dispatches["request_id"], dispatches["attempt"])
    return latest


def _of_attempt(table: Rows, attempt: Places) -> Places:
    """The row of each request's attempt of this number."""
    rows = np.flatnonzero(table["attempt"] == attempt[table["request_id"]])
    return _placed(table, rows, len(attempt))


def _placed(table: Rows, rows: NDArray[np.intp], number: int) -> Places:
    """These rows by request; of several rows of a request the last one stays."""
    places = np.full(number, _NONE, dtype=np.int64)
    places[table["request_id"][rows]] = rows
    return places


def _nan(like: Places) -> NDArray[np.float64]:
    return np.full(len(like), np.nan)


def _filled(values: NDArray[Any], column: NDArray[Any], places: Places) -> NDArray[Any]:
    """The values, with those of the column where a request has a row."""
    found = places != _NONE
    filled = values.copy()
    filled[found] = column[places[found]]
    return filled


def _named(nodes: dict[str, tuple[str, ...]], sources: Sequence[tuple[Texts, Places]]) -> Texts:
    """Names of nodes (of every cell) or empty; a later source goes before an earlier one."""
    words = ("", *(name for names in nodes.values() for name in names))
    numbers = np.zeros(len(sources[0][1]), dtype=np.int32)
    for column, places in sources:
        numbers = _filled(numbers, column.places(words), places)
    assert (numbers >= 0).all(), "a log names a node that the topology does not have"
    return Texts(words, numbers)


def _cells_of(leaf: Texts, topology: Topology) -> Texts:
    cells = ("", *topology.leaves)
    of_word = [0, *(cells.index(topology.nodes[name].cell) for name in leaf.words[1:])]
    return Texts(cells, np.array(of_word, dtype=np.int32)[leaf.numbers])
