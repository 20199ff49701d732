"""Warnings: pairs of settings that are known to mislead or to fail, found before anything starts."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from testbed.links.delay import mean_delay_s
from testbed.scenario.policy_words import FlowPolicy
from testbed.scenario.quantity import format_s
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import Effect, Topology, reports_of
from testbed.scenario.view_words import ViewWords
from testbed.theory.fault_cautions import fault_cautions
from testbed.theory.feedback import Feedback, acts_on_reports, interval_s, is_memoryless_enough
from testbed.theory.live_cautions import live_cautions
from testbed.theory.operating_point import Demand, OperatingPoint
from testbed.theory.path_delays import PathDelays
from testbed.theory.resilience_cautions import resilience_cautions
from testbed.traffic.capacity import cell_profile, line_rates, peak_rates

MOST_LOAD = (
    0.95  # of capacity: beyond, waits grow without measure and small errors of a share overload a cell
)
LEAST_LOOPS_OF_WARMUP = 3.0
NOTICED = 0.01  # a cut that moves the mean delay by more than this is worth a word
MOST_STEP = 0.5  # of the critical step: noise tips small systems at 0.1 to 0.5 of it (measures.md, section 5)


def cautions(
    scenario: Scenario,
    topology: Topology,
    delays: PathDelays,
    wanted: Demand,
    optimum: OperatingPoint,
    loops: list[Feedback],
    *,
    planned: int,
    cores: int,
) -> tuple[str, ...]:
    """All warnings about one arm, in scenario time; `cores` are those that this process may use."""
    return (
        *_of_plan(planned),
        *_of_load(scenario, wanted, optimum),
        *_of_budget(scenario, wanted, optimum),
        *_of_timeouts(scenario, wanted, optimum),
        *_of_flow(scenario, loops),
        *_of_reports(scenario, delays, optimum),
        *_of_limits(scenario, delays),
        *_of_jitter(topology),
        *_of_warmup(scenario, loops),
        *live_cautions(scenario, topology, wanted, optimum, cores),
        *resilience_cautions(scenario),
        *fault_cautions(scenario, topology),
    )


def _of_plan(planned: int) -> Iterator[str]:
    if planned == 0:
        yield "no request is planned: raise the rates or the duration, or widen the window of the trace"


def _of_load(scenario: Scenario, wanted: Demand, optimum: OperatingPoint) -> Iterator[str]:
    capacity = sum(cell.capacity_per_s for cell in optimum.cells)
    mean, peak = float(wanted.rates_per_s.sum()), sum(peak_rates(scenario).values())
    for word, rate in (("mean", mean), ("peak", peak)):
        if rate > MOST_LOAD * capacity:
            share = f"{rate / capacity:.3g} of" if capacity > 0.0 else "above"
            yield (
                f"the {word} offered load is {share} the capacity of all cells"
                f" ({rate:.4g} of {capacity:.4g} /s): queues grow without end or nearly so{_unless_cached(scenario)}"
            )
            return
    for cell in optimum.cells:
        if cell.of_capacity > MOST_LOAD:
            yield (
                f"{cell.cell} is loaded to {cell.of_capacity:.3g} of its capacity even at the optimum:"
                " no other cell is allowed, or near enough, to take more"
            )


def _of_budget(scenario: Scenario, wanted: Demand, optimum: OperatingPoint) -> Iterator[str]:
    """The rate curve knows nothing of the token budget of a step, which caps what short steps let through."""
    lines = [line_rates(scenario, root)[i] for root, i in wanted.lines]
    asked_per_s = optimum.shares * wanted.rates_per_s[:, None] / wanted.servers
    tokens = np.array([[line.prompt_mean, line.output_mean] for line in lines])
    for state, each_per_s in zip(optimum.cells, asked_per_s.T, strict=True):
        name, total_per_s = state.cell, float(each_per_s.sum())
        profile = cell_profile(scenario.cells[name], scenario.stretch)
        if profile is None or not total_per_s or state.of_capacity > MOST_LOAD:
            continue
        most_per_s = profile.budget_rate_per_s(*(each_per_s @ tokens / total_per_s))
        if total_per_s > MOST_LOAD * most_per_s:
            yield (
                f"each server of {name} is asked for {total_per_s:.4g} requests a second, and steps of"
                f" {profile.step_tokens} tokens let {most_per_s:.4g} through, whatever the capacity says"
                f"{_unless_cached(scenario)}"
            )
            return


def _unless_cached(scenario: Scenario) -> str:
    caching = any(cell.prefix_cache_tokens is not None for cell in scenario.cells.values())
    return ", but for what the prefix caches save, which is not counted here" if caching else ""


def _of_timeouts(scenario: Scenario, wanted: Demand, optimum: OperatingPoint) -> Iterator[str]:
    """Per class, the mean time from sending to reply at the optimum against the timeout."""
    rates = optimum.shares * wanted.rates_per_s[:, None]
    for name, words in scenario.classes.items():
        mine = [
            i
            for i, (root, index) in enumerate(wanted.lines)
            if scenario.roots[root].traffic[index].class_ == name
        ]
        total = float(rates[mine].sum())
        if total == 0.0:
            continue
        sojourns = [
            cell.sojourn_s if math.isfinite(cell.sojourn_s) else cell.curve.latency_s(1.0)
            for cell in optimum.cells
        ]
        mean_s = float((rates[mine] * (wanted.travel_s[mine] + sojourns)).sum()) / total
        if words.timeout < mean_s:
            yield (
                f"the timeout of {name}, {format_s(words.timeout)}, is below its mean service time with travel,"
                f" {format_s(mean_s)}: most requests time out"
            )


def _of_flow(scenario: Scenario, loops: list[Feedback]) -> Iterator[str]:
    shortest_s = min(reports_of(scenario, cell).every for cell in scenario.cells)
    used = {line.policy for root in scenario.roots.values() for line in root.traffic}
    for name, policy in scenario.policies.items():
        if name in used and isinstance(policy, FlowPolicy) and policy.update == "timer":
            given_s = interval_s(scenario, policy)
            if given_s < shortest_s:
                yield (
                    f"{name} updates every {format_s(given_s)}, more often than reports come"
                    f" ({format_s(shortest_s)}): it repeats old news"
                )
    for loop in loops:
        flow = loop.flow
        if flow is None:
            continue
        if flow.fraction > 1.0:
            yield (
                f"the step of {loop.policy} for {loop.class_name} is {flow.fraction:.3g} of the critical step:"
                " the shares oscillate"
            )
        elif flow.fraction > MOST_STEP:
            yield (
                f"the step of {loop.policy} for {loop.class_name} is {flow.fraction:.3g} of the critical step:"
                " noise may tip it into oscillation"
            )
        if not is_memoryless_enough(flow):
            yield (
                f"the work of {loop.class_name} is not memoryless: its critical step is"
                f" {flow.critical / flow.critical_memoryless:.3g} of that of memoryless work"
            )


def _of_reports(scenario: Scenario, delays: PathDelays, optimum: OperatingPoint) -> Iterator[str]:
    policies = [scenario.policies[line.policy] for root in scenario.roots.values() for line in root.traffic]
    if not any(acts_on_reports(policy) for policy in policies):
        return
    slow: dict[tuple[str, str], list[str]] = {}
    for cell in optimum.cells:
        every_s = reports_of(scenario, cell.cell).every
        if every_s > cell.sojourn_s:
            slow.setdefault((format_s(every_s), format_s(cell.sojourn_s)), []).append(cell.cell)
    for (every, sojourn), names in slow.items():
        yield (
            f"{', '.join(names)} report{'s' if len(names) == 1 else ''} every {every}, longer than a request stays"
            f" there ({sojourn}): each report tells of requests that have mostly left"
        )
    for root in scenario.roots:
        dead = [cell for cell in scenario.cells if delays.between(root, cell, "observation").loss >= 1.0]
        if dead:
            yield f"no report from {', '.join(dead)} reaches {root}: its observation links lose everything"


def _of_limits(scenario: Scenario, delays: PathDelays) -> Iterator[str]:
    """Limits on the age of reports that every report reaches before the next one comes; the worst of each policy."""
    ages_s: dict[str, tuple[float, str]] = {}
    for name, age_s, whose in _ages_reached(scenario, delays):
        ages_s[name] = max(ages_s.get(name, (0.0, "")), (age_s, whose))
    for name, (age_s, whose) in ages_s.items():
        policy = scenario.policies[name]
        if isinstance(policy, ViewWords) and policy.stale_after is not None and policy.stale_after < age_s:
            yield (
                f"stale_after of {name}, {format_s(policy.stale_after)}, is below the age that reports {whose} reach"
                f" before the next one comes, {format_s(age_s)}: they are taken for {policy.stale} part of the time"
            )


def _ages_reached(scenario: Scenario, delays: PathDelays) -> Iterator[tuple[str, float, str]]:
    """(policy, age of a report when the next one comes, whose) for every balancer and reporter."""
    for root, words in scenario.roots.items():
        for cell in scenario.cells:
            age_s = reports_of(scenario, cell).every + delays.between(root, cell, "observation").mean_s
            for line in words.traffic:
                yield line.policy, age_s, f"of {cell}"
    for cell, settings in scenario.cells.items():
        news = delays.inside(cell, "observation")
        if news is not None and settings.leaf.policy is not None:
            age_s = settings.server_reports.every + news.mean_s
            yield settings.leaf.policy, age_s, f"of the servers of {cell}"


def _of_jitter(topology: Topology) -> Iterator[str]:
    """One warning per effect whose delay is cut at 0 often enough to move its mean."""
    effects = {
        link.effect: link
        for link in reversed(topology.links)
        if link.effect.jitter and not link.effect.jitter.table
    }
    for effect, link in effects.items():
        mean_s = mean_delay_s(Effect(effect.delay_s, effect.jitter))
        if abs(mean_s - effect.delay_s) > NOTICED * effect.delay_s:
            yield (
                f"the jitter from {link.source} to {link.target} ({link.path}) is cut at 0:"
                f" the mean delay is {format_s(mean_s)}, not {format_s(effect.delay_s)}"
            )


def _of_warmup(scenario: Scenario, loops: list[Feedback]) -> Iterator[str]:
    longest_s = max((loop.loop_delay_s for loop in loops), default=0.0)
    if math.isfinite(longest_s) and scenario.warmup < LEAST_LOOPS_OF_WARMUP * longest_s:
        yield (
            f"the warm-up, {format_s(scenario.warmup)}, is shorter than {LEAST_LOOPS_OF_WARMUP:.0f} loop delays"
            f" ({format_s(LEAST_LOOPS_OF_WARMUP * longest_s)}): what is measured includes the start"
        )
