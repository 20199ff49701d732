"""Smooth imitation: shares that migrate to cheaper targets, no faster than costs differ."""

from __future__ import annotations

import random
from collections.abc import Callable

from testbed.roles.messages import Request
from testbed.routing.cost import clip_function, cost_function
from testbed.routing.flow import Update
from testbed.routing.view import Target, View
from testbed.routing.weighted import Chance, LowDiscrepancy, Sampler, Weights, shares_by
from testbed.scenario.policy_words import ImitationPolicy


class Imitation:
    """Probabilities per target, each a crowd of agents that now and then look at another target and may move there.

    An agent wakes at rate `wake`, samples target q (by the shares, which is imitation, or uniformly) and leaves its
    own p with probability mu = slope (cost_p - cost_q), within 0 and 1. So in an interval dt the share

        wake dt x_p s_pq min(1, slope (cost_p - cost_q))

    moves from each p to each cheaper q. By latency it comes to rest where all used targets are equally slow, by
    marginal cost at the optimum. Sampling by shares never comes back to a target whose share is 0. With reports every
    T it converges if T <= 1 / (4 L alpha beta), alpha the slope per second times `wake`, beta the steepest rise of a
    latency with a share, L the links of a path; best response never does. For a rule with such a bound; flow routing
    moves all shares at once and faster.

    Source: Fischer, Voecking, Adaptive routing with stale information (PODC 2005).
    """

    def __init__(
        self,
        view: View,
        *,
        cost: Callable[[Target], float],
        is_clipped: Callable[[Target], bool],
        slope_per_s: float,
        wake_per_s: float,
        by_shares: bool,
        interval_s: float,
        start: Weights,
        sampler: Sampler,
    ) -> None:
        """Start from the shares that `start` gives over the allowed targets of the view."""
        self.cost = cost
        self.tick_interval_s = interval_s
        self.shares = shares_by(view, start) if view.allowed else [0.0] * len(view.targets)
        self._is_clipped = is_clipped
        self._slope_per_s = slope_per_s
        self._wake_per_s = wake_per_s
        self._by_shares = by_shares
        self._sampler = sampler
        self._allowed = view.allowed
        sampler.set_shares(self.shares)

    def choose(self, view: View, request: Request, rng: random.Random) -> Target | None:
        """As the sampler picks by the probabilities of the moment."""
        if view.allowed is not self._allowed:
            self._refit(view)
        return view.targets[self._sampler.pick(request, rng)] if view.allowed else None

    def on_tick(self, view: View) -> Update | None:
        """Who wakes in one interval looks around once; None if no target is allowed."""
        if view.allowed is not self._allowed:
            self._refit(view)
        if not view.allowed:
            return None
        before = self.shares
        costs = [self.cost(target) for target in view.targets]
        self.shares = self._migrated(before, costs)
        self._sampler.set_shares(self.shares)
        clipped = [self._is_clipped(target) for target in view.targets]
        step = self._slope_per_s * self._wake_per_s
        return Update(self.tick_interval_s, step, before, self.shares, costs, clipped)

    def _migrated(self, shares: list[float], costs: list[float]) -> list[float]:
        woken = min(1.0, self._wake_per_s * self.tick_interval_s)
        allowed = [target.index for target in self._allowed]
        moved = list(shares)
        for p in allowed:
            for q in allowed:
                gain_s = costs[p] - costs[q]
                if gain_s > 0.0:
                    sampled = shares[q] if self._by_shares else 1.0 / len(allowed)
                    flow = woken * shares[p] * sampled * min(1.0, self._slope_per_s * gain_s)
                    moved[p] -= flow
                    moved[q] += flow
        return _normal(moved)

    def _refit(self, view: View) -> None:
        """The allowed targets have changed: what the forbidden ones had goes to the others in proportion."""
        self._allowed = view.allowed
        if view.allowed:
            names = {target.name: self.shares[target.index] for target in view.allowed}
            self.shares = shares_by(view, names)
            self._sampler.set_shares(self.shares)


def build_imitation(
    spec: ImitationPolicy, view: View, report_every_s: float, output_mean: float
) -> Imitation:
    """The policy of a scenario; the interval defaults to the period of the reports."""
    return Imitation(
        view,
        cost=cost_function(spec.cost, spec.model, output_mean, view.count),
        is_clipped=clip_function(spec.cost, spec.model, output_mean, view.count),
        slope_per_s=spec.slope,
        wake_per_s=spec.wake,
        by_shares=spec.sample == "shares",
        interval_s=report_every_s if spec.interval is None else spec.interval,
        start=spec.start,
        sampler=Chance() if spec.sampling == "chance" else LowDiscrepancy(len(view.targets)),
    )


def _normal(shares: list[float]) -> list[float]:
    """The shares over their sum, which rounding has moved, none below 0."""
    kept = [max(0.0, share) for share in shares]
    total = sum(kept)
    return [share / total for share in kept]
