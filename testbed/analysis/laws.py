"""The laws that no sound run can break: conservation, Little's law, causality.

Conservation: at each node arrived = completed + lost + rejected + in flight at the end, each told by a record of its own
(see `ledger_laws`, `sample_laws`); each planned request has one outcome; and a
leaf's own count of arrivals, told in its reports, is the number of requests that the records show there; and what a
balancer counts as in flight when its life ends is what is open there, but for what faults have made it miscount.
Little: the area under the requests in flight is the sum of the sojourns; requests still inside count up to the
end. Causality: no instant lies before its cause, and no message is faster than the least delay of its link.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from testbed.analysis.in_flight import bin_means, step_function
from testbed.analysis.law import INSTANT_TOLERANCE_S, Law
from testbed.analysis.ledger_laws import ledger_conservation, open_conservation
from testbed.analysis.records import (
    Floats,
    Mask,
    Table,
    Tables,
    answered_column,
    codes,
    positions_by,
    row_count,
)
from testbed.analysis.sample_laws import sample_conservation
from testbed.links.delay import least_delay_s
from testbed.roles.messages import OUTCOMES
from testbed.scenario.fault_plan import fault_plan, link_effects
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import Topology

LITTLE_TOLERANCE = 1e-9  # relative

_CHAIN = (
    "planned_at_s",
    "sent_at_s",
    "at_leaf_s",
    "at_server_s",
    "started_at_s",
    "first_token_at_s",
    "finished_at_s",
    "answered_at_s",
)
_KINDS = ("root", "leaf", "server")
_UNTRUE = ("telemetry", "clock_skew", "clock_drift", "kill")
_NODE_OF = {
    "sent_at_s": "root",
    "at_leaf_s": "leaf",
    "at_server_s": "server",
    "started_at_s": "server",
    "first_token_at_s": "server",
    "finished_at_s": "server",
    "answered_at_s": "server",
    "left_leaf_s": "leaf",
    "replied_at_s": "root",
}


def all_laws(
    scenario: Scenario, topology: Topology, tables: Tables, end_s: float, *, is_whole: bool = True
) -> list[Law]:
    """Every law, the broken ones first.

    Args:
        scenario: unscaled.
        topology: of the scenario.
        tables: of the run.
        end_s: when its nodes were stopped, scenario time.
        is_whole: every process wrote its log to the end, and no event was cut short; else records of one node are not
            held against those of another.
    """
    requests = tables["requests"]
    laws = [
        *(_between_records(scenario, topology, tables) if is_whole else ()),
        *outcome_conservation(requests, list(dict.fromkeys(requests["root"].tolist()))),
        *node_conservation(requests, topology),
        *counter_conservation(
            requests, tables.get("observations", {}), topology, _untrue(scenario, topology)
        ),
        *in_flight_conservation(tables.get("counts", {})),
        *little(requests, topology, end_s),
        *order_of_instants(requests),
        *link_causality(scenario, topology, requests),
    ]
    return sorted(laws, key=lambda law: law.holds)


def _between_records(scenario: Scenario, topology: Topology, tables: Tables) -> Iterable[Law]:
    yield from ledger_conservation(scenario, topology, tables)
    yield from open_conservation(scenario, topology, tables)
    yield from sample_conservation(scenario, topology, tables)


def outcome_conservation(requests: Table, roots: list[str]) -> list[Law]:
    """Each planned request of a root has one known outcome, and each completed one a reply."""
    laws = []
    known = codes(requests["outcome"], OUTCOMES) >= 0
    unanswered = (requests["outcome"] == "completed") & ~np.isfinite(requests["replied_at_s"])
    for root in roots:
        mine = requests["root"] == root
        strays, bare = int((mine & ~known).sum()), int((mine & unanswered).sum())
        detail = f"{int(mine.sum())} planned, {strays} without an outcome, {bare} completed without a reply"
        laws.append(Law("conservation", root, strays == bare == 0, detail))
    return laws


def node_conservation(requests: Table, topology: Topology) -> list[Law]:
    """At each leaf and server nothing left that never came; who is still inside has come and not left.

    That as many came as its links brought, and left as they took away, is asked by `ledger_conservation`.
    """
    laws = []
    for kind, column, entered, left in (
        ("leaf", "leaf", "at_leaf_s", "left_leaf_s"),
        ("server", "server", "at_server_s", "finished_at_s"),
    ):
        names = [node.name for node in topology.nodes.values() if node.kind == kind]
        where = codes(requests[column], names)
        came, gone = np.isfinite(requests[entered]), np.isfinite(requests[left])
        arrived = _count(where, came, len(names))
        served = _count(where, came & gone, len(names))
        ghosts = _count(where, gone & ~came, len(names))
        for i, name in enumerate(names):
            detail = f"{arrived[i]} arrived, {served[i]} left, {arrived[i] - served[i]} inside at the end, {ghosts[i]} left without arriving"
            laws.append(Law("conservation", name, bool(ghosts[i] == 0), detail))
    return laws


def counter_conservation(
    requests: Table, observations: Table, topology: Topology, untrue: frozenset[str] = frozenset()
) -> list[Law]:
    """The arrivals that a leaf counted itself, as its reports tell, against the requests recorded there.

    A request that arrived in the very instant of the measurement may be counted or not. Requests sent more than
    once would need a row per sending, so this law is not asked of a run with such requests; nor of the leaves in
    `untrue`, whose reports a fault keeps from telling the truth.
    """
    if not row_count(observations) or bool((requests["attempts"] > 1).any()):
        return []
    laws = []
    for names in topology.leaves.values():
        for leaf in names:
            if leaf in untrue:
                continue
            arrived = np.sort(requests["at_leaf_s"][requests["leaf"] == leaf])
            arrived = arrived[np.isfinite(arrived)]
            reports = observations["leaf"] == leaf
            measured, counted = observations["measured_at_s"][reports], observations["arrivals"][reports]
            low = np.searchsorted(arrived, measured - INSTANT_TOLERANCE_S, side="left")
            high = np.searchsorted(arrived, measured + INSTANT_TOLERANCE_S, side="right")
            wrong = (counted < low) | (counted > high)
            detail, at_s = (
                f"{int(wrong.sum())} of {len(measured)} reports count other arrivals than the records",
                math.nan,
            )
            if wrong.any():
                i = int(np.argmax(wrong))
                detail += f", the first {counted[i]} where {high[i]} are recorded"
                at_s = float(measured[i])
            laws.append(Law("conservation", leaf, not wrong.any(), detail, at_s=at_s))
    return laws


def in_flight_conservation(counts: Table) -> list[Law]:
    """No balancer's count of its own requests in flight is off at the end of one of its lives, or below nought.

    Args:
        counts: the table of that name; without columns in runs of versions that had none.
    """
    laws = []
    for i in range(row_count(counts)):
        counted, least, still_open, miscounted = (
            int(counts[name][i]) for name in ("counted", "least", "open", "miscounted")
        )
        holds = counted == still_open + miscounted and (least >= 0 or miscounted < 0)
        detail = (
            f"{counted} counted, {least} the least of a target, {still_open} open, {miscounted} miscounted"
        )
        laws.append(Law("conservation", f"in flight of {counts['node'][i]}", holds, detail))
    return laws


def _untrue(scenario: Scenario, topology: Topology) -> frozenset[str]:
    """The nodes that faults have repeat old news, stamp it wrong, or count anew from their restart."""
    return frozenset(
        name
        for fault in fault_plan(scenario, topology)
        if any(getattr(fault.words, key) is not None for key in _UNTRUE)
        for name in fault.nodes
    )


def little(requests: Table, topology: Topology, end_s: float) -> list[Law]:
    """Area under N(t) = sum of sojourns at each cell, leaf, server and root; who is inside at the end counts up to it.

    At a root that is from the sending, since a request that it never sent leaves no instant, to the reply, also a late
    one; at a leaf and in a cell until the request is over for the leaf, answered or not.
    """
    sent_at_s = np.where(requests["leaf"] == "", np.nan, requests["sent_at_s"])
    kinds = {kind: [node.name for node in topology.nodes.values() if node.kind == kind] for kind in _KINDS}
    laws = []
    for column, names, entered, left in (
        ("cell", list(topology.leaves), requests["at_leaf_s"], "left_leaf_s"),
        ("leaf", kinds["leaf"], requests["at_leaf_s"], "left_leaf_s"),
        ("server", kinds["server"], requests["at_server_s"], "finished_at_s"),
        ("root", kinds["root"], sent_at_s, "replied_at_s"),
    ):
        for name, mine in zip(names, positions_by(codes(requests[column], names), len(names)), strict=True):
            laws.append(_little(name, entered[mine], requests[left][mine], end_s))
    return laws


def order_of_instants(requests: Table) -> list[Law]:
    """No instant of a request before the one that caused it."""
    chain = [name for name in _CHAIN if name in requests]  # runs of earlier versions have no `answered_at_s`
    steps = [(a, b, np.ones(row_count(requests), bool)) for a, b in pairwise(chain)]
    # A leaf lets a request go at its timeout while the server still works on it, so only replies have a way back.
    answered = requests["outcome"] == "completed"
    steps += [
        (a, b, answered) for a, b in pairwise((answered_column(requests), "left_leaf_s", "replied_at_s"))
    ]
    return [_not_before(requests, a, b, mask) for a, b, mask in steps]


def link_causality(scenario: Scenario, topology: Topology, requests: Table) -> list[Law]:
    """No request or reply faster than the least delay of its link, whatever faults set it to."""
    least = least_delays_s(scenario, topology)
    answered = requests["outcome"] == "completed"
    everyone = np.ones(row_count(requests), bool)
    hops = (
        ("root", "leaf", "request", "sent_at_s", "at_leaf_s", everyone),
        ("leaf", "server", "request", "at_leaf_s", "at_server_s", everyone),
        ("server", "leaf", "reply", answered_column(requests), "left_leaf_s", answered),
        ("leaf", "root", "reply", "left_leaf_s", "replied_at_s", answered),
    )
    return [_hop(topology, requests, least, *hop) for hop in hops]


def least_delays_s(scenario: Scenario, topology: Topology) -> dict[tuple[str, str, str], float]:
    """Least one-way delay of every link (source, target, path) over all that faults make of it."""
    variants = link_effects(topology, fault_plan(scenario, topology))
    return {
        (link.source, link.target, link.path): min(map(least_delay_s, dict.fromkeys(variants[link.number])))
        for link in topology.links
    }


def _count(where: npt.NDArray[np.int64], mask: Mask, names: int) -> npt.NDArray[np.int64]:
    return np.bincount(where[mask & (where >= 0)], minlength=names)


def _little(name: str, entered: Floats, left: Floats, end_s: float) -> Law:
    inside = np.isfinite(entered)
    last_s = max([end_s, *np.concatenate((entered[inside], left[np.isfinite(left)])).tolist()])
    area = float(bin_means(*step_function(entered, left), np.array([0.0, last_s]))[0] * last_s)
    exits = np.where(np.isfinite(left[inside]), left[inside], last_s)
    sojourns = float((exits - entered[inside]).sum())
    open_count = int((~np.isfinite(left[inside])).sum())
    error = abs(area - sojourns) / max(sojourns, 1e-12) if area or sojourns else 0.0
    detail = f"area {area:.9g} s, sum of sojourns {sojourns:.9g} s, {open_count} still inside"
    return Law("little", name, error <= LITTLE_TOLERANCE, detail, error)


def _not_before(requests: Table, cause: str, effect: str, mask: Mask) -> Law:
    gap_s = requests[effect] - requests[cause]
    early = mask & (gap_s < -INSTANT_TOLERANCE_S)
    return _causality(f"{effect} after {cause}", requests, early, gap_s, 0.0, (effect, _NODE_OF[effect]))


def _hop(
    topology: Topology,
    requests: Table,
    least: dict[tuple[str, str, str], float],
    source: str,
    target: str,
    path: str,
    sent: str,
    received: str,
    mask: Mask,
) -> Law:
    sources = [node.name for node in topology.nodes.values() if node.kind == source]
    targets = [node.name for node in topology.nodes.values() if node.kind == target]
    table = np.array([[least.get((a, b, path), 0.0) for b in targets] for a in sources])
    a, b = codes(requests[source], sources), codes(requests[target], targets)
    known = mask & (a >= 0) & (b >= 0)
    floor_s = np.where(known, table[a, b], 0.0)
    gap_s = requests[received] - requests[sent]
    early = known & (gap_s < floor_s - INSTANT_TOLERANCE_S)
    place = f"{path} from {source} to {target}"
    least_s = float(floor_s[np.argmax(early)]) if early.any() else 0.0
    return _causality(place, requests, early, gap_s, least_s, (received, target))


def _causality(
    place: str, requests: Table, early: Mask, gap_s: Floats, floor_s: float, effect: tuple[str, str]
) -> Law:
    """Of one step; `effect` names the columns of the instant at which a breach shows, and of the node where it does."""
    count = int(early.sum())
    if not count:
        return Law("causality", place, True, "no breach")
    i = int(np.argmax(early))
    detail = f"{count} breaches, first by request {requests['request_id'][i]}: {gap_s[i]:.9f} s, at least {floor_s:.9f} s is due"
    instant, node = effect
    return Law("causality", place, False, detail, at_s=float(requests[instant][i]), node=requests[node][i])
