"""May this run be believed? valid, suspect, invalid or incomplete, and why.

    incomplete  a process died unplanned, a log has no end marker, the user stopped the run
    invalid     the host was too slow or the generator slipped (a limit below was exceeded), a ledger has a gap, or a
                law was broken
    suspect     half of a limit was exceeded, or a link was later (p99) than its own delay
    valid       none of these

Limits, in wall time, held against the scenario in run time (durations times the time scale):

    p99 of the lateness of each link's releases    max(2 ms, 10 % of the smallest configured delay or period)
    p99 of each root's slip (sent - held - planned)   the same
    stall or timer lag of a process                max(100 ms, half the loop delay)
    planned arrivals never sent                    1 %

A link's p99 counts as exceeding a limit when it does so with 95 % confidence (see lateness.py). Links and roots with
fewer than 100 messages have no p99 to speak of and are passed over. Under virtual time nothing
is late, so only deaths, ledgers, arrivals and laws are looked at.

Source: emulation.md, section 2; design.md, section 8.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from testbed.analysis.lateness import LEAST_MESSAGES, LinkLateness
from testbed.analysis.laws import Law
from testbed.analysis.records import Mask, Table, Tables, quantile, row_count
from testbed.record.outcome import RunOutcome
from testbed.scenario.fault_plan import fault_plan, link_effects
from testbed.scenario.policy_words import FlowPolicy
from testbed.scenario.quantity import format_s
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import Topology, leaf_policy, reads_reports, reports_of

LATENESS_FLOOR_S = 0.002
LATENESS_FRACTION = 0.1
STALL_FLOOR_S = 0.1
STALL_FRACTION = 0.5
SHORTFALL = 0.01
SUSPECT_FRACTION = 0.5
WORST_LAWS = 5  # more of the same kind would only repeat the story

WORDS = ("valid", "suspect", "invalid", "incomplete")


class Verdict(NamedTuple):
    """One of `WORDS`, and the reasons, the gravest first."""

    word: str
    reasons: tuple[str, ...]


class Finding(NamedTuple):
    """Something that speaks against a run: how gravely, and a sentence with its numbers and what to try."""

    word: str
    reason: str


def judge(
    scenario: Scenario,
    topology: Topology,
    tables: Tables,
    outcome: RunOutcome,
    *,
    lateness: Sequence[LinkLateness],
    laws: Sequence[Law],
    loop_delay_s: float,
    log_problems: Sequence[str] = (),
) -> Verdict:
    """Weigh all that is known of a run.

    Args:
        scenario: unscaled.
        topology: of the unscaled scenario.
        tables: the merged tables.
        outcome: how the run ended.
        lateness: of each link, wall time.
        laws: the laws that were looked at.
        loop_delay_s: scenario time.
        log_problems: what is wrong with logs, such as a missing end marker; each makes the run incomplete.
    """
    findings = [
        *_endings(outcome, log_problems),
        *_ledger_gaps(outcome),
        *_broken_laws(laws),
        *_shortfall(tables["requests"], outcome, scenario),
    ]
    if outcome.engine != "virtual":
        limit_s = lateness_limit_s(scenario, topology)
        findings += _late_links(lateness, topology, scenario, limit_s)
        held_up = _held_up(scenario, topology, tables["requests"])
        findings += _slips(tables["requests"], scenario.time_scale, limit_s, held_up)
        findings += _stalls(tables.get("processes", {}), stall_limit_s(loop_delay_s * scenario.time_scale))
    findings.sort(key=lambda finding: -WORDS.index(finding.word))
    return Verdict(findings[0].word if findings else "valid", tuple(finding.reason for finding in findings))


def lateness_limit_s(scenario: Scenario, topology: Topology) -> float:
    """The p99 of lateness that makes a run invalid, wall time."""
    return max(
        LATENESS_FLOOR_S, LATENESS_FRACTION * smallest_duration_s(scenario, topology) * scenario.time_scale
    )


def stall_limit_s(loop_delay_wall_s: float) -> float:
    """The stall that makes a run invalid, wall time; the floor where the loop delay is unknown (NaN)."""
    half_s = STALL_FRACTION * loop_delay_wall_s
    return half_s if half_s > STALL_FLOOR_S else STALL_FLOOR_S


def smallest_duration_s(scenario: Scenario, topology: Topology) -> float:
    """The smallest configured delay above 0, report period or interval of a policy, scenario time."""
    effects = link_effects(topology, fault_plan(scenario, topology))
    delays = [effect.delay_s for variants in effects.values() for effect in variants]
    periods = [reports_of(scenario, cell).every for cell in scenario.cells]
    periods += [
        words.server_reports.every
        for cell, words in scenario.cells.items()
        if reads_reports(leaf_policy(scenario, cell))
    ]
    flows = [policy for policy in scenario.policies.values() if isinstance(policy, FlowPolicy)]
    periods += [flow.interval for flow in flows if flow.interval is not None]
    return min(each for each in (*delays, *periods) if each > 0)


def _endings(outcome: RunOutcome, log_problems: Sequence[str]) -> Iterable[Finding]:
    for death in outcome.deaths:
        said = death.stderr_tail.strip().splitlines()
        last = f"; its last line: {said[-1]}" if said else ""
        yield Finding(
            "incomplete", f"{death.node} died ({death.how}) at {death.at_s:.3f} s of run time{last}"
        )
    for problem in log_problems:
        yield Finding("incomplete", f"log: {problem}")
    if outcome.interrupted:
        yield Finding("incomplete", f"stopped by the user at {outcome.ended_at_s:.3f} s of run time")


def _ledger_gaps(outcome: RunOutcome) -> Iterable[Finding]:
    for line in outcome.ledger:
        if line.gap:
            yield Finding(
                "invalid",
                f"ledger: {line.source} -> {line.target} ({line.path}) sent {line.sent} and copied {line.duplicated}, but "
                f"{sum(line.dropped.values())} dropped + {line.delivered} delivered + {line.under_way} under way leave "
                f"{line.gap} unaccounted for",
            )


def _broken_laws(laws: Sequence[Law]) -> Iterable[Finding]:
    broken = [law for law in laws if not law.holds]
    for law in broken[:WORST_LAWS]:
        yield Finding("invalid", f"{law.name} is broken at {law.place}: {law.detail}")
    if len(broken) > WORST_LAWS:
        yield Finding("invalid", f"{len(broken) - WORST_LAWS} more laws are broken")


def _shortfall(requests: Table, outcome: RunOutcome, scenario: Scenario) -> Iterable[Finding]:
    due = requests["planned_at_s"] < min(scenario.duration, outcome.ended_at_s / scenario.time_scale)
    planned = int(due.sum())
    # what its root held until the end had arrived there in time
    never = ~np.isfinite(requests["sent_at_s"]) & np.isfinite(requests["held_s"])
    excused = (requests["outcome"] == "no_target") | (requests["outcome"] == "lost")  # its root was dead
    unsent = int((due & never & ~excused).sum())
    if planned:
        word = _word(unsent / planned, SHORTFALL)
        if word:
            yield Finding(
                word,
                f"arrivals: {unsent} of {planned} planned requests were never sent ({unsent / planned:.2%}, "
                f"limit {_limit_text(word, SHORTFALL):.1%}); try a lower rate or a larger time_scale",
            )


def _late_links(
    lateness: Sequence[LinkLateness], topology: Topology, scenario: Scenario, limit_s: float
) -> Iterable[Finding]:
    counted = [link for link in lateness if link.messages >= LEAST_MESSAGES]
    late = [(word, link) for link in counted if (word := _word(link.p99_low_s, limit_s))]
    if late:
        word, worst = max(late, key=lambda each: each[1].p99_low_s)
        others = f" ({len(late) - 1} more links above half the limit)" if len(late) > 1 else ""
        yield Finding(
            word,
            f"release lateness: p99 {format_s(worst.p99_s)} on {worst.name} ({worst.messages} messages), limit "
            f"{format_s(_limit_text(word, limit_s))}{others}; try a larger time_scale, a lower rate or an idle host",
        )
    yield from _later_than_delay(counted, topology, scenario.time_scale)


def _later_than_delay(
    lateness: Sequence[LinkLateness], topology: Topology, time_scale: float
) -> Iterable[Finding]:
    delays = {
        (link.source, link.target, link.path): link.effect.delay_s * time_scale for link in topology.links
    }
    beyond = [
        (link, delay_s)
        for link in lateness
        if link.p99_low_s > (delay_s := delays.get((link.source, link.target, link.path), 0.0)) > 0
    ]
    if beyond:
        worst, delay_s = max(beyond, key=lambda each: each[0].p99_low_s / each[1])
        yield Finding(
            "suspect",
            f"release lateness: p99 {format_s(worst.p99_s)} on {worst.name} exceeds that link's own delay of "
            f"{format_s(delay_s)} in run time; try a larger time_scale",
        )


def _held_up(scenario: Scenario, topology: Topology, requests: Table) -> Mask:
    """The requests that arrived while a fault had stopped their root: it sent them late by no fault of the host."""
    at_s = requests["planned_at_s"]
    held_up = np.zeros(len(at_s), dtype=bool)
    for fault in fault_plan(scenario, topology):
        if fault.words.pause:
            for node in fault.nodes:
                held_up |= (requests["root"] == node) & (at_s >= fault.at_s) & (at_s < fault.until_s)
    return held_up


def _slips(requests: Table, time_scale: float, limit_s: float, held_up: Mask) -> Iterable[Finding]:
    slip_s = (requests["sent_at_s"] - requests["held_s"] - requests["planned_at_s"]) * time_scale
    if "attempts" in requests:  # the instants are those of the last attempt, which is late by design
        slip_s = np.where(requests["attempts"] > 1, np.nan, slip_s)
    slip_s = np.where(held_up, np.nan, slip_s)
    worst: tuple[float, str, float] | None = None
    for root in dict.fromkeys(requests["root"].tolist()):
        mine = np.where(requests["root"] == root, slip_s, np.nan)
        if np.isfinite(mine).sum() < LEAST_MESSAGES:
            continue
        at_s = float(requests["planned_at_s"][int(np.nanargmax(mine))])
        found = (quantile(mine, 0.99), root, at_s)
        worst = found if worst is None or found[0] > worst[0] else worst
    if worst is not None and (word := _word(worst[0], limit_s)):
        yield Finding(
            word,
            f"generator slip: p99 {format_s(worst[0])} at {worst[1]}, largest at {worst[2]:.3f} s, limit "
            f"{format_s(_limit_text(word, limit_s))}; try a lower rate, more roots or an idle host",
        )


def _stalls(processes: Table, limit_s: float) -> Iterable[Finding]:
    if not row_count(processes):
        return
    for column, what in (("stall_s", "stall"), ("loop_lag_s", "timer lag")):
        values = np.nan_to_num(processes[column])
        i = int(np.argmax(values))
        word = _word(float(values[i]), limit_s)
        if word:
            yield Finding(
                word,
                f"{what}: {format_s(float(values[i]))} at {processes['node'][i]} in the second up to "
                f"{processes['at_s'][i]:.3f} s, limit {format_s(_limit_text(word, limit_s))}; try fewer processes, "
                "a lower rate or an idle host",
            )


def _word(value: float, limit: float) -> str:
    """The verdict on a figure against its limit; empty when there is nothing to say."""
    if value > limit:
        return "invalid"
    return "suspect" if value > limit * SUSPECT_FRACTION else ""


def _limit_text(word: str, limit: float) -> float:
    """The limit that a figure exceeded: the whole or, for a suspect run, its half."""
    return limit if word == "invalid" else limit * SUSPECT_FRACTION
