"""Conservation by two records that know nothing of each other: what links carried, and what nodes wrote of requests.

A link counts the messages that its ends sent and were handed (table `lateness`); a root, a leaf or a server writes a row
of each request (tables `requests` and `attempts`). On every link both have to tell the same number, exactly:

- requests that a root sent, and that a leaf gave to a server, against those sent on the link;
- requests that a leaf, and a server, received, against those delivered;
- answers that a server made, a leaf passed on and a root received, against the replies sent and delivered;
- requests open at a balancer when it stops, by its own count (table `counts`), against those without an end.

So arrived = completed + lost + rejected + in flight at the end, with each term from a record of its own.

What cannot be asked is left out:

- of links on which calls back go the same way as requests (`cancel`, `hedging`), or first tokens the same way as replies:
  a ledger counts all that goes that way;
- of what arrives on a link that has made copies: who receives drops them without a row;
- of nodes that a fault stops and then kills: in virtual time what had come meanwhile is lost with them;
- of replies that a killed root receives, that are for its earlier life, and of those of a killed leaf, which does not answer
  what is open when it dies; of the open of either, which its rows call lost;
- of replies where a request is sent more than once: the tables tell of each late one only in the request's row, and a
  leaf answers once for all copies that it made;
- of a run in which a request waited out its backoff at the end, see `sendings_of`.

A server with a limit, one that a fault has fail requests, one that got a request too large for its memory and one that a
fault kills may have requests without a row: there the ledger lies between the rows and all that may have come.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from testbed.analysis.law import Law
from testbed.analysis.records import Mask, Table, Tables, codes, row_count
from testbed.analysis.sendings import Gaps, Ints, Sendings, gaps_of, names_of, sendings_of
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import Topology, counts_first_tokens, leaf_policy, passes_first_tokens


class _Account(NamedTuple):
    """One kind of message at one end of its links.

    Attributes:
        what: they are, for people.
        way: of the links.
        column: of the ledger, `sent` or `delivered`; it says which end of the link wrote the rows.
        told: sendings that the rows tell of.
        perhaps: sendings that may have been there without a row.
        left_out: nodes at that end of which it is not asked.
    """

    what: str
    way: tuple[str, str, str]  # kind of node that sends, kind that receives, path
    column: str
    told: Mask
    perhaps: Mask
    left_out: frozenset[str]


def ledger_conservation(scenario: Scenario, topology: Topology, tables: Tables) -> list[Law]:
    """What each node's links carried against its rows; the top of this file says what is not asked."""
    lateness = tables.get("lateness", {})
    sendings = sendings_of(scenario, topology, tables)
    if sendings is None or not {"sent", "delivered", "duplicated"} <= lateness.keys():
        return []
    gaps = gaps_of(scenario, topology, tables["requests"])
    unsure = _unsure(sendings, names_of(topology, "server"), gaps)
    accounts = [
        *_requests(sendings, gaps, unsure),
        *_replies(scenario, topology, sendings, gaps, unsure),
    ]
    found: dict[str, list[tuple[bool, str]]] = {}
    for account in accounts:
        for node, holds, said in _compared(account, lateness, sendings, topology):
            found.setdefault(node, []).append((holds, said))
    return [
        Law("conservation", node, all(holds for holds, _ in each), "; ".join(said for _, said in each))
        for node, each in found.items()
    ]


def open_conservation(scenario: Scenario, topology: Topology, tables: Tables) -> list[Law]:
    """What each balancer counted as open when it stopped, against the requests that its rows leave without an end."""
    counts, sendings = tables.get("counts", {}), sendings_of(scenario, topology, tables)
    if sendings is None or not row_count(counts):
        return []
    killed = gaps_of(scenario, topology, tables["requests"]).killed
    at_leaf = (sendings.server >= 0) & np.isnan(sendings.left_leaf_s)
    at_root = (sendings.leaf >= 0) & sendings.is_first & sendings.is_unfinished
    left = _by_node(names_of(topology, "leaf"), sendings.leaf[at_leaf])
    left |= _by_node(names_of(topology, "root"), sendings.root[at_root])
    laws = []
    for node, counted in zip(counts["node"].tolist(), counts["open"].tolist(), strict=True):
        if node not in killed:
            detail = f"{counted} open when it stopped, {left[node]} without an end by the records"
            laws.append(Law("conservation", f"open at {node}", counted == left[node], detail, node=node))
    return laws


def _by_node(names: list[str], positions: Ints) -> dict[str, int]:
    return dict(zip(names, np.bincount(positions, minlength=len(names)).tolist(), strict=True))


def _requests(sendings: Sendings, gaps: Gaps, unsure: Mask) -> list[_Account]:
    """Requests, at both ends of each of their two links."""
    nobody = np.zeros(len(unsure), bool)
    sent = (sendings.leaf >= 0) & sendings.is_first
    came = np.isfinite(sendings.at_leaf_s) & sendings.is_first
    given, here = sendings.server >= 0, np.isfinite(sendings.at_server_s)
    absent = gaps.called | gaps.forgetful
    return [
        _Account("requests sent", ("root", "leaf", "request"), "sent", sent, nobody, gaps.calling),
        _Account("requests received", ("root", "leaf", "request"), "delivered", came, nobody, absent),
        _Account("requests given on", ("leaf", "server", "request"), "sent", given, nobody, gaps.calling),
        _Account("requests received", ("leaf", "server", "request"), "delivered", here, unsure, absent),
    ]


def _replies(
    scenario: Scenario, topology: Topology, sendings: Sendings, gaps: Gaps, unsure: Mask
) -> list[_Account]:
    """Replies where servers make them, where leaves pass them on and where roots receive them."""
    nobody = np.zeros(len(unsure), bool)
    finished, left = np.isfinite(sendings.finished_at_s), np.isfinite(sendings.left_leaf_s)
    replied = np.isfinite(sendings.replied_at_s) & sendings.is_first
    leaves_again = [name for name, cell in scenario.cells.items() if cell.leaf.retries or cell.leaf.hedging]
    is_sent_again = leaves_again or any(each.retries or each.hedging for each in scenario.classes.values())
    passes = passes_first_tokens(scenario)
    telling = [name for name in scenario.cells if passes or counts_first_tokens(leaf_policy(scenario, name))]
    servers = frozenset(name for cell in telling for name in topology.servers[cell])
    leaves = frozenset(
        name for cell in scenario.cells if passes or cell in leaves_again for name in topology.leaves[cell]
    )
    roots = frozenset(names_of(topology, "root")) if passes or is_sent_again else gaps.killed
    return [
        _Account("replies sent", ("server", "leaf", "reply"), "sent", finished, unsure, servers),
        _Account(
            "replies sent",
            ("leaf", "root", "reply"),
            "sent",
            left,
            nobody,
            leaves | gaps.called | gaps.killed,
        ),
        _Account("replies received", ("leaf", "root", "reply"), "delivered", replied, nobody, roots),
    ]


def _unsure(sendings: Sendings, servers: list[str], gaps: Gaps) -> Mask:
    """Sendings that their server may have had without a row of them."""
    is_silent = np.array(
        [name in gaps.silent for name in servers] + [False]
    )  # the last for those given to none
    without_row = np.isnan(sendings.at_server_s) & ~sendings.is_completed
    return np.asarray(is_silent[sendings.server] & without_row, bool)


def _compared(
    account: _Account, lateness: Table, sendings: Sendings, topology: Topology
) -> Iterator[tuple[str, bool, str]]:
    """For each node whose rows tell: its name, whether all its links agree with them, and the numbers in words."""
    source, target, path = account.way
    names = {kind: names_of(topology, kind) for kind in (source, target)}
    a, b = codes(lateness["source"], names[source]), codes(lateness["target"], names[target])
    rows = np.flatnonzero((a >= 0) & (b >= 0) & (lateness["path"] == path))
    keys = a[rows] * len(names[target]) + b[rows]
    rows, keys = rows[np.argsort(keys)], np.sort(keys)
    of_sending = getattr(sendings, source) * len(names[target]) + getattr(sendings, target)
    carried = lateness[account.column][rows]
    least = _per_link(of_sending[account.told], keys)
    most = least + _per_link(of_sending[account.perhaps], keys)
    wrong = (carried < least) | (carried > most)
    is_sent = account.column == "sent"
    of_node, mine = (a[rows], names[source]) if is_sent else (b[rows], names[target])
    copied = np.zeros(len(rows), bool) if is_sent else lateness["duplicated"][rows] > 0
    sums = [
        np.bincount(of_node, weights=each, minlength=len(mine)).astype(int).tolist()
        for each in (np.ones(len(rows)), carried, least, most, wrong, copied)
    ]
    for name, links, of_links, low, high, breaches, copies in zip(mine, *sums, strict=True):
        if not links or copies or name in account.left_out:
            continue
        said = f"{of_links} {account.what} by the links, {_between(low, high)} by the records"
        if breaches:
            i = int(np.argmax(wrong & (of_node == mine.index(name))))
            ends = f"{names[source][a[rows[i]]]} -> {names[target][b[rows[i]]]}"
            said += f" (the first on {ends}: {carried[i]} and {_between(least[i], most[i])})"
        yield name, not breaches, said


def _per_link(of_sending: Ints, keys: Ints) -> Ints:
    """How many sendings went each of these ways; the keys are sorted."""
    place = np.minimum(np.searchsorted(keys, of_sending), max(0, len(keys) - 1))
    found = place[keys[place] == of_sending] if len(keys) else place[:0]
    return np.bincount(found, minlength=len(keys))


def _between(least: int, most: int) -> str:
    return f"{least}" if least == most else f"{least} to {most}"
