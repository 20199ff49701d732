"""The resolved plan that `testbed check` prints before anything starts.

Every part is a section of plain text cells, made for each arm; arms that agree on a section share it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from testbed.host.cores import usable_cores
from testbed.routing.discrete_or_flow import Decision
from testbed.scenario.fault_plan import Fault, fault_plan, until_text
from testbed.scenario.load import ScenarioFile
from testbed.scenario.policy_words import DlbPolicy
from testbed.scenario.process_map import process_map
from testbed.scenario.quantity import format_s
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import Topology, build_topology, leaf_policy
from testbed.theory.caution import cautions, reports_per_s
from testbed.theory.feedback import Feedback, FlowStep, feedbacks
from testbed.theory.line_step import line_decision, with_steps
from testbed.theory.operating_point import (
    CellState,
    Demand,
    OperatingPoint,
    at_capacity_split,
    at_optimum,
    demand,
)
from testbed.theory.path_delays import PathDelay, PathDelays
from testbed.traffic.capacity import allowed_cells, line_rates
from testbed.traffic.plan import Plan, build_plan

Row = tuple[str, ...]


@dataclass(frozen=True)
class Section:
    """One table of the plan: a title, the heads of its columns, its rows, and a note below."""

    title: str
    columns: Row
    rows: tuple[Row, ...]
    note: str = ""


class Arm(NamedTuple):
    """All that is known of one arm before it runs; everything but `plan` in scenario time."""

    scenario: Scenario
    topology: Topology
    delays: PathDelays
    plan: Plan
    wanted: Demand
    by_capacity: OperatingPoint
    optimum: OperatingPoint
    loops: list[Feedback]
    cores: int


def describe(file: ScenarioFile) -> list[RenderableType]:
    """The resolved plan of all arms of a scenario file, ready to print with rich.

    Raises:
        RunError: a trace is missing or malformed.
    """
    return [as_table(section) for section in sections(file.arms)]


def sections(arms: Mapping[str, Scenario], cores: int | None = None) -> list[Section]:
    """The sections of the plan, in the order of reading; `cores` are this machine's unless given.

    Raises:
        RunError: a trace is missing or malformed.
    """
    cores = max(1, int(usable_cores().usable)) if cores is None else cores
    resolved = {name: resolve(scenario, cores) for name, scenario in arms.items()}
    found = [_arms_section(resolved)]
    for build in _BUILDERS:
        found += _shared({name: build(arm) for name, arm in resolved.items()})
    return [section for section in found if section.rows or section.note]


def resolve(scenario: Scenario, cores: int) -> Arm:
    """Work out everything about one arm.

    Raises:
        UsageError: a step is a multiple of a critical one that does not exist.
        RunError: a trace is missing or malformed.
    """
    scenario = with_steps(scenario)
    topology = build_topology(scenario)
    delays = PathDelays(topology)
    wanted = demand(scenario, delays)
    optimum = at_optimum(wanted)
    loops = feedbacks(scenario, delays, wanted, optimum)
    plan = build_plan(scenario.scaled())
    return Arm(scenario, topology, delays, plan, wanted, at_capacity_split(wanted), optimum, loops, cores)


def as_table(section: Section) -> RenderableType:
    """A section as a rich table; warnings as plain lines that wrap."""
    if not section.columns:
        return Text("\n".join((section.title, *(f"  {row[0]}" for row in section.rows), "")))
    table = Table(
        title=section.title, title_justify="left", caption=section.note or None, caption_justify="left"
    )
    for column in section.columns:
        table.add_column(column, overflow="fold")
    for row in section.rows:
        table.add_row(*row)
    return table


def _shared(by_arm: dict[str, Section]) -> list[Section]:
    """Each distinct section once, its title naming its arms where not all agree."""
    arms_of: dict[Section, list[str]] = {}
    for name, section in by_arm.items():
        arms_of.setdefault(section, []).append(name)
    if len(arms_of) == 1:
        return list(arms_of)
    return [
        Section(f"{section.title} ({_arms(names)})", section.columns, section.rows, section.note)
        for section, names in arms_of.items()
    ]


def _arms(names: list[str]) -> str:
    return f"{'arm' if len(names) == 1 else 'arms'} {', '.join(names)}"


def _arms_section(resolved: dict[str, Arm]) -> Section:
    rows = tuple(
        (
            name,
            _policies(arm.scenario),
            str(arm.plan.requests),
            format_s(arm.scenario.duration),
            format_s(arm.scenario.warmup),
            f"{arm.scenario.time_scale:g}",
            format_s(arm.scenario.duration * arm.scenario.time_scale),
        )
        for name, arm in resolved.items()
    )
    columns = ("arm", "policies", "planned requests", "duration", "warm-up", "time scale", "wall time")
    return Section("Arms", columns, rows, "wall time is that of the arrivals; draining comes on top")


def _policies(scenario: Scenario) -> str:
    """Who places what: the policy, where one serves all; else the policy of each class, or of each root too."""
    lines = [
        (root, line.class_, line.policy) for root, words in scenario.roots.items() for line in words.traffic
    ]
    if len({policy for *_, policy in lines}) == 1:
        return lines[0][2]
    by_class = {(name, policy) for _, name, policy in lines}
    if len(by_class) == len({name for name, _ in by_class}):
        return ", ".join(dict.fromkeys(f"{name}: {policy}" for _, name, policy in lines))
    return ", ".join(f"{root} {name}: {policy}" for root, name, policy in lines)


def _nodes_section(arm: Arm) -> Section:
    rows = [("root", ", ".join(arm.scenario.roots), "", str(len(arm.scenario.roots)), "")]
    for name, cell in arm.scenario.cells.items():
        policy = leaf_policy(arm.scenario, name).kind
        rows.append(("leaf", name, policy, str(cell.leaf.count), ""))
        service = cell.profile or "a service model"
        rows.append(("server", name, service, str(cell.servers), _limits(arm, name)))
    reports = reports_per_s(arm.scenario, arm.topology)
    processes = len(process_map(arm.scenario, arm.topology))
    note = f"{len(arm.topology.nodes)} nodes in {processes} processes (live), {len(arm.topology.links)} links, {reports:.4g} reports/s"
    return Section("Nodes", ("kind", "of", "policy or profile", "nodes", "limits"), tuple(rows), note)


def _limits(arm: Arm, cell: str) -> str:
    """The requests in flight at which a server is full, for each mix that may come to it."""
    j = arm.wanted.cells.index(cell)
    caps = {row[j].n_cap for row in arm.wanted.curves}
    return "n_cap " + ", ".join("none" if math.isinf(cap) else f"{cap:g}" for cap in sorted(caps))


def _traffic_section(arm: Arm) -> Section:
    rows = []
    for position, (root, words) in enumerate(arm.scenario.roots.items()):
        lines = line_rates(arm.scenario, root)
        for index, (line, rate) in enumerate(zip(words.traffic, lines, strict=True)):
            mine = (arm.plan.root == position) & (arm.plan.traffic == index)
            rows.append(
                (
                    root,
                    line.class_,
                    f"{rate.rate_per_s:.4g} /s",
                    str(int(mine.sum())),
                    f"{rate.prompt_mean:.4g} / {rate.output_mean:.4g}",
                    ", ".join(allowed_cells(arm.scenario, root, index)),
                )
            )
    columns = ("root", "class", "mean rate", "planned", "prompt / output tokens", "allowed cells")
    return Section("Traffic", columns, tuple(rows))


def _delays_section(arm: Arm) -> Section:
    """One row for all pairs of roots and cells with the same delays."""
    pairs: dict[Row, dict[str, list[str]]] = {}
    for root in arm.scenario.roots:
        for cell in arm.scenario.cells:
            pairs.setdefault(_pair_row(arm.delays, root, cell), {}).setdefault(root, []).append(cell)
    rows = []
    for row, cells_of in pairs.items():
        roots_of: dict[str, list[str]] = {}
        for root, cells in cells_of.items():
            roots_of.setdefault(", ".join(cells), []).append(root)
        rows += [(f"{', '.join(roots)} - {cells}", *row) for cells, roots in roots_of.items()]
    rows += [(f"inside {cell}", *row) for cell in arm.scenario.cells for row in _inner_rows(arm.delays, cell)]
    columns = ("between", "request", "reply", "round trip", "observation", "probe")
    note = "one way, mean (least; loss); without faults"
    return Section("Effective delays", columns, tuple(rows), note)


def _pair_row(delays: PathDelays, root: str, cell: str) -> Row:
    request, reply, news = (delays.between(root, cell, path) for path in ("request", "reply", "observation"))
    return _delay(request), _delay(reply), format_s(request.mean_s + reply.mean_s), _delay(news), ""


def _inner_rows(delays: PathDelays, cell: str) -> list[Row]:
    """The paths between leaves and servers; none where they cost nothing."""
    found = [delays.inside(cell, path) for path in ("request", "reply", "observation", "probe")]
    request, reply, news, probe = found
    assert request is not None, f"{cell}: no path to its servers"
    assert reply is not None, f"{cell}: no path from its servers"
    if not any(delay is not None and (delay.mean_s > 0.0 or delay.loss > 0.0) for delay in found):
        return []
    round_trip = format_s(request.mean_s + reply.mean_s)
    return [(_delay(request), _delay(reply), round_trip, _delay(news), _delay(probe))]


def _delay(delay: PathDelay | None) -> str:
    if delay is None:
        return ""
    remarks = []
    if delay.least_s != delay.mean_s:
        remarks.append(f"least {format_s(delay.least_s)}")
    if delay.loss > 0.0:
        remarks.append(f"loss {100 * delay.loss:.3g} %")
    return format_s(delay.mean_s) + (f" ({'; '.join(remarks)})" if remarks else "")


def _load_section(arm: Arm) -> Section:
    rows = [
        (word, *_load_row(cell))
        for word, point in (("by capacity", arm.by_capacity), ("optimum", arm.optimum))
        for cell in point.cells
    ]
    columns = ("split", "cell", "rate", "capacity", "share", "rho_cap", "rho", "N", "W")
    capacity = sum(cell.capacity_per_s for cell in arm.optimum.cells)
    offered = float(arm.wanted.rates_per_s.sum())
    share = offered / capacity if capacity > 0.0 else math.inf
    note = (
        f"offered {offered:.4g} /s, {share:.3g} of the capacity of all cells, at mean rates;"
        " rho_cap = rate / capacity, rho = rate * beta / servers, N in flight, W sojourn in the cell"
    )
    return Section("Load", columns, tuple(rows), note)


def _load_row(cell: CellState) -> Row:
    is_full = math.isinf(cell.in_flight)
    return (
        cell.cell,
        f"{cell.rate_per_s:.4g} /s",
        f"{cell.capacity_per_s:.4g} /s",
        f"{cell.share:.3f}",
        f"{cell.of_capacity:.3f}",
        f"{cell.utilisation:.3f}",
        "grows" if is_full else f"{cell.in_flight:.4g}",
        "grows" if is_full else format_s(cell.sojourn_s),
    )


def _loops_section(arm: Arm) -> Section:
    if not arm.optimum.is_sustained:
        return Section("Loops", (), (("a cell is asked for more than it can carry: no operating point",),))
    rows = tuple(_loop_row(loop) for loop in arm.loops)
    columns = ("class", "policy", "loop delay T", "sojourn W", "T/W", "aT")
    note = "at the optimum and mean rates; a is the marginal service rate of the cells"
    return Section("Loops", columns, rows, note if rows else "")


def _loop_row(loop: Feedback) -> Row:
    delay_s = loop.loop_delay_s
    if math.isinf(delay_s):
        return loop.class_name, loop.policy, "no report arrives", format_s(loop.sojourn_s), "", ""
    return (
        loop.class_name,
        loop.policy,
        format_s(delay_s),
        format_s(loop.sojourn_s),
        f"{delay_s / loop.sojourn_s:.3g}",
        f"{loop.a_per_s * delay_s:.3g}",
    )


def _modes_section(arm: Arm) -> Section:
    """What `dlb` decides, one row for all lines of a class that decide alike."""
    rows: dict[Row, None] = {}
    for i, (root, index) in enumerate(arm.wanted.lines):
        line = arm.scenario.roots[root].traffic[index]
        policy = arm.scenario.policies[line.policy]
        if isinstance(policy, DlbPolicy) and arm.optimum.is_sustained:
            decision = line_decision(arm.scenario, arm.delays, arm.wanted, arm.optimum, i)
            rows[(line.class_, line.policy, *_mode_words(policy, decision))] = None
    columns = ("class", "policy", "routing", "decisions within T", "discrete up to")
    note = "decisions of all roots for the class within one loop delay; discrete up to sqrt(3 Lambda / a)"
    return Section("Discrete or flow", columns, tuple(rows), note if rows else "")


def _mode_words(policy: DlbPolicy, decision: Decision | None) -> Row:
    if decision is None:
        return "flow" if policy.mode == "auto" else f"{policy.mode} (forced)", "no report arrives", ""
    chosen = "discrete" if decision.is_discrete else "flow"
    word = chosen if policy.mode == "auto" else f"{policy.mode} (forced; auto: {chosen})"
    return word, f"{decision.decisions:.3g}", f"{decision.most:.3g}"


def _steps_section(arm: Arm) -> Section:
    rows = tuple(_step_row(loop, loop.flow) for loop in arm.loops if loop.flow is not None)
    columns = (
        "class",
        "policy",
        "step",
        "critical",
        "step / critical",
        "period there",
        "interval",
        "product",
    )
    note = (
        "critical: all flow steps raised together until shares oscillate, for the work of the scenario;"
        " product: step * interval"
    )
    return Section("Steps of flow routing", columns, rows, note if rows else "")


def _step_row(loop: Feedback, flow: FlowStep) -> Row:
    unit = flow.step.unit
    oscillates = math.isfinite(flow.critical)
    product = f"{flow.step.value * flow.interval_s:.3g}"
    return (
        loop.class_name,
        loop.policy,
        f"{flow.step.value:.3g} {unit}",
        f"{flow.critical:.3g} {unit}" if oscillates else "none",
        f"{flow.fraction:.3g}",
        format_s(flow.period_s) if oscillates else "none",
        format_s(flow.interval_s),
        f"{product} /s" if unit == "/s^2" else product,
    )


def _faults_section(arm: Arm) -> Section:
    faults = sorted(fault_plan(arm.scenario, arm.topology), key=lambda fault: fault.at_s)
    return Section("Faults", ("at", "until", "on", "sets"), tuple(_fault_row(arm, fault) for fault in faults))


def _fault_row(arm: Arm, fault: Fault) -> Row:
    kinds = {arm.topology.nodes[name].kind for name in fault.nodes}
    count, kind = (len(fault.nodes), kinds.pop()) if kinds else (len(fault.links), "link")
    reach = f"{count} {kind}{'' if count == 1 else 's'}"
    return format_s(fault.at_s), until_text(fault.until_s), f"{fault.target} ({reach})", fault.text


def _cautions_section(arm: Arm) -> Section:
    found = cautions(
        arm.scenario,
        arm.topology,
        arm.delays,
        arm.wanted,
        arm.optimum,
        arm.loops,
        planned=arm.plan.requests,
        cores=arm.cores,
    )
    return Section("Warnings", (), tuple((text,) for text in found))


_BUILDERS: tuple[Callable[[Arm], Section], ...] = (
    _nodes_section,
    _traffic_section,
    _delays_section,
    _load_section,
    _loops_section,
    _modes_section,
    _steps_section,
    _faults_section,
    _cautions_section,
)
