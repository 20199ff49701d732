"""The words of the policies of a scenario file: one frozen model per `kind`, and the union that reads them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, model_validator

from testbed.scenario.quantity import Percent, StepSize
from testbed.scenario.resilience_words import BreakerWords, SlowStartWords
from testbed.scenario.view_words import CountWords, ViewWords
from testbed.scenario.words import (
    Flag,
    Name,
    NotNegative,
    Positive,
    PositiveCount,
    PositiveDuration,
    PositiveRate,
    Probability,
    Sampling,
    Words,
)

Cost = Literal["in_flight", "in_flight_per_capacity", "latency", "marginal"]
CostInSeconds = Literal["in_flight_per_capacity", "latency", "marginal"]
LatencyModel = Literal["profile", "scaled", "fitted"]
Ties = Literal["rotated", "random", "first"]
Draw = Literal["chance", "low_discrepancy", "request"]


class RandomPolicy(ViewWords):
    """Each request to an allowed target at random."""

    kind: Literal["random"]


class RoundRobinPolicy(ViewWords):
    """Each request to the next allowed target in turn."""

    kind: Literal["round_robin"]


class WeightedPolicy(ViewWords):
    """A static split: by capacity or by given weights; `draw: request` keys the choice by request id alone."""

    kind: Literal["weighted"]
    weights: Literal["capacity"] | dict[Name, NotNegative] = "capacity"
    draw: Draw = "chance"


class SmoothWeightedPolicy(ViewWords):
    """Weighted round robin, each target's turns spread out."""

    kind: Literal["smooth_weighted"]
    weights: Literal["capacity"] | dict[Name, NotNegative] = "capacity"


class StaticOptimalPolicy(ViewWords):
    """The static split of least mean latency for the planned mean rates; at roots."""

    kind: Literal["static_optimal"]
    draw: Draw = "chance"


class CountingPolicy(CountWords):
    """What policies that count requests in flight, by reports or by their own, have in common."""

    view: Literal["reports", "own_counts"] = "reports"

    @model_validator(mode="after")
    def _check_counting(self) -> CountingPolicy:
        if self.view != "reports" and (self.own_counts != "none" or self.reads_ages):
            raise ValueError(
                f"own_counts, stale and unheard go with reports, not with {self.view}", "view: reports"
            )
        return self


class CostPolicy(CountingPolicy):
    """What policies that compare costs have in common."""

    cost: Cost = "in_flight_per_capacity"
    model: LatencyModel = "scaled"
    ties: Ties = "rotated"


class LeastCostPolicy(CostPolicy):
    """Each request to the allowed target of least believed cost."""

    kind: Literal["least_cost"]


class TwoChoicesPolicy(CostPolicy):
    """The better of two allowed targets drawn at random."""

    kind: Literal["two_choices"]


class DChoicesPolicy(CostPolicy):
    """The best of `choices` allowed targets drawn at random."""

    kind: Literal["d_choices"]
    choices: PositiveCount


class WorstPolicy(CostPolicy):
    """Each request to the allowed target of highest believed cost: deliberately bad."""

    kind: Literal["worst"]


class ReportPolicy(ViewWords):
    """What policies that act on reports, whatever their keys say, have in common."""


class ShortestQueuePolicy(ReportPolicy, CountWords):
    """Join the shortest queue: each request to the allowed target that reported the least per server."""

    kind: Literal["jsq"]
    count: Literal["in_flight", "queued"] = "in_flight"
    ties: Ties = "rotated"

    @model_validator(mode="after")
    def _check_count(self) -> ShortestQueuePolicy:
        if self.count == "queued" and self.own_counts != "none":
            raise ValueError(
                f"own_counts does not go with count: {self.count}: whether own requests wait is not known",
                "count: in_flight",
            )
        return self


class MarginalRatePolicy(ReportPolicy, CountWords):
    """Each request to the allowed target of greatest marginal service rate (GMSR)."""

    kind: Literal["gmsr"]
    model: LatencyModel = "scaled"
    ties: Ties = "rotated"


class LoadInterpretationPolicy(ReportPolicy):
    """Shares that level the targets by the time the next reports come (Dahlin)."""

    kind: Literal["load_interpretation"]
    fill: Literal["basic", "aggressive"] = "basic"


class LogitPolicy(ReportPolicy, CountWords):
    """Each request to a target with a probability that falls exponentially with its cost."""

    kind: Literal["logit"]
    cost: CostInSeconds = "marginal"
    model: LatencyModel = "scaled"
    temperature: PositiveDuration


class ImitationPolicy(ReportPolicy, CountWords):
    """Shares that migrate to cheaper targets with a probability of `slope` per second gained (Fischer, Voecking)."""

    kind: Literal["imitation"]
    cost: CostInSeconds = "latency"
    model: LatencyModel = "scaled"
    slope: PositiveRate
    wake: PositiveRate = 1.0
    sample: Literal["shares", "uniform"] = "shares"
    interval: PositiveDuration | None = None
    sampling: Sampling = "chance"
    start: Literal["even", "capacity"] | dict[Name, NotNegative] = "even"


class LeastLatencyPolicy(ViewWords):
    """Each request to the allowed target whose replies took the least time of late."""

    kind: Literal["least_latency"]
    weight: Annotated[Probability, Field(gt=0)] = 0.1
    explore: Annotated[Percent, Field(ge=0, le=1)] = 0.01


class IdleQueuePolicy(Words):
    """Join idle queue: an idle server says so to one leaf, which keeps a queue of them; at leaves."""

    kind: Literal["jiq"]
    breaker: BreakerWords | None = None


class CriticalStep(Words):
    """A step as a multiple of the critical step, were all traffic so much that it is this share of the capacity."""

    critical: Positive
    load: Annotated[float, Field(strict=True, gt=0, lt=1)]


class FlowPolicy(CountWords):
    """Probabilities that move by gradient steps: x <- projection(x - step * interval * cost)."""

    kind: Literal["flow"]
    cost: Cost = "marginal"
    model: LatencyModel = "scaled"
    step: StepSize | Literal["auto"] | CriticalStep
    step_floor: StepSize | None = None
    step_ceiling: StepSize | None = None
    interval: PositiveDuration | None = None
    update: Literal["timer", "on_report"] = "timer"
    form: Literal["projection", "tangent_cone"] = "projection"
    max_move: Annotated[Percent, Field(gt=0, le=1)] | None = None
    explore: Annotated[Percent, Field(ge=0, lt=1)] = 0.0
    sampling: Sampling = "chance"
    start: Literal["even", "capacity"] | dict[Name, NotNegative] = "even"

    @property
    def step_unit(self) -> str:
        """Of the step, as the cost has it: per s for one in requests, per s^2 for one in seconds."""
        return "/s" if self.cost == "in_flight" else "/s^2"

    @property
    def is_on_report(self) -> bool:
        """Whether every report triggers an update."""
        return self.update == "on_report"


class DgdPolicy(FlowPolicy):
    """Distributed gradient descent: flow by marginal cost and travel, along the tangent cone."""

    # narrower than its parent, which never stands for it: the words of a policy are told apart by `kind`
    kind: Literal["dgd"]  # type: ignore[assignment]
    cost: Literal["marginal"] = "marginal"
    form: Literal["projection", "tangent_cone"] = "tangent_cone"


class DlbPolicy(FlowPolicy):
    """Discrete routing or flow routing, whichever suits the rate of the class and the age of the news."""

    # narrower than its parent, which never stands for it either
    kind: Literal["dlb"]  # type: ignore[assignment]
    mode: Literal["auto", "discrete", "flow"] = "auto"
    step: StepSize | Literal["auto"] | CriticalStep = "auto"
    update: Literal["timer"] = "timer"


class WeightedUtilisationPolicy(ReportPolicy):
    """Weights by queries over utilisation, drawn up anew `every` so often from what `memory` looks back over."""

    kind: Literal["weighted_utilisation"]
    every: PositiveDuration = 1.0
    memory: PositiveDuration = 10.0
    draw: Sampling = "low_discrepancy"


class ProbingPolicy(Words):
    """What policies that probe servers and keep the answers in a pool have in common."""

    kind: str
    pool: PositiveCount = 16
    probes_per_request: Positive = 3.0
    removals_per_request: NotNegative = 1.0
    max_age: PositiveDuration = 1.0
    delta: Positive = 1.0
    idle_probe_after: PositiveDuration | None = None
    breaker: BreakerWords | None = None
    slow_start: SlowStartWords | None = None


class PrequalPolicy(ProbingPolicy):
    """A pool of probes, or probes for each request, and the hot-cold rule (Prequal, NSDI 2024)."""

    kind: Literal["prequal"]
    hot_quantile: Probability = 0.84
    mode: Literal["async", "sync"] = "async"
    probe_timeout: PositiveDuration = 0.003

    @model_validator(mode="after")
    def _check(self) -> PrequalPolicy:
        if self.mode == "sync" and (self.probes_per_request < 2 or self.probes_per_request % 1):
            raise ValueError(
                f"{self.probes_per_request:.12g} probes_per_request do not go with mode: sync",
                "a whole number from 2",
            )
        if self.mode == "sync" and self.idle_probe_after is not None:
            raise ValueError(
                "idle_probe_after does not go with mode: sync, which has no pool to fill", "mode: async"
            )
        return self


class LinearPolicy(ProbingPolicy):
    """A pool of probes, ranked by a linear combination of latency and requests in flight."""

    kind: Literal["linear"]
    in_flight_weight: Probability = 0.5
    service_time: PositiveDuration | None = None


class C3Policy(ProbingPolicy):
    """A pool of probes, ranked by the score of C3 (NSDI 2015)."""

    kind: Literal["c3"]
    newest_weight: Annotated[float, Field(strict=True, gt=0, le=1)] = 0.9


class ConsistentHashPolicy(CountingPolicy):
    """Each session, prefix or request to the same target; with a `bound`, to the next one that is not too full."""

    kind: Literal["consistent_hash"]
    key: Literal["session", "prefix", "request"] = "session"
    virtual_nodes: PositiveCount = 100
    bound: Annotated[float, Field(strict=True, ge=1, allow_inf_nan=False)] | None = None
    view: Literal["reports", "own_counts"] = "own_counts"


class PrefixAwarePolicy(CountingPolicy):
    """Where the prompt's beginning was sent before, weighed against load.

    The bound and the age of the memory of each target follow the defaults of the Gateway API inference extension
    (31,250 blocks of 16 tokens) and of the SGLang router (eviction every two minutes); the balance thresholds those of
    the SGLang router.
    """

    kind: Literal["prefix_aware"]
    cache_weight: NotNegative = 1.0
    load_weight: NotNegative = 1.0
    memory_tokens: PositiveCount = 500_000
    max_age: PositiveDuration = 120.0
    balance_requests: NotNegative = 64.0
    balance_ratio: Annotated[float, Field(strict=True, ge=1, allow_inf_nan=False)] = 1.5
    view: Literal["reports", "own_counts"] = "own_counts"


class OraclePolicy(Words):
    """Each request to where it will stay the shortest by the truth of the instant; under the virtual engine alone."""

    kind: Literal["oracle"]
    under_way: Flag = True
    ties: Ties = "rotated"


class UserPolicy(ViewWords):
    """A policy of the user's own: `kind: my_module:MyPolicy`, with its parameters."""

    kind: Annotated[str, Field(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")]
    params: dict[Name, Any] = Field(default_factory=dict)


POLICY_KINDS: dict[str, type[Words]] = {
    "random": RandomPolicy,
    "round_robin": RoundRobinPolicy,
    "weighted": WeightedPolicy,
    "smooth_weighted": SmoothWeightedPolicy,
    "static_optimal": StaticOptimalPolicy,
    "least_cost": LeastCostPolicy,
    "two_choices": TwoChoicesPolicy,
    "d_choices": DChoicesPolicy,
    "worst": WorstPolicy,
    "jsq": ShortestQueuePolicy,
    "gmsr": MarginalRatePolicy,
    "load_interpretation": LoadInterpretationPolicy,
    "logit": LogitPolicy,
    "imitation": ImitationPolicy,
    "least_latency": LeastLatencyPolicy,
    "jiq": IdleQueuePolicy,
    "flow": FlowPolicy,
    "dgd": DgdPolicy,
    "dlb": DlbPolicy,
    "prequal": PrequalPolicy,
    "consistent_hash": ConsistentHashPolicy,
    "prefix_aware": PrefixAwarePolicy,
    "linear": LinearPolicy,
    "c3": C3Policy,
    "weighted_utilisation": WeightedUtilisationPolicy,
    "oracle": OraclePolicy,
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
    | Annotated[SmoothWeightedPolicy, Tag("smooth_weighted")]
    | Annotated[StaticOptimalPolicy, Tag("static_optimal")]
    | Annotated[LeastCostPolicy, Tag("least_cost")]
    | Annotated[TwoChoicesPolicy, Tag("two_choices")]
    | Annotated[DChoicesPolicy, Tag("d_choices")]
    | Annotated[WorstPolicy, Tag("worst")]
    | Annotated[ShortestQueuePolicy, Tag("jsq")]
    | Annotated[MarginalRatePolicy, Tag("gmsr")]
    | Annotated[LoadInterpretationPolicy, Tag("load_interpretation")]
    | Annotated[LogitPolicy, Tag("logit")]
    | Annotated[ImitationPolicy, Tag("imitation")]
    | Annotated[LeastLatencyPolicy, Tag("least_latency")]
    | Annotated[IdleQueuePolicy, Tag("jiq")]
    | Annotated[FlowPolicy, Tag("flow")]
    | Annotated[DgdPolicy, Tag("dgd")]
    | Annotated[DlbPolicy, Tag("dlb")]
    | Annotated[PrequalPolicy, Tag("prequal")]
    | Annotated[ConsistentHashPolicy, Tag("consistent_hash")]
    | Annotated[PrefixAwarePolicy, Tag("prefix_aware")]
    | Annotated[LinearPolicy, Tag("linear")]
    | Annotated[C3Policy, Tag("c3")]
    | Annotated[WeightedUtilisationPolicy, Tag("weighted_utilisation")]
    | Annotated[OraclePolicy, Tag("oracle")]
    | Annotated[UserPolicy, Tag("user")],
    Discriminator(policy_tag),
]

DEFAULT_LEAF_POLICY = LeastCostPolicy(kind="least_cost", cost="in_flight", view="own_counts")
