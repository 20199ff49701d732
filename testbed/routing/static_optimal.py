"""The static split of least mean latency: what a planner with perfect forecasts would set once."""

from __future__ import annotations

from collections.abc import Sequence

from testbed.routing.view import View
from testbed.routing.weighted import Weighted, sampler_of
from testbed.scenario.policy_words import StaticOptimalPolicy


class StaticOptimal(Weighted):
    """A fixed split by the shares that minimise the mean number of requests in the whole system.

    Minimise sum_j N_j + sum_ij r_ij tau_ij over the allowed cells, at the mean rates of the plan and the speeds of
    the profiles; solved before the run (`testbed.theory.optimal_split`) and told to each root. The best that routing
    without feedback can do, and so the yardstick for feedback: what it loses when loads or speeds change is what
    following them is worth. Where a cell may no longer be used the others keep their proportions.

    Source: theory.md section 2.2, equations (2) and (3); DGD-LB (arXiv 2504.10693) has the same optimum.
    """


def build_static_optimal(
    spec: StaticOptimalPolicy, view: View, seed: int, node: str, shares: Sequence[float] | None
) -> StaticOptimal:
    """The policy of a scenario; `shares` are the optimal ones in the order of the targets, even if None."""
    given = [1.0] * len(view.targets) if shares is None else shares
    weights = {target.name: share for target, share in zip(view.targets, given, strict=True)}
    return StaticOptimal(weights, sampler_of(spec.draw, view, seed, node))
