"""Flow routing: probabilities that move by projected gradient steps.

    x <- projection(x - step * interval * cost)

on the simplex of the allowed targets; forbidden ones stay at exactly 0. Each request is dealt by the probabilities
of the moment. A target that has not reported yet is costed as idle. The step is in run time: per s^2 for a cost in
seconds, per s for one in requests. Source: DGD-LB (arXiv 2504.10693), whose steps have no lambda_i in them either.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

from testbed.roles.messages import Request
from testbed.routing.cost import clip_function, cost_function
from testbed.routing.simplex import project
from testbed.routing.view import Target, View
from testbed.routing.weighted import Chance, LowDiscrepancy, Sampler, Weights, shares_by
from testbed.scenario.policy_words import FlowPolicy

# Reports are of one lot within this part of the time since the lot before: far above the lateness of a live run,
# far below the distance of cells that report in turn.
TOGETHER = 0.05


class Update(NamedTuple):
    """One move of a policy's probabilities, for the records; the lists are in the order of `view.targets`."""

    interval_s: float  # time that the update stands for
    step: float
    before: list[float]  # those in effect until now
    after: list[float]
    costs: list[float]
    clipped: list[bool]  # the cost was cut at its ceiling


class Flow:
    """The probabilities, and how requests are dealt by them; when they move is up to the two classes below."""

    def __init__(
        self,
        view: View,
        *,
        cost: Callable[[Target], float],
        is_clipped: Callable[[Target], bool],
        step: float,
        start: Weights,
        sampler: Sampler,
    ) -> None:
        """Start from the shares that `start` gives over the allowed targets of the view."""
        self.cost = cost
        self.shares = shares_by(view, start) if view.allowed else [0.0] * len(view.targets)
        self._is_clipped = is_clipped
        self._step = step
        self._sampler = sampler
        sampler.set_shares(self.shares)
        self._allowed = view.allowed
        self._is_allowed = _flags(view)

    def choose(self, view: View, request: Request, rng: random.Random) -> Target | None:
        """As the sampler picks by the probabilities of the moment."""
        if view.allowed is not self._allowed:
            self._refit(view)
        return view.targets[self._sampler.pick(request, rng)] if view.allowed else None

    def move(self, view: View, interval_s: float, since: Sequence[float] | None = None) -> Update | None:
        """One gradient step that stands for `interval_s` seconds, from the shares `since` or those of the moment.

        None if no target is allowed.
        """
        if view.allowed is not self._allowed:
            self._refit(view)
        if not view.allowed:
            return None
        before = self.shares
        costs = [self.cost(target) for target in view.targets]
        gain = self._step * interval_s
        moved = [share - gain * cost for share, cost in zip(since or before, costs, strict=True)]
        self.shares = project(moved, self._is_allowed)
        self._sampler.set_shares(self.shares)
        clipped = [self._is_clipped(target) for target in view.targets]
        return Update(interval_s, self._step, before, self.shares, costs, clipped)

    def _refit(self, view: View) -> None:
        """The allowed targets have changed: what the forbidden ones had goes to the others in proportion."""
        self._allowed = view.allowed
        self._is_allowed = _flags(view)
        kept = [share if ok else 0.0 for share, ok in zip(self.shares, self._is_allowed, strict=True)]
        total = sum(kept)
        if total > 0:
            self.shares = [share / total for share in kept]
        elif view.allowed:
            self.shares = shares_by(view, "even")
        else:
            self.shares = kept
        self._sampler.set_shares(self.shares)


class TimedFlow(Flow):
    """Moves every `tick_interval_s`, whether anything was reported meanwhile or not."""

    tick_interval_s = 0.0

    def on_tick(self, view: View) -> Update | None:
        """One step for one interval."""
        return self.move(view, self.tick_interval_s)


class ReportedFlow(Flow):
    """Moves at each report, for the time since the last move.

    Reports that come together (cells that report in phase) are one lot: each makes the move of the lot anew, from
    the shares before it, with all that is known by then. Otherwise the first of them would move the shares for the
    whole period on news of the others that is one period old.
    """

    first_interval_s = 0.0
    _before: list[float]  # the shares before the lot
    _before_at_s = 0.0  # when they had come to stand for all news until then
    _lot_at_s = math.nan  # when the first report of the lot came
    _last_at_s = math.nan

    def on_report(self, view: View, target: Target) -> Update | None:
        """One step for the time since the lot before; made anew for each further report of a lot."""
        now_s = view.now_s
        if view.allowed is not self._allowed or not self._is_of_lot(now_s):
            self._open_lot(view, now_s)
        self._last_at_s = now_s
        return self.move(view, now_s - self._before_at_s, self._before)

    def _is_of_lot(self, now_s: float) -> bool:
        return now_s - self._lot_at_s <= TOGETHER * (self._lot_at_s - self._before_at_s)

    def _open_lot(self, view: View, now_s: float) -> None:
        if view.allowed is not self._allowed:
            self._refit(view)
        is_first = self._last_at_s != self._last_at_s
        self._before = self.shares
        self._before_at_s = now_s - self.first_interval_s if is_first else self._last_at_s
        self._lot_at_s = now_s


def build_flow(spec: FlowPolicy, view: View, report_every_s: float, output_mean: float) -> Flow:
    """The policy of a scenario; the interval defaults to the period of the reports."""
    kind = TimedFlow if spec.update == "timer" else ReportedFlow
    flow = kind(
        view,
        cost=cost_function(spec.cost, spec.model, output_mean, view.count),
        is_clipped=clip_function(spec.cost, spec.model, output_mean, view.count),
        step=spec.step.value,
        start=spec.start,
        sampler=Chance() if spec.sampling == "chance" else LowDiscrepancy(len(view.targets)),
    )
    if isinstance(flow, TimedFlow):
        flow.tick_interval_s = report_every_s if spec.interval is None else spec.interval
    else:
        flow.first_interval_s = report_every_s
    return flow


def _flags(view: View) -> list[bool]:
    allowed = {target.index for target in view.allowed}
    return [target.index in allowed for target in view.targets]
