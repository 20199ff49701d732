"""What a scenario's words against failure and overload add to the roles of its nodes; nothing where it has none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from testbed.draw import key_base, uniform
from testbed.roles.admission import LimitedLeaf
from testbed.roles.autoscaler import Autoscaler, ReportTap
from testbed.roles.cancelling import CancellingLeaf
from testbed.roles.environment import Environment, Role
from testbed.roles.health import AnsweringChecks, CheckingHealth
from testbed.roles.leaf import Leaf
from testbed.roles.resending_leaf import ResendingLeaf
from testbed.roles.retry import RetryingRoot
from testbed.roles.root import Root
from testbed.roles.root_hedging import HedgingRoot
from testbed.routing.breaker import BreakerView
from testbed.routing.policy import Hooks, policy_hooks
from testbed.routing.policy import Policy as RoutingPolicy
from testbed.routing.slow_start import SlowStart
from testbed.routing.view import View
from testbed.scenario.policy_words import Policy
from testbed.scenario.resilience_words import BreakerWords, SlowStartWords
from testbed.scenario.schema import Leaf as LeafWords
from testbed.scenario.schema import Scenario, TrafficClass
from testbed.scenario.topology import Node, Topology
from testbed.serving.rate_curve import RateCurve
from testbed.traffic.capacity import allowed_cells


def sends_again(scenario: Scenario) -> bool:
    """Whether a request may be sent more than once."""
    words = [(each.retries, each.hedging) for each in scenario.classes.values()]
    words += [(cell.leaf.retries, cell.leaf.hedging) for cell in scenario.cells.values()]
    return any(retries is not None or hedging is not None for retries, hedging in words)


def root_maker(seed: int, classes: Sequence[TrafficClass]) -> Callable[..., Root]:
    """The kind of root that the classes of its streams ask for."""
    retries, cancels = [each.retries for each in classes], [each.cancel for each in classes]
    hedging = [each.hedging for each in classes]
    if any(hedging):
        return partial(HedgingRoot, seed=seed, retries=retries, cancels=cancels, hedging=hedging)
    if any(retries) or any(cancels):
        return partial(RetryingRoot, seed=seed, retries=retries, cancels=cancels)
    return Root


def leaf_maker(scenario: Scenario, words: LeafWords) -> Callable[..., Leaf]:
    """The kind of leaf that these words ask for."""
    classes = scenario.classes.values()
    cancels = [each.cancel for each in classes]
    if words.retries is not None or words.hedging is not None:
        return partial(
            ResendingLeaf, seed=scenario.seed, retries=words.retries, hedging=words.hedging, limit=words.limit,
            cancels=cancels,
        )  # fmt: skip
    if words.limit is not None:
        return partial(LimitedLeaf, limit=words.limit, cancels=cancels)
    is_called = any(cancels) or any(each.hedging is not None for each in classes)
    return partial(CancellingLeaf, cancels=cancels) if is_called else Leaf


def breaker_words(spec: Policy) -> BreakerWords | None:
    """The words of the circuit breaker of a balancer of this policy; None where it has none."""
    return getattr(spec, "breaker", None)


def guided(
    policy: RoutingPolicy, spec: Policy, view: View, env: Environment, node: str, base: int
) -> tuple[RoutingPolicy, Hooks]:
    """The policy and its optional methods; a breaker hears of each reply, and a slow start thins each choice."""
    hooks = policy_hooks(policy)
    if isinstance(view, BreakerView):
        hooks = view.watching(
            hooks,
            env.now_s,
            lambda target, at_s, inside: env.record("rotations", (node, target, at_s, inside, "breaker")),
        )
    words: SlowStartWords | None = getattr(spec, "slow_start", None)
    if words is None:
        return policy, hooks
    slow = SlowStart(
        policy,
        view,
        words,
        base,
        lambda target, at_s: env.record("rotations", (node, target, at_s, True, "slow_start")),
    )
    return slow, slow.thinning(hooks)


def tap_of(node: Node, scenario: Scenario, env: Environment) -> ReportTap | None:
    """The environment of a leaf whose cell scales; None for all others."""
    scales = node.kind == "leaf" and scenario.cells[node.cell].autoscaler is not None
    return ReportTap(env) if scales else None


def autoscaled(
    role: Role, node: Node, scenario: Scenario, topology: Topology, tap: ReportTap, curve: RateCurve
) -> Role:
    """A leaf, behind the autoscaler of its cell."""
    words = scenario.cells[node.cell].autoscaler
    assert words is not None, f"{node.cell} has an autoscaler"
    phase_s = words.every * uniform(key_base(scenario.seed, node.name, "scale"), 0)
    servers = topology.servers[node.cell]
    return Autoscaler(role, tap, node.cell, node.name, servers, words, curve, phase_s)


def with_health(role: Role, node: Node, scenario: Scenario, topology: Topology, env: Environment) -> Role:
    """The role, behind what checks its targets, and behind what answers those who check it."""
    if node.kind == "root":
        root = list(scenario.roots)[node.index]
        words, is_checked = scenario.roots[root].health_checks, False
        targets = [
            leaf
            for cell, leaves in topology.leaves.items()
            if may_use(scenario, root, cell)
            for leaf in leaves
        ]
    else:
        own = scenario.cells[node.cell].leaf.health_checks
        words = own if node.kind == "leaf" else None
        targets = list(topology.servers[node.cell])
        checks = [each.health_checks for each in scenario.roots.values()] if node.kind == "leaf" else [own]
        is_checked = any(each is not None for each in checks)
    if words is not None:
        phase_s = words.every * uniform(key_base(scenario.seed, node.name, "health"), 0)
        role = CheckingHealth(role, env, node.name, targets, words, phase_s)
    return AnsweringChecks(role, env) if is_checked else role


def may_use(scenario: Scenario, root: str, cell: str) -> bool:
    """Whether a root sends to a cell on any of its lines."""
    lines = range(len(scenario.roots[root].traffic))
    return any(cell in allowed_cells(scenario, root, index) for index in lines)
