"""What it cost to choose as it was chosen, and whether old news, the way there or the rule is to blame.

For each sampled decision there is, for every candidate, the cost that was believed, the true one at that instant, the
true one when the request arrived (both by the policy's own cost), and the sojourn to be expected on arrival: alpha +
beta n with the true n of requests in flight and the true speed, and the round trip. The choice had a rank among the
believed costs: 0 for the least. What the same rule would pick on the truth is the candidate of that rank by the true
costs. The expected sojourn of the choice, less the least of all candidates, then falls into three parts that add up:

    staleness   of the choice, less that of the pick on the truth at the decision: what old news cost
    transit     of that pick, less that of the pick on the truth at arrival: what the way there cost
    rule        of that one, less the least: what the rule gives away though it knows all

A policy that never looks at the costs of the moment (a fixed split, or probabilities that move on their own) would
have picked the same on any truth, so all of its regret is the rule's. Among candidates of equal true cost the chosen one
counts as picked if it is one of them, else their mean counts. Means over decisions, seconds.

`wrong_choice_fraction` is the share of decisions whose choice had not the least true cost at that instant.

Source: measures.md, section 2.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from testbed.analysis.records import Floats, Mask, Table, Tables, Window, codes, row_count, rows
from testbed.analysis.routing_shares import stream_kind
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import root_name

SAME_COST = 1e-9  # relative: costs nearer than that are equal, as equal counts at equal cells are


class Regret(NamedTuple):
    """Means over the decisions of a window, seconds of expected sojourn; NaN where there are none."""

    staleness: float
    transit: float
    rule: float
    wrong_choice_fraction: float
    decisions: int

    @property
    def total(self) -> float:
        """Expected sojourn of the choices, less that of the best candidates on arrival."""
        return self.staleness + self.transit + self.rule


class Candidates(NamedTuple):
    """Sampled decisions as matrices of shape (decisions, cells); NaN: the cell was no candidate.

    Attributes:
        chosen: column of the choice, shape (decisions,).
        believed: cost.
        true: cost at the decision.
        on_arrival: cost when the request arrived.
        sojourn_s: to be expected then.
    """

    chosen: npt.NDArray[np.int64]
    believed: Floats
    true: Floats
    on_arrival: Floats
    sojourn_s: Floats


NONE = Regret(math.nan, math.nan, math.nan, math.nan, 0)


def regret(scenario: Scenario, tables: Tables, window: Window) -> Regret:
    """Over the sampled decisions of the window whose requests arrived."""
    decisions = tables.get("decisions", {})
    if not row_count(decisions) or "true_sojourn_at_arrival_s" not in decisions:
        return NONE
    decisions = rows(decisions, window.holds(decisions["used_at_s"]))
    if not row_count(decisions):
        return NONE
    candidates, first = candidate_matrices(decisions, list(scenario.cells))
    looks = _looks_at_costs(scenario, rows(decisions, first), tables)
    return regret_of(candidates, looks)


def regret_of(candidates: Candidates, looks: Mask) -> Regret:
    """The parts of the regret.

    Args:
        candidates: of the decisions.
        looks: whether the rule of each decision compares the costs of the moment, shape (decisions,).
    """
    chosen, sojourn_s = candidates.chosen, candidates.sojourn_s
    each = np.arange(len(chosen))
    arrived = np.isfinite(sojourn_s[each, chosen])
    rank = _rank(candidates.believed, chosen)
    got_s = sojourn_s[each, chosen]
    fresh_s = np.where(looks, _picked(candidates.true, rank, chosen, sojourn_s), got_s)
    there_s = np.where(looks, _picked(candidates.on_arrival, rank, chosen, sojourn_s), got_s)
    best_s = np.nanmin(np.where(arrived[:, np.newaxis], sojourn_s, np.inf), axis=1)
    true = candidates.true
    is_wrong = true[each, chosen] > np.nanmin(true, axis=1) * (1 + SAME_COST)
    if not arrived.any():
        return NONE
    return Regret(
        float((got_s - fresh_s)[arrived].mean()),
        float((fresh_s - there_s)[arrived].mean()),
        float((there_s - best_s)[arrived].mean()),
        float(is_wrong[arrived].mean()),
        int(arrived.sum()),
    )


def candidate_matrices(decisions: Table, cells: list[str]) -> tuple[Candidates, Mask]:
    """The rows of decisions as matrices, and which row is the first of each decision."""
    first = np.diff(decisions["request_id"], prepend=-1) != 0
    row, column = np.cumsum(first) - 1, codes(decisions["cell"], cells)
    shape = (int(first.sum()), len(cells))

    def matrix(name: str) -> Floats:
        filled = np.full(shape, np.nan)
        filled[row, column] = decisions[name]
        return filled

    chosen = np.zeros(shape[0], np.int64)
    is_chosen = decisions["chosen"].astype(bool)
    chosen[row[is_chosen]] = column[is_chosen]
    names = ("believed_cost", "true_cost", "true_cost_at_arrival", "true_sojourn_at_arrival_s")
    return Candidates(chosen, *(matrix(name) for name in names)), first


def _rank(costs: Floats, chosen: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """How many candidates were believed to cost less than the choice."""
    mine = costs[np.arange(len(chosen)), chosen][:, np.newaxis]
    return np.asarray((costs < mine - np.abs(mine) * SAME_COST).sum(axis=1), np.int64)


def _picked(
    costs: Floats, rank: npt.NDArray[np.int64], chosen: npt.NDArray[np.int64], sojourn_s: Floats
) -> Floats:
    """The sojourn of the candidate of this rank by these costs: shape (decisions,)."""
    each = np.arange(len(chosen))
    ranked = np.sort(costs, axis=1)[each, rank][:, np.newaxis]  # NaN sorts last
    alike = np.abs(costs - ranked) <= np.abs(ranked) * SAME_COST
    count = alike.sum(axis=1)
    means_s = np.divide(
        np.where(alike, sojourn_s, 0.0).sum(axis=1), count, out=np.full(len(chosen), np.nan), where=count > 0
    )
    return np.where(alike[each, chosen], sojourn_s[each, chosen], means_s)


def _looks_at_costs(scenario: Scenario, decisions: Table, tables: Tables) -> Mask:
    """Whether each decision was made by a rule that compares the costs of the moment."""
    roots, classes = list(scenario.roots), list(scenario.classes)
    updates = tables.get("updates", {})
    looks = np.zeros((len(roots), len(classes)), np.bool_)
    for i, root in enumerate(roots):
        for name in {line.class_ for line in scenario.roots[root].traffic}:
            looks[i, classes.index(name)] = stream_kind(scenario, updates, root, name) == "chosen"
    at_root = codes(decisions["root"], [root_name(root) for root in roots])
    of_class = codes(tables["requests"]["class"][decisions["request_id"]], classes)
    return np.asarray(looks[at_root, of_class])
