"""A scenario as a fluid: its cells, lines and policies in the words of the delay differential equations, or why not.

What is random in a run has its mean here: arrivals, work, jitter, loss of reports. A request waits half a step on
average before its batch takes it up, so a batch of output O is served like one of O + 1/2 (measures.md, section 1), while
the roots reckon with O. A step that is derived as a run goes on is the one that follows from its rates and delays. Everything is in scenario time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from testbed.draw import key_base, uniform
from testbed.roles.build import HALF_STEP
from testbed.routing.flow import Movement
from testbed.scenario.policy_words import (
    CostPolicy,
    CountingPolicy,
    DChoicesPolicy,
    FlowPolicy,
    LogitPolicy,
    Policy,
    ShortestQueuePolicy,
    StaticOptimalPolicy,
)
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import Topology, build_topology, reports_of, root_name
from testbed.scenario.view_words import CountWords, ViewWords
from testbed.serving.rate_curve import RateCurve
from testbed.theory.feedback import feedbacks, interval_s, is_memoryless_enough
from testbed.theory.fluid import STEPS_PER_DELAY, Fluid, Reports, Streams
from testbed.theory.fluid_rule import (
    BetterOfTwo,
    CostOf,
    Gradient,
    Greedy,
    Logit,
    Periodic,
    Rule,
    Static,
)
from testbed.theory.line_step import line_steps, with_steps
from testbed.theory.loop_delay import request_delay_s
from testbed.theory.operating_point import Demand, Floats, OperatingPoint, at_optimum, demand
from testbed.theory.path_delays import PathDelays
from testbed.theory.rate_family import BatchCurves, of_curves
from testbed.theory.report_timing import reporters
from testbed.theory.static_split import split_by
from testbed.traffic.capacity import cell_curve, token_means

STEPS_PER_INTERVAL = 8  # of the grid in the shortest interval between reports or updates
STEPS_PER_SOJOURN = 50  # of the grid where nothing else sets a scale
_HAIR = 1e-3  # requests
_MOST_STEPS = 100_000  # of the grid over a run: some seconds of computing
_STATIC = ("random", "round_robin", "weighted", "smooth_weighted", "static_optimal")
_GREEDY = ("least_cost", "jsq", "gmsr", "worst")


class FluidForm(NamedTuple):
    """A scenario as a fluid; `fluid` is None where there is none.

    Attributes:
        fluid: its lines in the order of `lines`.
        lines: (root, index in its traffic).
        in_flight: where it starts: empty, but for a hair in which the cells differ. In a run chance breaks ties; without
            it, equal cells would stay equal for ever, however unstable that is.
        spacing_s: of the grid that suits the scenario.
        refused_because: why there is none.
    """

    fluid: Fluid | None
    lines: tuple[tuple[str, int], ...] = ()
    in_flight: Floats = np.zeros(0)
    spacing_s: float = 0.0
    refused_because: str = ""


ASSUMES = (
    "rates, delays and work at their means",
    "no noise",
    "leaves spread evenly over equal servers",
    "work memoryless",
)


def fluid_form(scenario: Scenario) -> FluidForm:
    """The fluid of a scenario.

    Raises:
        UsageError: a step is a multiple of a critical one that does not exist.
        RunError: a trace is missing or malformed.
    """
    scenario = with_steps(scenario)
    refused = _refusal(scenario)
    if refused:
        return FluidForm(None, refused_because=refused)
    topology = build_topology(scenario)
    delays = PathDelays(topology)
    wanted = demand(scenario, delays)
    if float(wanted.rates_per_s.sum()) <= 0.0:
        return FluidForm(None, refused_because="no requests arrive")
    optimum = at_optimum(wanted)
    for loop in feedbacks(scenario, delays, wanted, optimum):
        if loop.flow is not None and not is_memoryless_enough(loop.flow):
            why = f"the work of {loop.class_name} is not memoryless: the cells of the fluid have no memory of it"
            return FluidForm(None, refused_because=why)
    steps = line_steps(scenario, delays, wanted, optimum)
    refused = _placed_singly(scenario, wanted, steps)
    if refused:
        return FluidForm(None, refused_because=refused)
    groups: dict[str, list[int]] = {}
    for i, (root, index) in enumerate(wanted.lines):
        groups.setdefault(scenario.roots[root].traffic[index].policy, []).append(i)
    streams = tuple(
        _streams(scenario, delays, wanted, optimum, steps, name, lines) for name, lines in groups.items()
    )
    fluid = Fluid(_served(scenario, wanted, optimum), streams, _reports(scenario, topology))
    lines = tuple(wanted.lines[i] for group in groups.values() for i in group)
    hair = _HAIR * np.arange(len(wanted.cells)) / len(wanted.cells)
    return FluidForm(fluid, lines, hair, _spacing_s(scenario, fluid, optimum))


def _refusal(scenario: Scenario) -> str:
    """Why a scenario has no fluid form; empty if it has one."""
    if scenario.faults:
        return "faults change delays or speeds during the run"
    lines = [line for root in scenario.roots.values() for line in root.traffic]
    if any(line.stages is not None or line.trace is not None for line in lines):
        return "the rates change during the run"
    if any(words.sessions is not None or words.prefixes is not None for words in scenario.classes.values()):
        return "shared prefixes make the work depend on where requests go"
    for name, cell in scenario.cells.items():
        if cell.service is not None and cell.service.sharing is not None and cell.service.sharing.antagonist:
            return f"an antagonist changes the speed of {name}"
    for name in scenario.cells:
        if reports_of(scenario, name).send != "periodic":
            return f"{name} does not report by the clock"
    for line in lines:
        said = _no_rule(scenario.policies[line.policy])
        if said:
            return f"{line.policy} {said}"
    if any(words.loss == 1.0 and words.path in (None, "observation") for words in scenario.links):
        return "some roots get no reports"
    return ""


def _placed_singly(scenario: Scenario, wanted: Demand, steps: Sequence[float | None]) -> str:
    """Which line `dlb` places request by request, and so has no fluid; empty if none."""
    for (root, index), step in zip(wanted.lines, steps, strict=True):
        line = scenario.roots[root].traffic[index]
        if step is None and isinstance(scenario.policies[line.policy], FlowPolicy):
            return f"{line.policy} places {line.class_} one by one, by its own sends as well: the fluid has its flow half only"
    return ""


def _no_rule(policy: Policy) -> str:
    """What of a policy the fluid does not have; empty if it has all."""
    if policy.kind not in (*_STATIC, *_GREEDY, "two_choices", "d_choices", "logit", "flow", "dgd", "dlb"):
        return f"({policy.kind}) has no fluid form here"
    if isinstance(policy, DChoicesPolicy) and policy.choices != 2:
        return f"chooses among {policy.choices}: the fluid has two choices only"
    if isinstance(policy, CountingPolicy) and policy.view != "reports":
        return "goes by its own counts, which differ from root to root"
    if isinstance(policy, CountWords) and policy.own_counts != "none":
        return "corrects reports by its own counts, request by request"
    if isinstance(policy, ViewWords) and policy.reads_ages:
        return "makes something else of old reports"
    if isinstance(policy, ShortestQueuePolicy) and policy.count != "in_flight":
        return "goes by queued requests; the fluid has requests in flight only"
    return ""


def _streams(
    scenario: Scenario,
    delays: PathDelays,
    wanted: Demand,
    optimum: OperatingPoint,
    steps: Sequence[float | None],
    name: str,
    lines: list[int],
) -> Streams:
    """The lines of one policy."""
    policy = scenario.policies[name]
    roots = [wanted.lines[i][0] for i in lines]
    travel_s = [[request_delay_s(delays, root, cell, policy) for cell in wanted.cells] for root in roots]
    news_s = [[_news_s(scenario, delays, root, cell) for cell in wanted.cells] for root in roots]
    return Streams(
        wanted.rates_per_s[lines],
        np.array(travel_s),
        np.array(news_s),
        wanted.allowed[lines],
        np.array([_start(policy, wanted, optimum, i) for i in lines]),
        _cost(policy, wanted, lines),
        _rule(scenario, delays, wanted, steps, policy, lines),
    )


def _news_s(scenario: Scenario, delays: PathDelays, root: str, cell: str) -> float:
    """Mean delay of a report; one that is lost makes the last one older by a period."""
    news = delays.between(root, cell, "observation")
    return news.mean_s + reports_of(scenario, cell).every * news.loss / (1.0 - news.loss)


def _start(policy: Policy, wanted: Demand, optimum: OperatingPoint, line: int) -> Floats:
    if isinstance(policy, StaticOptimalPolicy):
        return np.asarray(optimum.shares[line])
    return split_by(getattr(policy, "start", getattr(policy, "weights", "even")), wanted, line)


def _cost(policy: Policy, wanted: Demand, lines: list[int]) -> CostOf:
    """What the lines of a policy reckon a cell to cost, by the curves of their own mix."""
    own = [of_curves(wanted.curves[i], wanted.servers) for i in lines]
    curves = BatchCurves(
        np.array([each.alpha_s for each in own]),
        np.array([each.beta_s for each in own]),
        np.array([each.n_cap for each in own]),
        wanted.servers,
    )
    travel_s = wanted.travel_s[lines]
    if policy.kind == "gmsr":
        return curves.marginal_s
    if policy.kind == "jsq":
        return lambda seen: seen / wanted.servers
    kind = policy.cost if isinstance(policy, (CostPolicy, FlowPolicy, LogitPolicy)) else "in_flight"
    costs: dict[str, CostOf] = {
        "marginal": lambda seen: curves.marginal_s(seen) + travel_s,
        "latency": lambda seen: curves.sojourn_s(seen) + travel_s,
        "in_flight": lambda seen: seen,
        "in_flight_per_capacity": lambda seen: seen / curves.divisor_per_s,
    }
    sought = costs[kind]
    return (lambda seen: -sought(seen)) if policy.kind == "worst" else sought


def _rule(
    scenario: Scenario,
    delays: PathDelays,
    wanted: Demand,
    steps: Sequence[float | None],
    policy: Policy,
    lines: list[int],
) -> Rule:
    if policy.kind in _STATIC:
        return Static()
    if isinstance(policy, FlowPolicy):
        instants = _instants(scenario, delays, wanted, policy, lines)
        movement = Movement(
            policy.form == "tangent_cone", 1.0 if policy.max_move is None else policy.max_move, policy.explore
        )
        known = np.array([steps[i] for i in lines], np.float64)
        return Gradient(known, instants, movement, instants.offsets_s.shape[1] / instants.period_s)
    if isinstance(policy, LogitPolicy):
        return Logit(policy.temperature)
    return Greedy() if policy.kind in _GREEDY else BetterOfTwo()


def _instants(
    scenario: Scenario, delays: PathDelays, wanted: Demand, policy: FlowPolicy, lines: list[int]
) -> Periodic:
    """When the shares of each line move: on its own timer, or as reports arrive, for the time since the last."""
    if policy.update == "timer":
        every_s = interval_s(scenario, policy)
        phases = [_tick_phase(scenario, *wanted.lines[i]) for i in lines]
        offsets_s = every_s * np.array(phases)[:, None]
        return Periodic(np.full(len(lines), every_s), offsets_s, np.full((len(lines), 1), every_s))
    periods_s, offsets, weights = [], [], []
    for i in lines:
        senders = reporters(scenario, delays, wanted.lines[i][0])
        # Where cells report at periods of their own, the shortest stands for all.
        period_s = min(each.period_s for each in senders)
        arrivals_s = np.sort([each.arrives_at_s % period_s for each in senders])
        before_s = np.concatenate(([arrivals_s[-1] - period_s], arrivals_s[:-1]))
        periods_s.append(period_s)
        offsets.append(arrivals_s)
        weights.append(arrivals_s - before_s)
    return Periodic(np.array(periods_s), np.array(offsets), np.array(weights))


def _tick_phase(scenario: Scenario, root: str, index: int) -> float:
    """Of a root's timer, as a share of its interval: the same draw as in a run."""
    return uniform(key_base(scenario.seed, root_name(root), "tick"), index)


def _reports(scenario: Scenario, topology: Topology) -> Reports:
    """When the cells report; of several leaves, the first stands for all."""
    leaves = [name for names in topology.leaves.values() for name in names]
    every_s, phase_s = [], []
    for cell in scenario.cells:
        reports = reports_of(scenario, cell)
        place = leaves.index(topology.leaves[cell][0]) / len(leaves)
        every_s.append(reports.every)
        phase_s.append(0.0 if reports.phase == "in_phase" else reports.every * place)
    return Reports(np.array(every_s), np.array(phase_s))


def _served(scenario: Scenario, wanted: Demand, optimum: OperatingPoint) -> BatchCurves:
    """How the cells serve the mix that comes to them at the optimum."""
    rates = optimum.shares * wanted.rates_per_s[:, None]
    by_root = {root: token_means(scenario, root) for root in scenario.roots}
    means = [by_root[root] for root, _ in wanted.lines]
    return of_curves(
        [_served_curve(scenario, means, rates[:, j], cell) for j, cell in enumerate(wanted.cells)],
        wanted.servers,
    )


def _served_curve(
    scenario: Scenario, means: Sequence[tuple[float, float]], rates: Floats, cell: str
) -> RateCurve:
    """Of one server, for the mix of the lines with these mean prompt and output tokens and rates."""
    weights = rates / rates.sum() if rates.sum() > 0.0 else np.full(len(rates), 1.0 / len(rates))
    prompt = output = 0.0
    for (prompt_mean, output_mean), weight in zip(means, weights.tolist(), strict=True):
        prompt, output = prompt + weight * prompt_mean, output + weight * output_mean
    wait = HALF_STEP if scenario.cells[cell].profile is not None else 0.0
    return cell_curve(scenario, cell, prompt, output + wait)


def _spacing_s(scenario: Scenario, fluid: Fluid, optimum: OperatingPoint) -> float:
    """Of a grid that resolves the delays, the reports and the updates, as far as its length allows."""
    scales_s = [fluid.shortest_loop_s / STEPS_PER_DELAY] if fluid.shortest_loop_s > 0.0 else []
    if fluid.reports is not None:
        scales_s.append(float(fluid.reports.every_s.min()) / STEPS_PER_INTERVAL)
    for group in fluid.streams:
        if isinstance(group.rule.instants, Periodic):
            scales_s.append(float(group.rule.instants.period_s.min()) / STEPS_PER_INTERVAL)
    sojourns_s = [cell.curve.alpha_s for cell in optimum.cells]
    spacing_s = min(scales_s, default=min(sojourns_s) / STEPS_PER_SOJOURN)
    return max(spacing_s, scenario.duration / _MOST_STEPS)
