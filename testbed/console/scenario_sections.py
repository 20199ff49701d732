"""What `testbed check` says of the scenario itself: arms, nodes, traffic, delays, faults."""

from __future__ import annotations

import math

from testbed.console.section import Row, Section
from testbed.scenario.fault_plan import Fault, fault_plan, until_text
from testbed.scenario.process_map import process_map
from testbed.scenario.quantity import format_s
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import leaf_policy
from testbed.theory.path_delays import PathDelay, PathDelays
from testbed.theory.process_load import reports_per_s
from testbed.theory.resolved_arm import ResolvedArm
from testbed.traffic.capacity import allowed_cells, line_rates


def arms_section(resolved: dict[str, ResolvedArm]) -> Section:
    """What the arms are, side by side."""
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


def nodes_section(arm: ResolvedArm) -> Section:
    """Roots, leaves and servers, and how many processes they share."""
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


def _limits(arm: ResolvedArm, cell: str) -> str:
    """The requests in flight at which a server is full, for each mix that may come to it."""
    j = arm.wanted.cells.index(cell)
    caps = {row[j].n_cap for row in arm.wanted.curves}
    return "n_cap " + ", ".join("none" if math.isinf(cap) else f"{cap:g}" for cap in sorted(caps))


def traffic_section(arm: ResolvedArm) -> Section:
    """What the roots send, as planned."""
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


def delays_section(arm: ResolvedArm) -> Section:
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


def faults_section(arm: ResolvedArm) -> Section:
    """What is to happen to whom, in order of time."""
    faults = sorted(fault_plan(arm.scenario, arm.topology), key=lambda fault: fault.at_s)
    return Section("Faults", ("at", "until", "on", "sets"), tuple(_fault_row(arm, fault) for fault in faults))


def _fault_row(arm: ResolvedArm, fault: Fault) -> Row:
    kinds = {arm.topology.nodes[name].kind for name in fault.nodes}
    count, kind = (len(fault.nodes), kinds.pop()) if kinds else (len(fault.links), "link")
    reach = f"{count} {kind}{'' if count == 1 else 's'}"
    return format_s(fault.at_s), until_text(fault.until_s), f"{fault.target} ({reach})", fault.text
