"""What a policy is, the registry of those that come with the testbed, and how a user's own is loaded.

A policy gets a view, a request and a random stream, returns a target and changes nothing but its own memory. It
may have hooks besides `choose`, all optional:

    on_report(view, target) -> Update | None       a report of this target was taken into the view
    on_reply(target, sojourn_s, outcome)           a request came back from this target, or was given up
    on_tick(view) -> Update | None                 every `tick_interval_s` (an attribute, seconds of run time)
    probes(view, rng) -> list of targets           called after each choice: whom to ask how busy they are
    on_probe_reply(view, target, reply)            an answer has come
    idle_probes(view, rng) -> list of targets      whom to probe when none was for `idle_probe_after_s` (an attribute)
    ask(view, request, rng) -> (targets, needed)   whom to probe for this request before it is placed, and how many
                                                   answers are enough; it waits for them, up to `ask_timeout_s`
    choose_answered(view, request, answers, rng)   the choice then, from a list of (target, probe reply); in its
                                                   place `choose` serves a request for which nobody was asked
    cost(target) -> float                          what it compares, for the records
    tuning() -> Tuning | None                      asked after each tick and report: what it has settled on, if news

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

from testbed.draw import key_base, uniform
from testbed.errors import PolicyError
from testbed.roles.messages import Outcome, ProbeReply, Request
from testbed.routing.auto_step import Tuning
from testbed.routing.belief import configure_view, keep_unseen
from testbed.routing.c3 import C3
from testbed.routing.consistent_hash import ConsistentHash
from testbed.routing.d_choices import build_d_choices
from testbed.routing.dlb import build_dlb
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
from testbed.routing.line_work import LineWork
from testbed.routing.linear import Linear
from testbed.routing.load_interpretation import LoadInterpretation
from testbed.routing.logit import build_logit
from testbed.routing.marginal_rate import build_marginal_rate
from testbed.routing.oracle import TruthOf, build_oracle
from testbed.routing.prefix_aware import PrefixAware
from testbed.routing.prequal import Prequal, build_prequal
from testbed.routing.shortest_queue import build_shortest_queue
from testbed.routing.smooth_weighted import SmoothWeighted
from testbed.routing.static_optimal import build_static_optimal
from testbed.routing.utilisation import build_utilisation
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


ChooseAnswered = Callable[[View, Request, list[tuple[Target, ProbeReply]], random.Random], Target | None]


class Hooks(NamedTuple):
    """The optional methods of a policy, looked up once; None where it has none."""

    on_report: Callable[[View, Target], Update | None] | None
    on_reply: Callable[[Target, float, Outcome], None] | None
    on_tick: Callable[[View], Update | None] | None
    tick_interval_s: float  # infinite without on_tick
    probes: Callable[[View, random.Random], list[Target]] | None
    on_probe_reply: Callable[[View, Target, ProbeReply], None] | None
    cost: Callable[[Target], float] | None
    idle_probes: Callable[[View, random.Random], list[Target]] | None = None
    idle_probe_after_s: float = math.inf
    ask: Callable[[View, Request, random.Random], tuple[list[Target], int]] | None = None
    choose_answered: ChooseAnswered | None = None
    ask_timeout_s: float = math.inf
    tuning: Callable[[], Tuning | None] | None = None


class Place(NamedTuple):
    """Where a policy is to work, for those that want to know."""

    seed: int
    node: str
    report_every_s: float
    output_mean: float
    optimal_shares: Sequence[float] | None = (
        None  # in the order of the targets, where the scenario asks for them
    )
    truth_of: TruthOf | None = None  # None where the engine does not know the truth
    line: LineWork | None = None  # what its requests bring to each target; roots alone know
    peers: int = 1  # balancers that share the targets, this one among them

    def turn(self, targets: int) -> int:
        """Index of the target whose turn it was before the first choice, -1 for one that is alone.

        Balancers that share targets would go round in step and make a herd, so they begin at points of their own.
        """
        if self.peers == 1:
            return -1
        return int(targets * uniform(key_base(self.seed, self.node, "turn"), 0))


# Kind -> builder; each takes the policy's words, the view and the place.
POLICIES: dict[str, Callable[[Any, View, Place], Policy]] = {
    "random": lambda spec, view, place: RandomChoice(),
    "round_robin": lambda spec, view, place: RoundRobin(place.turn(len(view.targets))),
    "weighted": lambda spec, view, place: build_weighted(spec, view, place.seed, place.node),
    "smooth_weighted": lambda spec, view, place: SmoothWeighted(spec.weights),
    "static_optimal": lambda spec, view, place: build_static_optimal(
        spec, view, place.seed, place.node, place.optimal_shares
    ),
    "least_cost": lambda spec, view, place: build_least_cost(
        spec, view, place.output_mean, place.turn(len(view.targets))
    ),
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
    "flow": lambda spec, view, place: build_flow(
        spec, view, place.report_every_s, place.output_mean, place.line
    ),
    "dgd": lambda spec, view, place: build_flow(
        spec, view, place.report_every_s, place.output_mean, place.line
    ),
    "dlb": lambda spec, view, place: build_dlb(
        spec, view, place.report_every_s, place.output_mean, place.line
    ),
    "prequal": lambda spec, view, place: build_prequal(spec, len(view.targets), place.seed, place.node),
    "linear": lambda spec, view, place: Prequal(
        spec, len(view.targets), place.seed, place.node, Linear(spec)
    ),
    "c3": lambda spec, view, place: Prequal(
        spec, len(view.targets), place.seed, place.node, C3(spec, place.peers)
    ),
    "weighted_utilisation": lambda spec, view, place: build_utilisation(spec, view, place.seed, place.node),
    "consistent_hash": lambda spec, view, place: ConsistentHash(spec, view.targets, place.seed),
    "prefix_aware": lambda spec, view, place: PrefixAware(spec, view.targets),
    "oracle": lambda spec, view, place: build_oracle(spec, view, place.truth_of),
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
    peers: int = 1,
    truth_of: TruthOf | None = None,
    line: LineWork | None = None,
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
        peers: balancers that share these targets, this one among them.
        truth_of: what is really in flight at a target, for the oracle.
        line: what its requests bring to each target, for policies that derive from it.

    Raises:
        PolicyError: a user's policy cannot be imported or made.
        RunError: an oracle, in an engine that does not know the truth.
    """
    configure_view(spec, view)
    if isinstance(spec, policy_words.UserPolicy):
        keep_unseen(view)  # whether the user's rule corrects by own sends cannot be known
        return _build_user_policy(spec, node)
    place = Place(seed, node, report_every_s, output_mean, optimal_shares, truth_of, line, peers)
    return POLICIES[spec.kind](spec, view, place)


def policy_hooks(policy: Policy) -> Hooks:
    """The optional methods of a policy.

    Raises:
        PolicyError: a hook that works in time, without the seconds that go with it; or `ask` without
            `choose_answered`.
    """
    on_tick = getattr(policy, "on_tick", None)
    ask = getattr(policy, "ask", None)
    idle_probes = getattr(policy, "idle_probes", None)
    if ask is not None and not callable(getattr(policy, "choose_answered", None)):
        raise PolicyError(
            f"policy {_label(policy)} has ask, but no choose_answered; accepted: both or neither"
        )
    return Hooks(
        getattr(policy, "on_report", None),
        getattr(policy, "on_reply", None),
        on_tick,
        math.inf if on_tick is None else _seconds(policy, "on_tick", "tick_interval_s"),
        getattr(policy, "probes", None),
        getattr(policy, "on_probe_reply", None),
        getattr(policy, "cost", None),
        idle_probes,
        math.inf if idle_probes is None else _seconds(policy, "idle_probes", "idle_probe_after_s", math.inf),
        ask,
        None if ask is None else getattr(policy, "choose_answered", None),
        math.inf if ask is None else _seconds(policy, "ask", "ask_timeout_s"),
        getattr(policy, "tuning", None),
    )


def _seconds(policy: Policy, hook: str, name: str, never: float = math.nan) -> float:
    """The seconds that go with a hook: above 0 and finite, or `never`."""
    found = getattr(policy, name, None)
    if not isinstance(found, int | float) or not (0 < found < math.inf or found == never):
        raise PolicyError(
            f"policy {_label(policy)} has {hook}, but its {name} is {found!r}; accepted: seconds above 0"
        )
    return float(found)


def _label(policy: Policy) -> str:
    return policy.label if isinstance(policy, Guarded) else type(policy).__name__


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
