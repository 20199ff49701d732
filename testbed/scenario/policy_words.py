"""The words of the policies of a scenario file: one frozen model per `kind`, and the union that reads them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from testbed.scenario.quantity import StepSize
from testbed.scenario.words import (
    Flag,
    Name,
    NotNegative,
    Positive,
    PositiveCount,
    PositiveDuration,
    Probability,
    Sampling,
    Words,
)

Cost = Literal["in_flight", "in_flight_per_capacity", "latency", "marginal"]
LatencyModel = Literal["profile", "scaled", "fitted"]


class RandomPolicy(Words):
    """Each request to an allowed target at random."""

    kind: Literal["random"]


class RoundRobinPolicy(Words):
    """Each request to the next allowed target in turn."""

    kind: Literal["round_robin"]


class WeightedPolicy(Words):
    """A static split: by capacity or by given weights; `draw: request` keys the choice by request id alone."""

    kind: Literal["weighted"]
    weights: Literal["capacity"] | dict[Name, NotNegative] = "capacity"
    draw: Literal["chance", "low_discrepancy", "request"] = "chance"


class CostPolicy(Words):
    """What policies that compare costs have in common."""

    cost: Cost = "in_flight_per_capacity"
    model: LatencyModel = "scaled"
    view: Literal["reports", "own_counts"] = "reports"
    own_count_correction: Flag = False
    ties: Literal["rotated", "random", "first"] = "rotated"


class LeastCostPolicy(CostPolicy):
    """Each request to the allowed target of least believed cost."""

    kind: Literal["least_cost"]


class TwoChoicesPolicy(CostPolicy):
    """The better of two allowed targets drawn at random."""

    kind: Literal["two_choices"]


class FlowPolicy(Words):
    """Probabilities that move by gradient steps: x <- projection(x - step * interval * cost)."""

    kind: Literal["flow"]
    cost: Cost = "marginal"
    model: LatencyModel = "scaled"
    step: StepSize
    interval: PositiveDuration | None = None
    update: Literal["timer", "on_report"] = "timer"
    sampling: Sampling = "chance"
    start: Literal["even", "capacity"] | dict[Name, NotNegative] = "even"


class PrequalPolicy(Words):
    """A pool of probes and the hot-cold rule (Prequal, NSDI 2024)."""

    kind: Literal["prequal"]
    pool: PositiveCount = 16
    probes_per_request: Positive = 3.0
    removals_per_request: NotNegative = 1.0
    hot_quantile: Probability = 0.84
    max_age: PositiveDuration = 1.0
    delta: Positive = 1.0


class UserPolicy(Words):
    """A policy of the user's own: `kind: my_module:MyPolicy`, with its parameters."""

    kind: Annotated[str, Field(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")]
    params: dict[Name, Any] = Field(default_factory=dict)


POLICY_KINDS: dict[str, type[Words]] = {
    "random": RandomPolicy,
    "round_robin": RoundRobinPolicy,
    "weighted": WeightedPolicy,
    "least_cost": LeastCostPolicy,
    "two_choices": TwoChoicesPolicy,
    "flow": FlowPolicy,
    "prequal": PrequalPolicy,
}


def policy_tag(value: Any) -> str | None:
    """Which model reads a policy: its kind, or 'user' for an import path; None for an unknown kind."""
    kind = value.get("kind") if isinstance(value, dict) else getattr(value, "kind", None)
    if not isinstance(kind, str):
        return None
    if ":" in kind:
        return "user"
    return kind if kind in POLICY_KINDS else None


Policy = Annotated[
    Annotated[RandomPolicy, Tag("random")]
    | Annotated[RoundRobinPolicy, Tag("round_robin")]
    | Annotated[WeightedPolicy, Tag("weighted")]
    | Annotated[LeastCostPolicy, Tag("least_cost")]
    | Annotated[TwoChoicesPolicy, Tag("two_choices")]
    | Annotated[FlowPolicy, Tag("flow")]
    | Annotated[PrequalPolicy, Tag("prequal")]
    | Annotated[UserPolicy, Tag("user")],
    Discriminator(policy_tag),
]

DEFAULT_LEAF_POLICY = LeastCostPolicy(kind="least_cost", cost="in_flight", view="own_counts")
