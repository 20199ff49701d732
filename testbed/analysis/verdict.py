"""May this run be believed? valid, suspect, invalid or incomplete, and why.

    incomplete  a process died unplanned, a log has no end marker, the user stopped the run
    invalid     the host was too slow or the generator slipped (a limit below was exceeded), a ledger has a gap, a law was
                broken, or a link did something else than the scenario asks
    suspect     half of a limit was exceeded; a link was later (p99) than its own delay, or the timer of a process before
                the start than the limit; observations were older than they
                should be; tasks waited for a core most of the time while others used the cores
    valid       none of these

Limits, in wall time, held against the scenario in run time (durations times the time scale); at a time scale above 1 the
2 ms and 100 ms are so many times as long (see limits.py):

    p99 of the lateness of each link's releases    max(2 ms, 10 % of the smallest configured delay or period)
    p99 of each link's injection error             the same (received - sent - drawn, from the records)
    p99 of each server's step error                the same (answered - finished, the planned boundary of its step)
    p99 of each root's slip (sent - held - planned)   the same
    stall or timer lag of a process, fault latency    max(100 ms, half the loop delay)
    planned arrivals never sent                    1 %

A link's p99 counts as exceeding a limit when it does so with 95 % confidence (see lateness.py). Links with fewer than 100
messages, and servers with as few replies, have no p99 to speak of and are judged in pools (see pools.py and server_step.py);
such roots are passed over. Under virtual time nothing is late, so only deaths, ledgers, arrivals and laws are looked at. What
a machine does not tell, or what too few messages do not, is unknown, and decides nothing.

Source: emulation.md, section 2; design.md, section 8.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from testbed.analysis.fidelity import Fidelity
from testbed.analysis.lateness import LinkLateness
from testbed.analysis.law import Law
from testbed.analysis.limits import WORDS, Finding, exceeded, graded, lateness_limit, round_scale, stall_limit
from testbed.analysis.punctuality import Punctuality
from testbed.analysis.reason import WHOLE_RUN, Places, reason
from testbed.analysis.records import Table, Tables, ended_s, row_count
from testbed.record.outcome import RunOutcome
from testbed.record.run_folder import file_name
from testbed.scenario.quantity import format_s
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import Topology

SHORTFALL = 0.01
WORST_LAWS = 5  # more of the same kind would only repeat the story

CHECKS = ("ending", "ledger", "laws", "arrivals")
LIVE_CHECKS = (
    "release lateness",
    "injection",
    "server step",
    "generator slip",
    "timers",
    "stall",
    "timer lag",
    "fault latency",
    "delivered delay",
    "drawn delay",
    "loss",
    "observation age",
    "pressure",
)


class Verdict(NamedTuple):
    """What a run is worth.

    Attributes:
        word: one of `WORDS`.
        reasons: the gravest first.
        checks: the word of each check, or `unknown`, or `not asked`.
        advice: the time scale at which nothing would have been too late; empty where that is no matter of the scale.
    """

    word: str
    reasons: tuple[str, ...]
    checks: dict[str, str]
    advice: str = ""


def judge(
    scenario: Scenario,
    topology: Topology,
    tables: Tables,
    outcome: RunOutcome,
    *,
    lateness: Sequence[LinkLateness],
    laws: Sequence[Law],
    loop_delay_s: float,
    fidelity: Fidelity,
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
        fidelity: what else was measured.
        log_problems: what is wrong with logs, such as a missing end marker; each makes the run incomplete.
    """
    places = Places(scenario, topology)
    findings = [
        *_endings(outcome, log_problems),
        *_ledger_gaps(outcome, places),
        *_broken_laws(laws, places, is_live=fidelity.is_live),
        *_shortfall(tables["requests"], outcome, scenario, places),
    ]
    without_data = _unknown(outcome, laws, tables["requests"])
    if fidelity.is_live:
        limit, stall = lateness_limit(scenario, topology), stall_limit(loop_delay_s)
        late = Punctuality(scenario, topology, fidelity.host, limit=limit, stall_limit=stall)
        findings += late.links(lateness, tables.get("links", {}))
        if not fidelity.is_dated_due:
            findings += late.slips(tables["requests"])
        findings += late.stalls(tables.get("processes", {}))
        faults, end_s = tables.get("faults", {}), ended_s(scenario, outcome)
        findings += late.faults(faults, end_s)
        findings += fidelity.findings(scenario, topology, limit)
        without_data |= late.unknown(lateness, tables, faults, end_s) | fidelity.unknown()
    findings.sort(key=lambda finding: -WORDS.index(finding.word))
    return Verdict(
        findings[0].word if findings else "valid",
        tuple(finding.reason for finding in findings),
        _checks(findings, without_data, is_live=fidelity.is_live),
        _advice(findings, scenario),
    )


def _advice(findings: Sequence[Finding], scenario: Scenario) -> str:
    """By the clock a host is taken to be as late at any scale; with fewer messages a second it is rather less so."""
    scales = [each.least_scale for each in findings if math.isfinite(each.least_scale)]
    if not scales:
        return ""
    scale = round_scale(max(scales), scenario.time_scale)
    return (
        f"try --time-scale {scale:g}: if the host is as late again, all of it is within its limits then; a run takes "
        f"{format_s(scenario.duration * scale)} an arm"
    )


def _checks(findings: Sequence[Finding], without_data: dict[str, str], *, is_live: bool) -> dict[str, str]:
    """The word of each check: of its gravest finding, since these come first; or why it has none to say."""
    words = dict.fromkeys(CHECKS, "valid") | dict.fromkeys(LIVE_CHECKS, "valid" if is_live else "not asked")
    words.update(without_data)
    for finding in reversed(findings):
        assert finding.check in words, f"{finding.check} is no check"
        words[finding.check] = finding.word
    return words


def _unknown(outcome: RunOutcome, laws: Sequence[Law], requests: Table) -> dict[str, str]:
    """Checks of any engine that this run has no data for."""
    has_data = {"ledger": bool(outcome.ledger), "laws": bool(laws), "arrivals": row_count(requests) > 0}
    return {check: "unknown" for check, has in has_data.items() if not has}


def _endings(outcome: RunOutcome, log_problems: Sequence[str]) -> Iterable[Finding]:
    for death in outcome.deaths:
        said = death.stderr_tail.strip().splitlines()
        last = f"; its last line: {said[-1]}" if said else ""
        yield Finding(
            "incomplete",
            reason(
                "ending",
                f"{death.node} died ({death.how})",
                process="",  # a process has died, not a node
                when=f"at {death.at_s:.3f} s of run time",
                advice=f"see all that it said in {file_name(death.node)}.txt in the folder stderr of the arm",
                why=last,
            ),
            "ending",
        )
    ended = f"when the run ended, at {outcome.ended_at_s:.3f} s of run time"
    for problem in log_problems:
        yield Finding(
            "incomplete",
            reason(
                "ending",
                f"log {problem}",
                process="",  # it has the name of its process
                when=ended,
                advice="see what that process said in the folder stderr of the arm, and look for room on the disk",
            ),
            "ending",
        )
    if outcome.interrupted:
        yield Finding(
            "incomplete",
            reason(
                "ending",
                "stopped by the user",
                process="",
                when=f"at {outcome.ended_at_s:.3f} s of run time",
                advice="run it to its end",
            ),
            "ending",
        )


def _ledger_gaps(outcome: RunOutcome, places: Places) -> Iterable[Finding]:
    for line in outcome.ledger:
        if line.gap:
            yield Finding(
                "invalid",
                reason(
                    "ledger",
                    f"{line.source} -> {line.target} ({line.path}) sent {line.sent} and copied {line.duplicated}, but "
                    f"{sum(line.dropped.values())} dropped + {line.delivered} delivered + {line.under_way} under way leave "
                    f"{line.gap} unaccounted for",
                    process=places.process(line.source, line.target),
                    when=f"counted at the end, {outcome.ended_at_s:.3f} s of run time",
                    advice="see what both ends said in the folder stderr of the arm, and run it again",
                ),
                "ledger",
            )


def _broken_laws(laws: Sequence[Law], places: Places, *, is_live: bool) -> Iterable[Finding]:
    advice = (
        "run the same seed under --engine virtual: what is broken there too is no fault of the host"
        if is_live
        else "keep the folder: under virtual time it is a fault of the testbed"
    )

    def finding(found: str, process: str, when: str) -> Finding:
        return Finding("invalid", reason("laws", found, process=process, when=when, advice=advice), "laws")

    broken = [law for law in laws if not law.holds]
    for law in broken[:WORST_LAWS]:
        when = f"at {law.at_s:.3f} s" if math.isfinite(law.at_s) else WHOLE_RUN
        node = f" at {law.node}" if law.node else ""
        process = places.process(law.node or law.place)
        yield finding(f"{law.name} is broken at {law.place}{node}: {law.detail}", process, when)
    if len(broken) > WORST_LAWS:
        yield finding(f"{len(broken) - WORST_LAWS} more are broken", "", WHOLE_RUN)


def _shortfall(requests: Table, outcome: RunOutcome, scenario: Scenario, places: Places) -> Iterable[Finding]:
    due = requests["planned_at_s"] < min(scenario.duration, outcome.ended_at_s / scenario.time_scale)
    planned = int(due.sum())
    # what its root held until the end had arrived there in time
    never = ~np.isfinite(requests["sent_at_s"]) & np.isfinite(requests["held_s"])
    excused = (requests["outcome"] == "no_target") | (requests["outcome"] == "lost")  # its root was dead
    missed = due & never & ~excused
    unsent = int(missed.sum())
    word = graded(unsent / planned, SHORTFALL) if planned else ""
    if word:
        (root, of_root), *_ = Counter(requests["root"][missed].tolist()).most_common(1)
        first_s = float(requests["planned_at_s"][missed].min())
        yield Finding(
            word,
            reason(
                "arrivals",
                f"{unsent} of {planned} planned requests ({unsent / planned:.2%}) were never sent, {of_root} of them by {root}",
                process=places.process(root),
                when=f"the first planned at {first_s:.3f} s",
                limit=f"{exceeded(word, SHORTFALL):.1%}",
                advice="try a lower rate or a larger time_scale",
            ),
            "arrivals",
        )
