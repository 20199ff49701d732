"""Expectations: assertions of a scenario file on the summary of its arms.

`metric op [k *] (arm.metric | quantity)`, such as `sojourn_s.p99 > 1.5 * flow.sojourn_s.p99`. A metric is a path
into that arm's entry of `summary.json`, where everything is in base units: seconds, fractions, rates per second.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from testbed.scenario.quantity import DURATION, NUMBER, PERCENT, RATE, STEP, Dimension
from testbed.scenario.spelling import listed, nearest
from testbed.scenario.yaml_tree import shortened

METRICS = (
    "requests", "sojourn_s", "first_token_s", "token_gap_s", "oscillation", "staleness_s", "release_lateness_s",
    "cells", "classes", "policy", "constraints", "settled", "goodput_per_s", "little", "regret_s", "imbalance",
    "windows", "split_s", "queue_wait_s", "transit_s", "synchrony", "herd", "bounces_per_minute",
    "migration_per_minute", "deviation", "wrong_choice_fraction", "processes", "prefix_cache",
    "resendings", "sheds", "left_out",
)  # fmt: skip
OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    ">": operator.gt,
    "<": operator.lt,
}
SEEDS_THAT_MUST_HOLD = 0.8  # with repeats, one seed in five may fail by chance

_PATH = r"[^\W\d][\w-]*(?:\.[\w-]+)*"
_FORM = re.compile(rf"\s*({_PATH})\s*(>=|<=|==|>|<)\s*(?:({NUMBER})\s*\*\s*)?(\S.*?)\s*")
_OTHER = re.compile(rf"([\w-]+)\.({_PATH})")
ACCEPTED = "metric op [k *] (arm.metric | quantity), such as 'sojourn_s.p99 > 1.5 * flow.sojourn_s.p99'"


class ExpectationError(ValueError):
    """An expectation that cannot be read: what is wrong with it, and what is accepted."""

    def __init__(self, problem: str, accepted: str) -> None:
        """Keep both parts apart, for the fault they end in."""
        super().__init__(problem)
        self.accepted = accepted


class Outcome(NamedTuple):
    """What came of an expectation; `observed` and `limit` are None where the summary has no such number."""

    met: bool
    observed: float | None
    limit: float | None
    text: str


@dataclass(frozen=True)
class Expectation:
    """One assertion: `metric` of `arm` compared with `factor` times a metric of another arm, or a quantity.

    Exactly one of (`other_arm` and `other_metric`) and `quantity` is given; a quantity is in base units.
    """

    arm: str
    metric: str
    op: str
    factor: float
    other_arm: str | None
    other_metric: str | None
    quantity: float | None
    text: str
    line: int = 0

    @property
    def arms(self) -> tuple[str, ...]:
        """The arms whose results it needs."""
        return (self.arm,) if self.other_arm is None else (self.arm, self.other_arm)

    def check(self, summary: dict[str, Any]) -> Outcome:
        """Hold it against a summary, as in `summary.json`; what is missing there is not met."""
        observed, limit = self._values(summary)
        if observed is None or limit is None:
            missing = [] if observed is not None else [f"{self.arm}.{self.metric}"]
            missing += [] if limit is not None else [f"{self.other_arm}.{self.other_metric}"]
            verb = "has" if len(missing) == 1 else "have"
            return Outcome(
                False, observed, limit, f"{self}: not met, {' and '.join(missing)} {verb} no value"
            )
        met = OPERATORS[self.op](observed, limit)
        return Outcome(met, observed, limit, f"{self}: {self._said(met, observed, limit)}")

    def check_repeats(self, summaries: Sequence[dict[str, Any]]) -> Outcome:
        """Hold it against one summary per seed: it has to hold for the means and for 80 % of the seeds."""
        outcomes = [self.check(summary) for summary in summaries]
        lacking = [outcome for outcome in outcomes if outcome.observed is None or outcome.limit is None]
        if lacking or not outcomes:
            return Outcome(
                False, None, None, lacking[0].text if lacking else f"{self}: not met, no run to look at"
            )
        observed = math.fsum(outcome.observed or 0.0 for outcome in outcomes) / len(outcomes)
        limit = math.fsum(outcome.limit or 0.0 for outcome in outcomes) / len(outcomes)
        held = sum(outcome.met for outcome in outcomes)
        met = OPERATORS[self.op](observed, limit) and held >= SEEDS_THAT_MUST_HOLD * len(outcomes)
        said = self._said(met, observed, limit)
        return Outcome(met, observed, limit, f"{self}: {said} in the mean, {held} of {len(outcomes)} seeds")

    def __str__(self) -> str:
        """As it stands in the scenario file."""
        return f"{self.arm}: {self.text}"

    def _values(self, summary: dict[str, Any]) -> tuple[float | None, float | None]:
        observed = _number(summary, self.arm, self.metric)
        if self.other_arm is None or self.other_metric is None:
            return observed, None if self.quantity is None else self.factor * self.quantity
        other = _number(summary, self.other_arm, self.other_metric)
        return observed, None if other is None else self.factor * other

    def _said(self, met: bool, observed: float, limit: float) -> str:
        return f"{'met' if met else 'not met'}, {observed:.4g} against {limit:.4g}"


def parse_expectation(
    arm: str, text: str, *, arms: Collection[str] | None = None, line: int = 0
) -> Expectation:
    """Read an expectation on an arm.

    Args:
        arm: the arm it is about.
        text: `metric op [k *] (arm.metric | quantity)`.
        arms: the arms there are; not looked at if None.
        line: where it stands.

    Raises:
        ExpectationError: what is wrong, and what is accepted.
    """
    match = _FORM.fullmatch(text)
    if match is None:
        raise ExpectationError(f"{shortened(repr(text))} is not an expectation", ACCEPTED)
    metric, op, factor, right = match.groups()
    _check_arm(arm, arms)
    _check_metric(metric)
    times = 1.0 if factor is None else float(factor)
    if not math.isfinite(times):
        raise ExpectationError(f"the factor {shortened(factor)} is out of range", "a finite number")
    if re.match(NUMBER, right):
        return Expectation(arm, metric, op, times, None, None, _quantity(metric, right), text, line)
    other = _OTHER.fullmatch(right)
    if other is None:
        raise ExpectationError(
            f"{shortened(repr(right))} is neither a quantity nor a metric of an arm", ACCEPTED
        )
    _check_arm(other[1], arms)
    _check_metric(other[2])
    return Expectation(arm, metric, op, times, other[1], other[2], None, text, line)


def _check_arm(arm: str, arms: Collection[str] | None) -> None:
    if arms is not None and arm not in arms:
        raise ExpectationError(f"{shortened(repr(arm))} is not an arm{nearest(arm, arms)}", listed(arms))


def _check_metric(metric: str) -> None:
    first = metric.split(".")[0]
    if first not in METRICS:
        raise ExpectationError(
            f"unknown metric {shortened(first)!r}{nearest(first, METRICS)}", listed(METRICS)
        )


def _quantity(metric: str, text: str) -> float:
    """A number in the unit of the metric's name, or a quantity of its dimension."""
    if re.fullmatch(NUMBER, text):
        number = float(text)
        if not math.isfinite(number):
            raise ExpectationError(f"{shortened(text)} is out of range", "a finite number")
        return number
    dimension = _dimension(metric)
    try:
        return dimension.parse(text)
    except ValueError as error:
        raise ExpectationError(shortened(str(error), 120), f"{dimension.accepted}, or a number") from error


def _dimension(metric: str) -> Dimension:
    """The dimension that the words of a metric end in: `_s` seconds, `_per_s` rates; fractions and counts else."""
    words = metric.split(".")
    if words == ["policy", "step"]:
        return STEP
    if any(word.endswith("_per_s") for word in words):
        return RATE
    return DURATION if any(word.endswith("_s") for word in words) else PERCENT


def _number(summary: dict[str, Any], arm: str, metric: str) -> float | None:
    """The number at a path into an arm's entry; None where it is absent, null or no finite number."""
    value: Any = summary.get("arms", {}).get(arm)
    for word in metric.split("."):
        value = value.get(word) if isinstance(value, dict) else None
    is_number = isinstance(value, int | float) and math.isfinite(value)
    return float(value) if is_number else None
