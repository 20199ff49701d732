"""The loop delay of each root and cell: measured from the records, and predicted from the scenario.

T_ij = request travel (root's sending to leaf's receipt) + mean age of the observation when it is used, and between
the two the time that decisions take, which the scenario fixes. It is used
at the updates of policies that move probabilities, each weighted by the time its shares were in effect, and at every
request by policies that choose anew each time.
The reply path and the update interval are not part of it.

Source: measures.md, section 2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from testbed.analysis.records import (
    Floats,
    Mask,
    Table,
    Tables,
    Window,
    codes,
    mean,
    positions_by,
    row_count,
)
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import Topology, root_name
from testbed.theory import loop_delay as theory
from testbed.theory.path_delays import PathDelays
from testbed.traffic.capacity import allowed_cells


class PairDelay(NamedTuple):
    """The loop delay between a root and a cell, for one class of traffic."""

    root: str
    class_name: str
    cell: str
    travel_s: float
    age_s: float
    requests: int
    decision_s: float = 0.0

    @property
    def loop_delay_s(self) -> float:
        """Age of the observation, decision and request travel together."""
        return self.age_s + self.decision_s + self.travel_s


def measured_loop_delays(scenario: Scenario, tables: Tables, window: Window) -> list[PairDelay]:
    """One entry per root, class and cell that requests were sent to in the window."""
    names = (
        [root_name(root) for root in scenario.roots],
        list(scenario.classes),
        list(scenario.cells),
    )
    requests, updates = tables["requests"], tables.get("updates", {})
    sent = _by_key(
        requests,
        ("root", "class", "cell"),
        names,
        ("sent_at_s", "at_leaf_s", "staleness_s"),
        window.holds(requests["planned_at_s"]),
    )
    used = _by_key(
        updates,
        ("root", "class", "cell"),
        names,
        ("used_at_s", "measured_at_s"),
        window.holds(updates["used_at_s"]) if row_count(updates) else None,
    )
    heard = _by_key(
        tables.get("observations", {}),
        ("root", "cell"),
        (names[0], names[2]),
        ("leaf", "received_at_s", "measured_at_s"),
    )
    keys = product(names[0], names[1], names[2])
    news = (heard[i * len(names[2]) + j] for i, _, j in product(*(range(len(each)) for each in names)))
    decisions = {
        (root_name(root), line.class_): theory.decision_s(scenario.policies[line.policy])
        for root, spec in scenario.roots.items()
        for line in spec.traffic
    }
    return [
        _pair(*key, *parts)._replace(decision_s=decisions.get(key[:2], 0.0))
        for key, *parts in zip(keys, sent, used, news, strict=True)
        if row_count(parts[0])
    ]


def overall_loop_delay_s(pairs: list[PairDelay]) -> float:
    """Mean over roots, classes and cells, weighted by requests; NaN when nothing was measured."""
    known = [pair for pair in pairs if math.isfinite(pair.loop_delay_s)]
    total = sum(pair.requests for pair in known)
    return sum(pair.loop_delay_s * pair.requests for pair in known) / total if total else math.nan


def predicted_loop_delay_s(scenario: Scenario, topology: Topology) -> float:
    """The prediction of the theory, the mean over lines of traffic and cells alike; NaN where all reports are lost."""
    paths = PathDelays(topology)
    delays = [
        theory.loop_delay_s(scenario, paths, root, cell, scenario.policies[line.policy])
        for root, spec in scenario.roots.items()
        for index, line in enumerate(spec.traffic)
        for cell in allowed_cells(scenario, root, index)
    ]
    return mean(np.array(delays))


def best_loop_delay_s(scenario: Scenario, topology: Topology, pairs: list[PairDelay]) -> float:
    """The measured loop delay, or the predicted one where no observation was used."""
    measured_s = overall_loop_delay_s(pairs)
    return measured_s if math.isfinite(measured_s) else predicted_loop_delay_s(scenario, topology)


def _by_key(
    table: Table,
    keys: Sequence[str],
    names: Sequence[Sequence[str]],
    columns: Sequence[str],
    mask: Mask | None = None,
) -> list[Table]:
    """These columns of the rows that the mask keeps, for each combination of the names that the keys may have."""
    count = math.prod(len(each) for each in names)
    if not row_count(table):
        return [{name: np.empty(0) for name in columns}] * count
    place, known = np.zeros(row_count(table), np.int64), np.ones(row_count(table), np.bool_)
    for key, words in zip(keys, names, strict=True):
        code = codes(table[key], words)
        place, known = place * len(words) + code, known & (code >= 0)
    kept = known if mask is None else known & mask
    held = {name: table[name][kept] for name in columns}
    return [
        {name: column[rows] for name, column in held.items()} for rows in positions_by(place[kept], count)
    ]


def _pair(root: str, name: str, cell: str, requests: Table, updates: Table, observations: Table) -> PairDelay:
    """Of the requests, updates and observations of one root, class and cell."""
    travel_s = mean(requests["at_leaf_s"] - requests["sent_at_s"])
    at_s, ages_s, weights_s = _uses(updates)
    if not len(at_s):
        at_s, ages_s = requests["sent_at_s"], requests["staleness_s"]
        weights_s = np.ones(len(at_s))
    of_leaves_s = _ages_over_leaves(observations, at_s)
    age_s = _weighted_mean(ages_s if of_leaves_s is None else of_leaves_s, weights_s)
    return PairDelay(root, name, cell, travel_s, age_s, row_count(requests))


def _uses(updates: Table) -> tuple[Floats, Floats, Floats]:
    """Of each update: its instant, the age of the observation, and how long its shares were in effect.

    A move that was made anew at once, because further reports came at the same instant, thus does not count.
    """
    order = np.argsort(updates["used_at_s"], kind="stable")
    at_s, measured_at_s = updates["used_at_s"][order], updates["measured_at_s"][order]
    lasting_s = np.diff(at_s)
    weights_s = np.append(lasting_s, lasting_s.mean() if len(lasting_s) else 1.0)
    return at_s, at_s - measured_at_s, weights_s[: len(at_s)]


def _ages_over_leaves(observations: Table, at_s: Floats) -> Floats | None:
    """Age at these instants of what a root knew of a cell, the mean over its leaves; None for a single leaf.

    Each leaf has a part of the cell's requests, so the mean is the age of their sum; staleness is that of the
    oldest report.
    """
    leaves = list(dict.fromkeys(observations["leaf"].tolist()))
    if len(leaves) < 2:
        return None
    ages_s = [_ages(observations, observations["leaf"] == leaf, at_s) for leaf in leaves]
    return np.asarray(np.mean(ages_s, axis=0))


def _ages(observations: Table, mine: Mask, at_s: Floats) -> Floats:
    """Age of the newest report received by each instant; NaN before the first."""
    order = np.argsort(observations["received_at_s"][mine], kind="stable")
    received_at_s = observations["received_at_s"][mine][order]
    newest_at_s = np.maximum.accumulate(observations["measured_at_s"][mine][order])
    newest_at_s = np.concatenate(([math.nan], newest_at_s))
    return np.asarray(at_s - newest_at_s[np.searchsorted(received_at_s, at_s, side="right")])


def _weighted_mean(values: Floats, weights: Floats) -> float:
    """Over the finite values; NaN where none has a weight."""
    known = np.isfinite(values)
    total = float(weights[known].sum())
    return float((values[known] * weights[known]).sum()) / total if total > 0.0 else math.nan
