"""Scenario to roles: what each node needs to know, worked out once before the run.

Everything here is in run time: the scenario has been scaled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from testbed.draw import key_base, uniform
from testbed.roles.admission import LimitedServer
from testbed.roles.attempt_keys import AttemptKeys, PlainWorld
from testbed.roles.build_service import build_service
from testbed.roles.changes import Changes
from testbed.roles.environment import Environment, Role
from testbed.roles.guards import (
    autoscaled,
    breaker_words,
    guided,
    leaf_maker,
    may_use,
    root_maker,
    sends_again,
    tap_of,
    with_health,
)
from testbed.roles.latency_model import LatencyModel
from testbed.roles.leaf import Leaf
from testbed.roles.leaf_configuration import LeafConfiguration
from testbed.roles.messages import Request
from testbed.roles.once import taken_once
from testbed.roles.poller import Polls
from testbed.roles.root import Root, Stream
from testbed.roles.schedule import Schedule
from testbed.roles.server import Server
from testbed.roles.server_configuration import ServerConfiguration
from testbed.routing.breaker import view_of
from testbed.routing.cost import cost_function
from testbed.routing.line_work import LineWork, WorkRates
from testbed.routing.oracle import TruthOf
from testbed.routing.policy import build_policy
from testbed.routing.view import Target
from testbed.scenario.fault_plan import misinforms
from testbed.scenario.policy_words import FlowPolicy, IdleQueuePolicy, Policy
from testbed.scenario.schema import Reports, Scenario, Traffic
from testbed.scenario.topology import (
    Node,
    Topology,
    counts_first_tokens,
    is_polled,
    leaf_policy,
    passes_first_tokens,
    polls_servers,
    reads_reports,
    reports_of,
    sends_probes,
)
from testbed.scenario.view_words import ViewWords
from testbed.serving.batch import Batch
from testbed.traffic.capacity import (
    allowed_cells,
    cell_curve,
    cell_profile,
    cell_token_means,
    line_means,
    line_rates,
    token_means,
)
from testbed.traffic.plan import Plan
from testbed.traffic.work_transform import cell_transform

HALF_STEP = 0.5  # an arrival waits half a step on average before its batch takes it up


@dataclass(frozen=True)
class World:
    """All that the nodes of a run have in common.

    Attributes:
        scenario: in run time.
        topology: its nodes and links.
        plan: the requests that will arrive.
        optimal_shares: of the cells, by line of traffic (`root.west:0`), where its policy is `static_optimal`.
        truth_of: what is really in flight at a cell or a server, for the oracle; None where the engine cannot know.
        token_means: of prompt and output at each cell; worked out when the first node asks.
    """

    scenario: Scenario
    topology: Topology
    plan: Plan
    optimal_shares: Mapping[str, Sequence[float]] = field(default_factory=dict)
    truth_of: TruthOf | None = None
    token_means: dict[str, tuple[float, float]] = field(default_factory=dict)


def build_role(name: str, world: World, env: Environment) -> Role:
    """The role that this node plays."""
    scenario, topology = world.scenario, world.topology
    node = topology.nodes[name]
    builders: dict[str, Callable[[Node, World, Environment], Role]] = {
        "root": _build_root,
        "leaf": _build_leaf,
        "server": _build_server,
    }
    tap = tap_of(node, scenario, env)
    outside = tap or env
    role: Role
    if node.kind == "server" or not sends_again(scenario):
        role = builders[node.kind](node, world, outside)
    else:
        role = AttemptKeys(builders[node.kind](node, world, PlainWorld(outside)))
    if tap is not None:
        curve = cell_curve(scenario, node.cell, *_token_means(world, node.cell))
        role = autoscaled(role, node, scenario, topology, tap, curve)
    return taken_once(with_health(role, node, scenario, topology, env), scenario)


def _build_root(node: Node, world: World, env: Environment) -> Root:
    scenario = world.scenario
    root = list(scenario.roots)[node.index]
    prompt_mean, output_mean = token_means(scenario, root)
    targets = tuple(
        Target(name, cell_curve(scenario, name, prompt_mean, output_mean), cell.servers, i)
        for i, (name, cell) in enumerate(scenario.cells.items())
    )
    for target in targets:
        target.peers = len([each for each in scenario.roots if may_use(scenario, each, target.name)])
        target.takes_overtaken = reports_of(scenario, target.name).read == "all"
    streams = [
        _stream(node, world, root, line, targets, index, output_mean, env)
        for index, line in enumerate(scenario.roots[root].traffic)
    ]
    plan = world.plan.of_root(node.index)
    drawn = [cell for cell, words in scenario.cells.items() if words.leaf.pick == "random"]
    classes = [scenario.classes[line.class_] for line in scenario.roots[root].traffic]
    return root_maker(scenario.seed, classes)(
        env,
        node.name,
        streams,
        plan,
        world.topology.leaves,
        scenario.records.decisions,
        polls=_leaf_polls(node, world),
        leaf_draws={cell: key_base(scenario.seed, node.name, cell, "leaf") for cell in drawn},
        fault_base=_fault_base(scenario, node),
    )


def _fault_base(scenario: Scenario, node: Node) -> int:
    """The key of the draws of a node's faults."""
    return key_base(scenario.seed, node.name, "fault")


def _leaf_polls(node: Node, world: World) -> list[Polls]:
    """How a root asks leaves for reports: the cells whose words are the same are asked together."""
    groups: dict[Reports, list[str]] = {}
    for cell in world.scenario.cells:
        if is_polled(world.scenario, cell):
            groups.setdefault(reports_of(world.scenario, cell), []).extend(world.topology.leaves[cell])
    return [_polls(reporters, words, node, world.topology) for words, reporters in groups.items()]


def _polls(reporters: Sequence[str], words: Reports, node: Node, topology: Topology) -> Polls:
    return Polls(reporters, _schedule(words, node, topology), words.polls == "serial")


def _schedule(words: Reports, node: Node, topology: Topology) -> Schedule:
    """When a node reports, or asks for reports."""
    return Schedule(words.every, _phase_s(words.every, words.phase, node, topology))


def _changes(words: Reports) -> Changes | None:
    """For reporters that tell of changes alone."""
    if words.send != "on_change":
        return None
    return Changes(words.threshold or 1, math.inf if words.lease is None else words.lease)


def _stream(
    node: Node,
    world: World,
    root: str,
    line: Traffic,
    targets: tuple[Target, ...],
    index: int,
    output_mean: float,
    env: Environment,
) -> Stream:
    scenario = world.scenario
    spec = scenario.policies[line.policy]
    view = view_of(breaker_words(spec), targets, allowed_cells(scenario, root, index))
    # the weight of a step is a class's own, so two streams of one class still have policies of their own
    policy = build_policy(
        spec, view, seed=scenario.seed, node=f"{node.name}:{index}",
        report_every_s=scenario.reports.every, output_mean=output_mean,
        optimal_shares=world.optimal_shares.get(f"{node.name}:{index}"), truth_of=world.truth_of,
        line=_line_work(scenario, root, line) if isinstance(spec, FlowPolicy) else None,
    )  # fmt: skip
    policy, hooks = guided(
        policy, spec, view, env, node.name, key_base(scenario.seed, node.name, str(index), "slow_start")
    )
    cost = hooks.cost or cost_function("in_flight_per_capacity", "profile", output_mean)
    # a free-running timer: its phase is the node's own, so that roots do not update together by construction
    phase_s = hooks.tick_interval_s * uniform(key_base(scenario.seed, node.name, "tick"), index)
    timeout_s = scenario.classes[line.class_].timeout
    return Stream(
        line.class_, view, policy, hooks, cost, timeout_s, phase_s, hold_queue(spec), decision_s(spec)
    )


def hold_queue(spec: Policy) -> int:
    """How many requests may wait at a balancer of this policy while no target is usable."""
    return (spec.hold_queue or 0) if isinstance(spec, ViewWords) else 0


def decision_s(spec: Policy) -> float:
    """How long a decision of this policy takes."""
    return spec.decision_time if isinstance(spec, ViewWords) else 0.0


def _line_work(scenario: Scenario, root: str, line: Traffic) -> LineWork:
    """What a line of traffic brings to the cells; the shape of the work is that of all the root sends."""
    prompt_mean, output_mean = line_means(scenario, line)
    rates = line_rates(scenario, root)
    total = sum(each.rate_per_s for each in rates)
    shares = {(root, i): each.rate_per_s / total for i, each in enumerate(rates) if total > 0.0}
    cells = tuple(scenario.cells)
    return LineWork(
        list(scenario.classes).index(line.class_),
        output_mean,
        tuple(cell_curve(scenario, cell, prompt_mean, output_mean) for cell in cells),
        tuple(cell_transform(scenario, cell, shares) for cell in cells),
        tuple(_work_rates(scenario, cell) for cell in cells),
    )


def _work_rates(scenario: Scenario, cell: str) -> WorkRates:
    profile = cell_profile(scenario.cells[cell], scenario.stretch)
    if profile is None:
        return WorkRates(request_s=cell_curve(scenario, cell, 1.0, 1.0).beta_s)
    return WorkRates(
        prefill_s=profile.prefill_b_s,
        output_s=profile.decode_b_s,
        context_s=profile.decode_c_s,
        step_s=profile.decode_a_s,
    )


def _build_leaf(node: Node, world: World, env: Environment) -> Leaf:
    scenario, topology = world.scenario, world.topology
    cell = scenario.cells[node.cell]
    prompt_mean, output_mean = _token_means(world, node.cell)
    curve = cell_curve(scenario, node.cell, prompt_mean, output_mean)
    targets = tuple(Target(name, curve, index=i) for i, name in enumerate(topology.servers[node.cell]))
    for target in targets:
        target.peers = cell.leaf.count
        target.takes_overtaken = cell.server_reports.read == "all"
    spec = leaf_policy(scenario, node.cell)
    view = view_of(breaker_words(spec), targets)
    policy = build_policy(
        spec, view, seed=scenario.seed, node=node.name,
        report_every_s=cell.server_reports.every, output_mean=output_mean, peers=cell.leaf.count,
        truth_of=world.truth_of,
    )  # fmt: skip
    policy, hooks = guided(
        policy, spec, view, env, node.name, key_base(scenario.seed, node.name, "slow_start")
    )
    in_steps = cell.profile is not None
    steps = output_mean if in_steps else 1.0
    model = LatencyModel(curve.alpha_s / steps, curve.beta_s / steps, HALF_STEP if in_steps else 0.0)
    reports = reports_of(scenario, node.cell)
    servers = topology.servers[node.cell]
    polled = polls_servers(scenario, node.cell)
    told = LeafConfiguration(
        view=view,
        policy=policy,
        hooks=hooks,
        roots=[each.name for each in topology.nodes.values() if each.kind == "root"],
        timeouts_s=[each.timeout for each in scenario.classes.values()],
        reports=None if reports.send == "when_polled" else _schedule(reports, node, topology),
        model=model,
        has_peers=cell.leaf.count > 1,
        counts_steps=in_steps,
        hold_queue=hold_queue(spec),
        decision_s=decision_s(spec),
        passes_first_tokens=passes_first_tokens(scenario),
        changes=_changes(reports),
        polls=_polls(servers, cell.server_reports, node, topology) if polled else None,
        fault_base=_fault_base(scenario, node),
        records_news=misinforms(scenario),
    )
    return leaf_maker(scenario, cell.leaf)(env, node.name, told)


def _build_server(node: Node, world: World, env: Environment) -> Server:
    scenario, topology = world.scenario, world.topology
    cell = scenario.cells[node.cell]
    policy = leaf_policy(scenario, node.cell)
    reports = None
    if reads_reports(policy) and cell.server_reports.send != "when_polled":
        reports = _schedule(cell.server_reports, node, topology)
    samples_s = scenario.records.samples
    # staggered: samples of many servers at one instant would be a burst of work that no scenario asked for
    first_sample_s = samples_s + _phase_s(samples_s, "staggered", node, topology)
    service = build_service(cell, node.name, len(scenario.classes), scenario.stretch, scenario.seed)
    first_tokens: list[Request] | None = None
    if isinstance(service, Batch) and (counts_first_tokens(policy) or passes_first_tokens(scenario)):
        first_tokens = service.first_tokens = []
    told = ServerConfiguration(
        service=service,
        samples=Schedule(samples_s, first_sample_s),
        reports=reports,
        changes=_changes(cell.server_reports),
        first_tokens=first_tokens,
        leaves=list(topology.leaves[node.cell]),
        queues_when_idle=isinstance(policy, IdleQueuePolicy),
        answers_probes=sends_probes(policy),
        fault_base=_fault_base(scenario, node),
    )
    if cell.limit is not None:
        return LimitedServer(env, node.name, told, limit=cell.limit)
    return Server(env, node.name, told)


def _token_means(world: World, cell: str) -> tuple[float, float]:
    """Mean prompt and output tokens of the requests that may come to a cell."""
    if not world.token_means:  # once for all: a thousand nodes ask
        world.token_means.update(cell_token_means(world.scenario))
    return world.token_means[cell]


def _phase_s(every_s: float, phase: str, node: Node, topology: Topology) -> float:
    """First instant of a reporter: staggered ones share the period among all of their kind."""
    if phase == "in_phase":
        return 0.0
    peers = [each.name for each in topology.nodes.values() if each.kind == node.kind]
    return every_s * peers.index(node.name) / len(peers)
