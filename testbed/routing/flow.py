"""Flow routing: probabilities that move by projected gradient steps.

    projection      x <- projection(x - step * interval * cost)
    tangent_cone    dx/dt = projection onto the tangent cone at x of (-step * cost), over the interval

on the simplex of the allowed targets; forbidden ones stay at exactly 0. For costs that are held over the interval
both come to the same point (the shares that reach 0 on the way are those that the projection cuts), which is why
the two forms of the literature are one method; both are here so that this can be seen.

Each request is dealt by the probabilities of the moment. A target that has not reported yet is costed as idle. The
step is in run time: per s^2 for a cost in seconds, per s for one in requests; it is fixed, or derived as the policy
runs (`auto_step.py`). `max_move` cuts an update that would move more than this share of the requests; `explore` is
a share that every allowed target keeps, so that there are replies to learn from.

Source: DGD-LB (arXiv 2504.10693), whose steps have no lambda_i in them either.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

from testbed.roles.messages import Request
from testbed.routing.auto_step import AutoStep, Tuning, build_auto_step
from testbed.routing.cost import clip_function, cost_function
from testbed.routing.line_work import LineWork
from testbed.routing.simplex import follow, project
from testbed.routing.view import Target, View
from testbed.routing.weighted import Chance, LowDiscrepancy, Sampler, Weights, shares_by
from testbed.scenario.policy_words import FlowPolicy
from testbed.scenario.quantity import Step

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


class Movement(NamedTuple):
    """How probabilities are moved.

    Attributes:
        follows_cone: by the tangent-cone form.
        max_move: the most of the requests that one update moves, half the sum of |dx|.
        explore: the least share of an allowed target.
    """

    follows_cone: bool = False
    max_move: float = 1.0
    explore: float = 0.0

    def apply(
        self, shares: Sequence[float], direction: Sequence[float], allowed: Sequence[bool]
    ) -> list[float]:
        """The probabilities that come of a move by `direction`."""
        floor = min(self.explore, 1.0 / max(1, sum(allowed)))
        if self.follows_cone and all(share >= floor for share, ok in zip(shares, allowed, strict=True) if ok):
            moved = follow(shares, direction, allowed, floor)
        else:  # shares below the floor (the start, or after a change of what is allowed) are in no cone yet
            moved = project(
                [share + change for share, change in zip(shares, direction, strict=True)], allowed, floor
            )
        size = 0.5 * sum(abs(after - before) for after, before in zip(moved, shares, strict=True))
        if size <= self.max_move:
            return moved
        part = self.max_move / size
        return [before + part * (after - before) for after, before in zip(moved, shares, strict=True)]


UNBOUND = Movement()


class Flow:
    """The probabilities, and how requests are dealt by them; when they move is up to the two classes below."""

    tuning: Callable[[], Tuning | None] | None = None  # where the step is derived: from what, if that is news

    def __init__(
        self,
        view: View,
        *,
        cost: Callable[[Target], float],
        is_clipped: Callable[[Target], bool],
        step: float | AutoStep,
        start: Weights,
        sampler: Sampler,
        movement: Movement = UNBOUND,
    ) -> None:
        """Start from the shares that `start` gives over the allowed targets of the view."""
        self.cost = cost
        self.shares = shares_by(view, start) if view.allowed else [0.0] * len(view.targets)
        self._is_clipped = is_clipped
        self._step = step
        if isinstance(step, AutoStep):
            self.tuning = step.news
        self._sampler = sampler
        self._movement = movement
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
        step = self._step.at(view) if isinstance(self._step, AutoStep) else self._step
        gain = step * interval_s
        self.shares = self._movement.apply(
            since or before, [-gain * cost for cost in costs], self._is_allowed
        )
        self._sampler.set_shares(self.shares)
        clipped = [self._is_clipped(target) for target in view.targets]
        return Update(interval_s, step, before, self.shares, costs, clipped)

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


def build_flow(
    spec: FlowPolicy, view: View, report_every_s: float, output_mean: float, line: LineWork | None = None
) -> TimedFlow | ReportedFlow:
    """The policy of a scenario; the interval defaults to the period of the reports.

    Args:
        spec: its words, with a step that is absolute or `auto`.
        view: the beliefs it will work on.
        report_every_s: period of the reports.
        output_mean: mean output tokens of the balancer's mix, for the fitted latency model.
        line: what its requests bring to each target, for `auto`; one memoryless class unless it is known.
    """
    kind = ReportedFlow if spec.is_on_report else TimedFlow
    if spec.step == "auto":
        step: float | AutoStep = build_auto_step(spec, view, report_every_s, output_mean, line)
    else:
        assert isinstance(spec.step, Step), f"{spec.step} has to be resolved before the run"
        step = spec.step.value
    flow = kind(
        view,
        cost=cost_function(spec.cost, spec.model, output_mean, view.count),
        is_clipped=clip_function(spec.cost, spec.model, output_mean, view.count),
        step=step,
        start=spec.start,
        sampler=Chance() if spec.sampling == "chance" else LowDiscrepancy(len(view.targets)),
        movement=Movement(
            spec.form == "tangent_cone", 1.0 if spec.max_move is None else spec.max_move, spec.explore
        ),
    )
    if isinstance(flow, TimedFlow):
        flow.tick_interval_s = report_every_s if spec.interval is None else spec.interval
    else:
        flow.first_interval_s = report_every_s
    return flow


def _flags(view: View) -> list[bool]:
    allowed = {target.index for target in view.allowed}
    return [target.index in allowed for target in view.targets]
