"""Distributed load balancing (DLB): discrete or flow routing, whichever suits the class.

Every interval the root looks at the rate of its class at all roots and at its loop delay, as reports and replies
tell them, and decides by the rule of `discrete_or_flow.py`. In discrete routing each request goes to the target of
least work; in flow routing the shares move as those of `flow` do, with a step of the class's own. Classes of one
root decide apart, and share the cells. Until it knows its rate, a class flows.

Source: Google's Distributed Load Balancing (see README); the rule: measures.md, section 5.
"""

from __future__ import annotations

import math
import random

from testbed.roles.messages import Request
from testbed.routing.auto_step import Tuning, build_estimate
from testbed.routing.discrete_or_flow import Decision, decide
from testbed.routing.flow import TimedFlow, Update, build_flow
from testbed.routing.least_work import LeastWork
from testbed.routing.line_work import LineWork, work_of_mix
from testbed.routing.loop_estimate import LoopEstimate
from testbed.routing.step_rule import Loop, relaxation_per_s, utilisation
from testbed.routing.view import Target, View
from testbed.scenario.policy_words import DlbPolicy


class Dlb:
    """Both kinds of routing for one line of traffic; `mode` is auto, discrete or flow."""

    def __init__(
        self,
        mode: str,
        flow: TimedFlow,
        work: LeastWork,
        estimate: LoopEstimate,
        line: LineWork,
        at_profile: bool = False,
    ) -> None:
        """Start flowing, unless discrete routing is forced; targets run at their profile's speed, or as reported."""
        self.cost = flow.cost
        self.tick_interval_s = flow.tick_interval_s
        self.is_discrete = mode == "discrete"
        self._is_forced = mode != "auto"
        self._decided = self._is_forced
        self._at_profile = at_profile
        self._flow = flow
        self._work = work
        self._estimate = estimate
        self._line = line
        self._news: Tuning | None = None
        self._told: Tuning | None = None

    def choose(self, view: View, request: Request, rng: random.Random) -> Target | None:
        """As the kind of the moment does."""
        return (self._work if self.is_discrete else self._flow).choose(view, request, rng)

    def on_tick(self, view: View) -> Update | None:
        """Decide again, and move the shares if they are in use."""
        self._decide(view)
        return None if self.is_discrete else self._flow.on_tick(view)

    def tuning(self) -> Tuning | None:
        """The newest decision and step, if they are news."""
        step = None if self._flow.tuning is None else self._flow.tuning()
        if step is not None and not self.is_discrete:
            self._news = step if self._told is None else _with_decision(step, self._told)
        news, self._news = self._news, None
        return news

    def _decide(self, view: View) -> None:
        self._estimate.observe(view)
        rate_per_s, class_rate_per_s = self._estimate.rates_per_s(view)
        if not class_rate_per_s > 0.0:
            return
        loops = [self._loop(target) for target in view.allowed]
        busy = utilisation(loops, rate_per_s)
        a_per_s = sum(relaxation_per_s(loop.class_curve, busy) for loop in loops) / len(loops)
        loop_delay_s = sum(loop.loop_delay_s for loop in loops) / len(loops)
        found = decide(class_rate_per_s, loop_delay_s, a_per_s, self.is_discrete if self._decided else None)
        if not self._is_forced:
            self._decided = True
            self.is_discrete = found.is_discrete
        self._tell(found, rate_per_s, class_rate_per_s, loop_delay_s, a_per_s)

    def _tell(
        self, found: Decision, rate_per_s: float, class_rate_per_s: float, loop_delay_s: float, a_per_s: float
    ) -> None:
        """Keep the numbers for the records, if they have changed enough to be worth a row."""
        mode = "discrete" if self.is_discrete else "flow"
        told = self._told
        if told is not None and told.mode == mode and _is_close(told.decisions, found.decisions):
            return
        self._told = self._news = Tuning(
            mode, rate_per_s, class_rate_per_s, loop_delay_s, a_per_s,
            found.decisions, found.most, math.nan, math.nan,
        )  # fmt: skip

    def _loop(self, target: Target) -> Loop:
        line, index = self._line, target.index
        speed = 1.0 if self._at_profile else self._estimate.speed(target)
        return Loop(
            target.servers,
            target.curve.at_speed(speed),
            line.curves[index].at_speed(speed),
            line.transforms[index],
            self._estimate.loop_delay_s(target),
        )


def build_dlb(
    spec: DlbPolicy, view: View, report_every_s: float, output_mean: float, line: LineWork | None
) -> Dlb:
    """The policy of a scenario; arguments as for `build_flow`."""
    line = line or work_of_mix(view, output_mean)
    flow = build_flow(spec, view, report_every_s, output_mean, line)
    assert isinstance(flow, TimedFlow), "dlb updates by a timer"
    return Dlb(
        spec.mode,
        flow,
        LeastWork(view, line, spec.model),
        build_estimate(spec, view, report_every_s, line),
        line,
        spec.model == "profile",
    )


def _with_decision(step: Tuning, told: Tuning) -> Tuning:
    return step._replace(decisions=told.decisions, decisions_most=told.decisions_most, a_per_s=told.a_per_s)


def _is_close(one: float, other: float) -> bool:
    return abs(one - other) <= 0.1 * abs(one)
