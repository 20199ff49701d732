"""What a policy is, the registry of those that come with the testbed, and how a user's own is loaded.

A policy gets a view, a request and a random stream, returns a target and changes nothing but its own memory. It
may have hooks besides `choose`, all optional:

    on_report(view, target) -> Update | None       a report of this target was taken into the view
    on_reply(target, sojourn_s, outcome)           a request came back from this target, or was given up
    on_tick(view) -> Update | None                 every `tick_interval_s` (an attribute, seconds of run time)
    probes(view, rng) -> list of targets           called after each choice: whom to ask how busy they are
    on_probe_reply(view, target, reply)            an answer has come
    cost(target) -> float                          what it compares, for the records

A user's own policy is a class by import path, `kind: my_module:MyPolicy`, made as `MyPolicy(**params)`.
What it raises, and what it returns that no policy may, ends the run (see `guard.py`).
"""

from __future__ import annotations

import importlib
import inspect
import math
import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from testbed.errors import PolicyError
from testbed.roles.messages import Outcome, ProbeReply, Request
from testbed.routing.belief import configure_view, keep_unseen
from testbed.routing.consistent_hash import ConsistentHash
from testbed.routing.d_choices import build_d_choices
from testbed.routing.flow import Update, build_flow
from testbed.routing.greedy import (
    RandomChoice,
    RoundRobin,
    believed_cost,
    build_least_cost,
    build_two_choices,
)
from testbed.routing.guard import Guarded, Raised, in_words
from testbed.routing.idle_queue import JoinIdleQueue
from testbed.routing.imitation import build_imitation
from testbed.routing.least_latency import LeastLatency
from testbed.routing.load_interpretation import LoadInterpretation
from testbed.routing.logit import build_logit
from testbed.routing.marginal_rate import build_marginal_rate
from testbed.routing.prefix_aware import PrefixAware
from testbed.routing.prequal import Prequal
from testbed.routing.shortest_queue import build_shortest_queue
from testbed.routing.smooth_weighted import SmoothWeighted
from testbed.routing.static_optimal import build_static_optimal
from testbed.routing.view import Target, View
from testbed.routing.weighted import build_weighted
from testbed.routing.worst import Worst
from testbed.scenario import policy_words

__all__ = ["POLICIES", "Hooks", "Policy", "Update", "build_policy", "load_policy_class", "policy_hooks"]

ACCEPTED = "'module:Class' with a module that can be imported from here (PYTHONPATH) and a class with choose(view, request, rng)"


class Policy(Protocol):
    """A rule that picks a target for each request."""

    def choose(self, view: View, request: Request, rng: random.Random) -> Target | None:
        """One of `view.allowed`, or None if none will do; changes nothing but the policy's own memory."""


class Hooks(NamedTuple):
    """The optional methods of a policy, looked up once; None where it has none."""

    on_report: Callable[[View, Target], Update | None] | None
    on_reply: Callable[[Target, float, Outcome], None] | None
    on_tick: Callable[[View], Update | None] | None
    tick_interval_s: float  # infinite without on_tick
    probes: Callable[[View, random.Random], list[Target]] | None
    on_probe_reply: Callable[[View, Target, ProbeReply], None] | None
    cost: Callable[[Target], float] | None


class Place(NamedTuple):
    """Where a policy is to work, for those that want to know."""

    seed: int
    node: str
    report_every_s: float
    output_mean: float
    optimal_shares: Sequence[float] | None = (
        None  # in the order of the targets, where the scenario asks for them
    )


# Kind -> builder; each takes the policy's words, the view and the place.
POLICIES: dict[str, Callable[[Any, View, Place], Policy]] = {
    "random": lambda spec, view, place: RandomChoice(),
    "round_robin": lambda spec, view, place: RoundRobin(),
    "weighted": lambda spec, view, place: build_weighted(spec, view, place.seed, place.node),
    "smooth_weighted": lambda spec, view, place: SmoothWeighted(spec.weights),
    "static_optimal": lambda spec, view, place: build_static_optimal(
        spec, view, place.seed, place.node, place.optimal_shares
    ),
    "least_cost": lambda spec, view, place: build_least_cost(spec, view, place.output_mean),
    "two_choices": lambda spec, view, place: build_two_choices(spec, view, place.output_mean),
    "d_choices": lambda spec, view, place: build_d_choices(spec, view, place.output_mean),
    "worst": lambda spec, view, place: Worst(believed_cost(spec, view, place.output_mean)),
    "jsq": lambda spec, view, place: build_shortest_queue(spec, view),
    "gmsr": lambda spec, view, place: build_marginal_rate(spec, view, place.output_mean),
    "load_interpretation": lambda spec, view, place: LoadInterpretation(
        len(view.targets), spec.fill == "aggressive"
    ),
    "logit": lambda spec, view, place: build_logit(spec, view, place.output_mean),
    "imitation": lambda spec, view, place: build_imitation(
        spec, view, place.report_every_s, place.output_mean
    ),
    "least_latency": lambda spec, view, place: LeastLatency(len(view.targets), spec.weight, spec.explore),
    "jiq": lambda spec, view, place: JoinIdleQueue(),
    "flow": lambda spec, view, place: build_flow(spec, view, place.report_every_s, place.output_mean),
    "prequal": lambda spec, view, place: Prequal(spec, len(view.targets), place.seed, place.node),
    "consistent_hash": lambda spec, view, place: ConsistentHash(spec, view.targets, place.seed),
    "prefix_aware": lambda spec, view, place: PrefixAware(spec, view.targets),
}


def build_policy(
    spec: policy_words.Policy,
    view: View,
    *,
    seed: int,
    node: str,
    report_every_s: float,
    output_mean: float,
    optimal_shares: Sequence[float] | None = None,
) -> Policy:
    """The policy of a scenario at one node, for one view.

    Args:
        spec: its words, in run time.
        view: the beliefs it will work on; configured here as the words say.
        seed: the scenario's.
        node: name of the balancer, so that no two nodes draw alike.
        report_every_s: period of the reports that the view gets.
        output_mean: mean output tokens of the balancer's mix, for the fitted latency model.
        optimal_shares: those of `static_optimal`, in the order of the targets.

    Raises:
        PolicyError: a user's policy cannot be imported or made.
    """
    configure_view(spec, view)
    if isinstance(spec, policy_words.UserPolicy):
        keep_unseen(view)  # whether the user's rule corrects by own sends cannot be known
        return _build_user_policy(spec, node)
    return POLICIES[spec.kind](spec, view, Place(seed, node, report_every_s, output_mean, optimal_shares))


def policy_hooks(policy: Policy) -> Hooks:
    """The optional methods of a policy.

    Raises:
        PolicyError: `on_tick` without a positive `tick_interval_s`.
    """
    on_tick = getattr(policy, "on_tick", None)
    tick_interval_s = getattr(policy, "tick_interval_s", None)
    if on_tick is not None and not (
        isinstance(tick_interval_s, int | float) and 0 < tick_interval_s < math.inf
    ):
        label = policy.label if isinstance(policy, Guarded) else type(policy).__name__
        raise PolicyError(
            f"policy {label} has on_tick, but its tick_interval_s is {tick_interval_s!r}; "
            "accepted: seconds above 0"
        )
    return Hooks(
        getattr(policy, "on_report", None),
        getattr(policy, "on_reply", None),
        on_tick,
        math.inf if on_tick is None or tick_interval_s is None else float(tick_interval_s),
        getattr(policy, "probes", None),
        getattr(policy, "on_probe_reply", None),
        getattr(policy, "cost", None),
    )


def load_policy_class(path: str) -> type[Any]:
    """The class that an import path `module:Class` names; for a check before anything starts.

    Raises:
        PolicyError: the module cannot be imported, or has no such class, or the class has no `choose`.
    """
    module_name, _, class_name = path.partition(":")
    try:
        module = importlib.import_module(module_name)
    # The module is the user's: whatever its first lines raise is what failed, and belongs in the message.
    except Raised as error:
        raise _refusal(path, f"importing {module_name} failed: {type(error).__name__}: {error}") from error
    found = getattr(module, class_name, None)
    if found is None:
        raise _refusal(path, f"{module_name} has no {class_name}")
    if not inspect.isclass(found):
        raise _refusal(path, f"{class_name} is {type(found).__name__}, not a class")
    if not callable(getattr(found, "choose", None)):
        raise _refusal(path, f"{class_name} has no method choose")
    return found


def _build_user_policy(spec: policy_words.UserPolicy, node: str) -> Policy:
    found = load_policy_class(spec.kind)
    try:
        inspect.signature(found).bind(**spec.params)
    except TypeError as error:
        accepted = f"params that fit {spec.kind.partition(':')[2]}{inspect.signature(found)}"
        raise PolicyError(
            f"policy {spec.kind}: params {spec.params}: {error}; accepted: {accepted}"
        ) from error
    try:
        return Guarded(found(**spec.params), spec.kind, node)
    except Raised as error:
        problem = f"making it with params {spec.params} raised {in_words(error)}"
        raise _refusal(spec.kind, problem) from error


def _refusal(path: str, problem: str) -> PolicyError:
    return PolicyError(f"policy {path}: {problem}; accepted: {ACCEPTED}")
