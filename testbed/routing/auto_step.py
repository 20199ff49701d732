"""A step that a root derives as it runs: a safe share of the critical step for the load and delay that it observes.

It observes the rate of all roots (cumulative arrivals in the reports), the loop delay (ages of what it uses, half
the round trip) and the speed of the targets; the rate curves and the shape of the work are those of the scenario.
Whenever one of these has moved by more than a twentieth the step is derived anew. Until all allowed targets have
reported for a while, the step is the floor, or 0: the shares rest where they start.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from testbed.routing.cost import model_curve
from testbed.routing.line_work import LineWork, work_of_mix
from testbed.routing.loop_estimate import LoopEstimate
from testbed.routing.step_rule import Derived, Loop, derive_step
from testbed.routing.view import Target, View
from testbed.scenario.policy_words import Cost, FlowPolicy, LatencyModel
from testbed.serving.rate_curve import RateCurve

MOVED = 0.05  # relative change of what a step was derived from that is worth another


class Tuning(NamedTuple):
    """What a policy has settled on, and the numbers behind it, for the records; in run time.

    Attributes:
        mode: flow or discrete.
        rate_per_s: of all roots together, all classes.
        class_rate_per_s: the same of the policy's class.
        loop_delay_s: T; that of the target which bounds the step, or the mean where nothing is derived.
        a_per_s: the rate at which a difference between targets fades.
        decisions: n_T, of all roots for this class within one loop delay; NaN where it decides nothing.
        decisions_most: up to which discrete routing is the better one, sqrt(3 Lambda / a); NaN likewise.
        step: as bounded by floor and ceiling; NaN in discrete routing.
        critical_step: NaN likewise.
    """

    mode: str
    rate_per_s: float
    class_rate_per_s: float
    loop_delay_s: float
    a_per_s: float
    decisions: float
    decisions_most: float
    step: float
    critical_step: float


class AutoStep:
    """The step of one line of traffic at one root."""

    def __init__(
        self,
        estimate: LoopEstimate,
        line: LineWork,
        *,
        cost: Cost,
        model: LatencyModel,
        output_mean: float,
        floor: float,
        ceiling: float,
    ) -> None:
        """Nothing is known yet: the step is the floor."""
        self._estimate = estimate
        self._line = line
        self._cost: Cost = cost
        self._model: LatencyModel = model
        self._output_mean = output_mean
        self._floor = floor
        self._ceiling = ceiling
        self._step = floor
        self._basis: tuple[float, ...] = ()
        self._tuning: Tuning | None = None

    def at(self, view: View) -> float:
        """The step now; to be asked at every update, for that is when the age of the news counts."""
        self._estimate.observe(view)
        rate_per_s, class_rate_per_s = self._estimate.rates_per_s(view)
        if not rate_per_s > 0.0:
            return self._step
        basis = (rate_per_s, *(value for target in view.allowed for value in self._seen(target)))
        if _has_moved(self._basis, basis):
            self._basis = basis
            loops = [self._loop(target) for target in view.allowed]
            self._take(derive_step(loops, rate_per_s, self._cost), rate_per_s, class_rate_per_s)
        return self._step

    def news(self) -> Tuning | None:
        """What the step was derived from, once after each time."""
        tuning, self._tuning = self._tuning, None
        return tuning

    def _take(self, derived: Derived, rate_per_s: float, class_rate_per_s: float) -> None:
        self._step = min(max(derived.step, self._floor), self._ceiling)
        self._tuning = Tuning(
            "flow", rate_per_s, class_rate_per_s, derived.loop_delay_s, derived.a_per_s,
            math.nan, math.nan, self._step, derived.critical_step,
        )  # fmt: skip

    def _seen(self, target: Target) -> tuple[float, float, float]:
        curve = self._curve(target)
        return self._estimate.loop_delay_s(target), curve.alpha_s, curve.beta_s

    def _curve(self, target: Target) -> RateCurve:
        if self._model == "scaled":
            return target.curve.at_speed(self._estimate.speed(target))
        return model_curve(target, self._model, self._output_mean)

    def _loop(self, target: Target) -> Loop:
        curve = self._curve(target)
        speed = target.curve.alpha_s / curve.alpha_s
        class_curve = self._line.curves[target.index].at_speed(speed)
        transform = self._line.transforms[target.index]
        return Loop(target.servers, curve, class_curve, transform, self._estimate.loop_delay_s(target))


def build_auto_step(
    spec: FlowPolicy, view: View, report_every_s: float, output_mean: float, line: LineWork | None
) -> AutoStep:
    """The step of a policy's words; arguments as for `build_flow`."""
    line = line or work_of_mix(view, output_mean)
    return AutoStep(
        build_estimate(spec, view, report_every_s, line),
        line,
        cost=spec.cost,
        model=spec.model,
        output_mean=output_mean,
        floor=0.0 if spec.step_floor is None else spec.step_floor.value,
        ceiling=math.inf if spec.step_ceiling is None else spec.step_ceiling.value,
    )


def build_estimate(spec: FlowPolicy, view: View, report_every_s: float, line: LineWork) -> LoopEstimate:
    """The estimate of the loop for a line of traffic."""
    index = line.class_index
    return LoopEstimate(
        len(view.targets), report_every_s, lambda target: target.arrivals_of(index), spec.decision_time
    )


def _has_moved(before: Sequence[float], after: Sequence[float]) -> bool:
    if len(before) != len(after):
        return True
    return any(abs(new - old) > MOVED * abs(old) for old, new in zip(before, after, strict=True))
