"""Whether the roots moved together: how alike their changes are at the same report, and what chance would give.

For each report r of cell j, dx_i(r) is the change of the share that root i gives to cell j when it first uses r. The
synchrony is the mean pairwise correlation of the roots' dx_i over r. Chance is the same figure after the series of each
root has been shifted in a circle by an amount of its own, 200 times: every series keeps its shape, and only what they
owe to the same report is lost.

Where a policy moves probabilities, dx is their change at the root's first update that used the report. A policy that
chooses anew for each request has the share of the requests that the root sent to the cell while r was its newest report
of it, less the same for the report before. With several leaves in a cell, their reports of one number count as one.

Source: measures.md, section 3.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from testbed.analysis.records import Floats, Mask, Table, Tables, Window, codes, positions_by, row_count
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import root_name

SHIFTS = 200
HIGH = 0.95  # of the shifts stay below `chance_high`
LEAST_REPORTS = 8  # a correlation over fewer changes says nothing


class Synchrony(NamedTuple):
    """How far the roots moved together.

    Attributes:
        correlation: mean pairwise correlation of the roots' changes; NaN where fewer than two roots ever moved.
        chance: mean of the same over the shifted series.
        chance_high: what 95 % of the shifts stay below.
    """

    correlation: float
    chance: float
    chance_high: float

    @property
    def above_chance(self) -> bool | None:
        """Whether fewer than one shift in twenty reaches the correlation; None where nothing is known."""
        return self.correlation > self.chance_high if math.isfinite(self.correlation) else None


def synchrony(scenario: Scenario, tables: Tables, window: Window) -> Synchrony:
    """Over all classes and cells, each counting alike; the scenario's seed fixes the shifts."""
    roots = len(scenario.roots)
    turns = np.random.default_rng(scenario.seed).uniform(size=(SHIFTS, roots))
    turns = np.vstack((np.zeros(roots), turns))  # the first is no shift: what was observed
    found = [mean_correlations(changes, turns) for changes in changes_by_report(scenario, tables, window)]
    known = np.array([each for each in found if np.isfinite(each).all()])
    if not len(known):
        return Synchrony(math.nan, math.nan, math.nan)
    observed, *shifted = known.mean(axis=0).tolist()
    return Synchrony(observed, float(np.mean(shifted)), float(np.quantile(shifted, HIGH)))


def mean_correlations(changes: Floats, turns: Floats) -> Floats:
    """Mean pairwise correlation of rows, each shifted in a circle: shape (shifts,); NaN where nobody moves.

    Each row is taken less its mean and over its standard deviation, both over its known values; a pair counts where
    both are known.

    Args:
        changes: shape (roots, reports); NaN: the root never used the report.
        turns: by how much of the whole circle each root is shifted, shape (shifts, roots).
    """
    count = changes.shape[1]
    known = np.isfinite(changes)
    keeps = np.array([_moves(row[seen]) for row, seen in zip(changes, known, strict=True)], np.bool_)
    if keeps.sum() < 2:
        return np.full(len(turns), np.nan)
    changes, known, shifts = changes[keeps], known[keeps], (turns[:, keeps] * count).astype(np.int64)
    centres = np.nanmean(changes, axis=1, keepdims=True)
    deviations = np.nanstd(changes, axis=1, keepdims=True)
    z = np.where(known, (changes - centres) / deviations, 0.0)
    sums, overlaps = np.zeros(len(turns)), np.zeros(len(turns))
    waves, seen = np.fft.rfft(z, axis=1), np.fft.rfft(known.astype(np.float64), axis=1)
    for i in range(len(z) - 1):
        # products[j, k] = sum over r of z_i(r + k) z_j(r), for every lag k at once
        products = np.fft.irfft(waves[i] * np.conj(waves[i + 1 :]), count, axis=1)
        both = np.fft.irfft(seen[i] * np.conj(seen[i + 1 :]), count, axis=1)
        lags = (shifts[:, i : i + 1] - shifts[:, i + 1 :]) % count
        others = np.arange(len(z) - 1 - i)
        sums += products[others, lags].sum(axis=1)
        overlaps += both[others, lags].sum(axis=1)
    means = np.full(len(turns), np.nan)
    np.divide(sums, overlaps, out=means, where=overlaps > 0.5)
    return means


def changes_by_report(scenario: Scenario, tables: Tables, window: Window) -> Iterator[Floats]:
    """dx of every class and cell: shape (roots, reports), NaN where a root did not use a report in the window."""
    requests, updates = tables["requests"], tables.get("updates", {})
    reports = _by_pair(scenario, tables.get("observations", {}), ("sequence", "received_at_s"))
    for name in scenario.classes:
        sent = _by_pair(scenario, requests, ("sent_at_s",), _of_class(requests, name, "sent_at_s", window))
        columns = ("sequence", "probability_before", "probability")
        moved = _by_pair(scenario, updates, columns, _of_class(updates, name, "used_at_s", window))
        changes = [_root_changes(*each) for each in zip(moved, sent, reports, strict=True)]
        for cell in range(len(scenario.cells)):
            yield _aligned([of_root[cell] for of_root in changes])


Changes = tuple[npt.NDArray[np.int64], Floats]  # numbers of reports, and the change at each


def _root_changes(updates: list[Table], requests: list[Table], observations: list[Table]) -> list[Changes]:
    """The changes of one root at each cell: of its probabilities where it has any, else of its choices."""
    if any(row_count(each) for each in updates):
        return [_update_changes(each) for each in updates]
    sent = np.sort(np.concatenate([each["sent_at_s"] for each in requests]))
    return [_arrival_changes(sent, *each) for each in zip(requests, observations, strict=True)]


def _update_changes(updates: Table) -> Changes:
    """The change at the first update that used each report; the table is in order of time."""
    known = updates["sequence"] >= 0
    numbers, first = np.unique(updates["sequence"][known], return_index=True)
    moved = (updates["probability"] - updates["probability_before"])[known]
    return numbers.astype(np.int64), np.asarray(moved[first], np.float64)


def _arrival_changes(sent_at_s: Floats, chosen: Table, observations: Table) -> Changes:
    """The share that a cell got while each report was the newest, less that of the one before."""
    numbers, received = _newest(observations["sequence"], observations["received_at_s"])
    to_cell = np.diff(np.searchsorted(np.sort(chosen["sent_at_s"]), received))
    all_sent = np.diff(np.searchsorted(sent_at_s, received))
    used = all_sent > 0
    return numbers[:-1][used][1:], np.diff(to_cell[used] / all_sent[used])


def _of_class(table: Table, name: str, instant: str, window: Window) -> Mask:
    if not row_count(table):
        return np.zeros(0, np.bool_)
    return np.asarray((table["class"] == name) & window.holds(table[instant]), np.bool_)


def _by_pair(
    scenario: Scenario, table: Table, columns: Sequence[str], mask: Mask | None = None
) -> list[list[Table]]:
    """These columns of the rows that the mask keeps, for each root and, within it, each cell."""
    roots, cells = [root_name(root) for root in scenario.roots], list(scenario.cells)
    if not row_count(table):
        return [[dict.fromkeys(columns, np.empty(0)) for _ in cells] for _ in roots]
    root, cell = codes(table["root"], roots), codes(table["cell"], cells)
    kept = (root >= 0) & (cell >= 0) if mask is None else mask & (root >= 0) & (cell >= 0)
    held = {name: table[name][kept] for name in columns}
    groups = positions_by(root[kept] * len(cells) + cell[kept], len(roots) * len(cells))
    pairs = [{name: column[rows] for name, column in held.items()} for rows in groups]
    return [pairs[i * len(cells) : (i + 1) * len(cells)] for i in range(len(roots))]


def _newest(numbers: npt.NDArray[np.int64], received: Floats) -> tuple[npt.NDArray[np.int64], Floats]:
    """The reports that were news when they came: those that a later one had not overtaken, in order."""
    order = np.argsort(received, kind="stable")
    numbers, received = numbers[order], received[order]
    is_news = np.diff(np.maximum.accumulate(numbers), prepend=-1) > 0
    return numbers[is_news], received[is_news]


def _aligned(rows: list[Changes]) -> Floats:
    """The changes of all roots by report: shape (roots, reports)."""
    numbers = np.unique(np.concatenate([each for each, _ in rows])) if rows else np.empty(0, np.int64)
    aligned = np.full((len(rows), len(numbers)), np.nan)
    for row, (mine, changes) in zip(aligned, rows, strict=True):
        row[np.searchsorted(numbers, mine)] = changes
    return aligned


def _moves(values: Floats) -> bool:
    return len(values) >= LEAST_REPORTS and float(values.std()) > 0.0
