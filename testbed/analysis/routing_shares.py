"""The shares that each root gives to the cells, as step functions of time.

A policy that moves probabilities has these. One that never looks at costs has fixed shares, the same all the time:
those of its requests in the window. One that chooses anew for each request has, for each report period, the shares of
the requests that it sent in it; a period without a request keeps the shares before it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from testbed.analysis.records import Floats, Mask, Table, Tables, Window, codes, row_count
from testbed.scenario.policy_words import Policy
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import reports_of, root_name

# Kinds of policies that split requests without a look at the cells.
FIXED_KINDS = frozenset({"random", "round_robin", "weighted", "smooth_weighted", "static_optimal"})
MOVING_KINDS = frozenset({"flow", "imitation"})  # by probabilities, which may never have moved
MOST_PERIODS = 200_000  # of a grid of report periods; a finer one would take memory and tell nothing


class StreamShares(NamedTuple):
    """The shares of one root and class.

    Attributes:
        root: name of the root's node.
        class_name: of the traffic.
        kind: `moved` (probabilities), `fixed`, or `chosen` (anew for each request).
        weight: this stream's part of all requests of the window.
        at_s: instants from which the shares hold, rising; the first is the start of the window.
        shares: shape (instants, cells); each row adds up to 1.
    """

    root: str
    class_name: str
    kind: str
    weight: float
    at_s: Floats
    shares: Floats

    def at(self, instants_s: Floats) -> Floats:
        """The shares at these instants: shape (instants, cells)."""
        places = np.searchsorted(self.at_s, instants_s, side="right") - 1
        return self.shares[np.maximum(places, 0)]

    def lengths_s(self, to_s: float) -> Floats:
        """How long each row of the shares held, up to the end of the window."""
        return np.diff(self.at_s, append=to_s)


def stream_shares(scenario: Scenario, tables: Tables, window: Window) -> list[StreamShares]:
    """One entry per root and class that sent requests in the window."""
    requests, updates = tables["requests"], tables.get("updates", {})
    inside = window.holds(requests["sent_at_s"]) & (requests["cell"] != "")
    total = int(inside.sum())
    cell = codes(requests["cell"], list(scenario.cells))
    streams = []
    for root, spec in scenario.roots.items():
        of_root = inside & (requests["root"] == root_name(root))
        for name in dict.fromkeys(line.class_ for line in spec.traffic):
            mine = of_root & (requests["class"] == name)
            count = int(mine.sum())
            if count:
                kind = stream_kind(scenario, updates, root, name)
                if kind == "moved":
                    mine_of = _of_stream(updates, root, name)
                    at_s, shares = _moved(updates, mine_of, list(scenario.cells), window)
                else:
                    sent_at_s = requests["sent_at_s"][mine]
                    at_s, shares = _counted(scenario, kind, window, sent_at_s, cell[mine])
                streams.append(StreamShares(root_name(root), name, kind, count / total, at_s, shares))
    return streams


def stream_kind(scenario: Scenario, updates: Table, root: str, class_name: str) -> str:
    """How a root splits a class: `moved`, `fixed` or `chosen`; probabilities that never moved are fixed.

    Args:
        scenario: of the arm.
        updates: of its probabilities.
        root: its name in the scenario.
        class_name: one of its classes.
    """
    if row_count(updates) and _of_stream(updates, root, class_name).any():
        return "moved"
    names = {line.policy for line in scenario.roots[root].traffic if line.class_ == class_name}
    policies = [scenario.policies[name] for name in names]
    return "fixed" if all(_never_looks(policy) for policy in policies) else "chosen"


def _never_looks(policy: Policy) -> bool:
    """Whether a policy places requests without a look at the costs of the moment."""
    is_plain_hash = policy.kind == "consistent_hash" and getattr(policy, "bound", None) is None
    return policy.kind in FIXED_KINDS or policy.kind in MOVING_KINDS or is_plain_hash


def _of_stream(updates: Table, root: str, class_name: str) -> Mask:
    return np.asarray((updates["root"] == root_name(root)) & (updates["class"] == class_name), np.bool_)


def report_period_s(scenario: Scenario) -> float:
    """Mean period of the cells' reports."""
    return float(np.mean([reports_of(scenario, cell).every for cell in scenario.cells]))


def period_edges(window: Window, period_s: float) -> Floats:
    """Edges of whole report periods from the start of the window on, seconds; at least one period, at most MOST_PERIODS."""
    period_s = max(period_s, (window.to_s - window.from_s) / MOST_PERIODS)
    count = max(1, int((window.to_s - window.from_s) / period_s * (1 + 1e-12)))
    return np.asarray(window.from_s + period_s * np.arange(count + 1), np.float64)


def _counted(
    scenario: Scenario, kind: str, window: Window, sent_at_s: Floats, cell: npt.NDArray[np.int64]
) -> tuple[Floats, Floats]:
    """The shares of requests: of each report period, or of all where they are fixed."""
    cells = len(scenario.cells)
    if kind == "chosen":
        return _chosen(sent_at_s, cell, cells, period_edges(window, report_period_s(scenario)))
    counts = np.bincount(cell, minlength=cells)
    return np.array([window.from_s]), counts[np.newaxis, :] / counts.sum()


def _moved(updates: Table, mine: Mask, cells: list[str], window: Window) -> tuple[Floats, Floats]:
    """The probabilities at the start of the window, and after each update in it."""
    numbers, row = np.unique(updates["update"][mine], return_inverse=True)
    column = codes(updates["cell"][mine], cells)
    before, after = np.zeros((len(numbers), len(cells))), np.zeros((len(numbers), len(cells)))
    before[row, column] = updates["probability_before"][mine]
    after[row, column] = updates["probability"][mine]
    used_at_s = np.zeros(len(numbers))
    used_at_s[row] = updates["used_at_s"][mine]
    first, last = np.searchsorted(used_at_s, (window.from_s, window.to_s))
    start = after[first - 1] if first else before[0]
    return (
        np.concatenate(([window.from_s], used_at_s[first:last])),
        np.concatenate((start[np.newaxis, :], after[first:last])),
    )


def _chosen(
    sent_at_s: Floats, cell: npt.NDArray[np.int64], cells: int, edges: Floats
) -> tuple[Floats, Floats]:
    """The shares of the requests of each report period that has any."""
    period = np.minimum(np.searchsorted(edges, sent_at_s, side="right") - 1, len(edges) - 2)
    counts = np.bincount(period * cells + cell, minlength=(len(edges) - 1) * cells).reshape(-1, cells)
    sent = counts.sum(axis=1)
    known = sent > 0
    at_s = edges[:-1][known]
    at_s[0] = edges[0]  # before its first request a root has the shares of its first requests
    return at_s, counts[known] / sent[known, np.newaxis]
