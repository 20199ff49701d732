"""The summary of a run: every figure of merit of every arm, as it stands in `summary.json`.

Plain JSON types only; what is not known is null. All times are in scenario time, but for `release_lateness_s`,
`wall_s` and `start_s`. Unless a key says otherwise the figures cover the requests planned from the end of the warm-up
to the end of the arrivals, and the requests in flight over the same stretch.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from testbed.analysis.constraints import audit
from testbed.analysis.excess import static_amplitude, with_noise
from testbed.analysis.lateness import release_lateness_s
from testbed.analysis.left_out import left_out
from testbed.analysis.loop_delay import predicted_loop_delay_s
from testbed.analysis.measured_arm import MeasuredArm
from testbed.analysis.policy_settings import policy_settings
from testbed.analysis.prefix_cache import prefix_cache_figures
from testbed.analysis.processes import process_figures
from testbed.analysis.records import (
    Table,
    Tables,
    Window,
    row_count,
    rows,
)
from testbed.analysis.resending import resending_figures
from testbed.analysis.routing import routing_figures
from testbed.analysis.settling import changes_s, settled_sojourn_s, shares_settled_s
from testbed.analysis.slowdown import slowdown
from testbed.analysis.sojourn import (
    goodput_per_s,
    known_percentiles,
    outcome_counts,
    sheds,
    sojourns,
    split_s,
)
from testbed.analysis.staleness import staleness_s, transit_s
from testbed.analysis.stretch import cell_figures, oscillation_in, stretch_figures, waits
from testbed.record.outcome import RunOutcome
from testbed.scenario.expectation import Expectation
from testbed.scenario.schema import Scenario

SCHEMA_VERSION = 2
# Of the time after the last change, the part that is given to settling before `windows.last` begins.
SETTLING_PART = 0.4
MOST_SETTLING_BINS = 1_000_000  # bins of one loop delay: more would take memory and tell nothing

Json = dict[str, Any]


def summarize_arm(
    scenario: Scenario, tables: Tables, outcome: RunOutcome, log_problems: Sequence[str] = ()
) -> Json:
    """Every figure of merit of one arm.

    Args:
        scenario: the arm's resolved scenario, unscaled.
        tables: its merged tables.
        outcome: how its run ended.
        log_problems: what is wrong with logs, such as a missing end marker.
    """
    arm = MeasuredArm(scenario, tables, outcome, log_problems)
    return plain(
        {
            **_judged(arm),
            **_served(arm),
            "oscillation": oscillation_in(arm, arm.window),
            **_timed(arm),
            **_routed(arm),
            "constraints": audit(scenario, tables),
            "settled": _settled(arm),
            "windows": _windows(arm),
            **_lawful(arm),
            **_run(arm),
        }
    )


def summarize_run(name: str, arms: Mapping[str, Json], expectations: Sequence[Expectation] = ()) -> Json:
    """The whole of `summary.json`.

    Args:
        name: of the scenario.
        arms: what `summarize_arm` gave for each.
        expectations: what the scenario file expects of it.
    """
    noise = static_amplitude(arms)
    summary: Json = {
        "schema_version": SCHEMA_VERSION,
        "name": name,
        "arms": {
            arm: {**words, "oscillation": with_noise(words["oscillation"], noise)}
            for arm, words in arms.items()
        },
    }
    return plain({**summary, "expectations": [_checked(each, summary) for each in expectations]})


def plain(values: Mapping[str, Any]) -> Json:
    """A mapping in plain JSON types: numpy numbers as Python's, NaN and infinities as None."""
    return {key: _plain(value) for key, value in values.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return plain(value)
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, np.generic):
        return _plain(value.item())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _checked(expectation: Expectation, summary: Json) -> Json:
    """What came of an expectation: its text, whether it was met, and both numbers, `said` in words."""
    outcome = expectation.check(summary)
    return {
        "text": str(expectation),
        "met": outcome.met,
        "observed": outcome.observed,
        "limit": outcome.limit,
        "said": f"{_number(outcome.observed)} against {_number(outcome.limit)}",
    }


def _number(value: float | None) -> str:
    return "no value" if value is None else f"{value:.4g}"


def _judged(arm: MeasuredArm) -> Json:
    """Whether the run may be believed, and why."""
    verdict = arm.verdict
    return {
        "verdict": verdict.word,
        "verdict_reasons": list(verdict.reasons),
        "verdict_advice": verdict.advice,
        "checks": verdict.checks,
    }


def _served(arm: MeasuredArm) -> Json:
    """What became of the requests, how long they took and where."""
    tables, counted = arm.tables, arm.counted
    classes = _classes(arm)
    return {
        "requests": outcome_counts(tables["requests"]),
        "sheds": sheds(tables["requests"]),
        "left_out": left_out(tables.get("rotations", {})),
        "resendings": resending_figures(tables.get("attempts", {}), tables["requests"]),
        **waits(arm, counted),
        "queue_wait_s": known_percentiles(counted["started_at_s"] - counted["at_server_s"]),
        "split_s": split_s(counted),
        "prefix_cache": prefix_cache_figures(arm.scenario, counted),
        "classes": classes,
        "goodput_per_s": _goodput_per_s(classes),
    }


def _timed(arm: MeasuredArm) -> Json:
    """How old the news was, how late the emulator, and what its processes used."""
    return {
        "staleness_s": staleness_s(arm.counted),
        "transit_s": transit_s(arm.tables.get("observations", {}), arm.tables["requests"], arm.window),
        "release_lateness_s": release_lateness_s(arm.links),
        "inversions": _inversions(arm.tables.get("lateness", {})),
        **arm.fidelity.figures(),
        "processes": process_figures(arm.tables.get("processes", {})),
    }


def _inversions(lateness: Table) -> int | None:
    """Messages that reached their process after their release; None where nobody counted."""
    return int(lateness["inversions"].sum()) if "inversions" in lateness else None


def _routed(arm: MeasuredArm) -> Json:
    """Where the requests went, how good the choices were, and what the policies were set to."""
    return {
        "cells": cell_figures(arm, arm.counted, arm.window),
        **routing_figures(arm.scenario, arm.tables, arm.counted, arm.window),
        "policy": {
            **policy_settings(arm.scenario, arm.tables, arm.pairs, arm.window),
            "loop_delay_predicted_s": predicted_loop_delay_s(arm.scenario, arm.topology),
        },
    }


def _lawful(arm: MeasuredArm) -> Json:
    """How many laws were checked and broken, and the largest error of Little's."""
    errors = [law.error for law in arm.laws if law.name == "little"]
    return {
        "laws": {"checked": len(arm.laws), "broken": sum(not law.holds for law in arm.laws)},
        "little": {"error_max": max(errors, default=math.nan)},
    }


def _run(arm: MeasuredArm) -> Json:
    """Which run it was, and how it went."""
    scenario, outcome = arm.scenario, arm.outcome
    return {
        "engine": outcome.engine,
        "dating": outcome.dating,
        "seed": scenario.seed,
        "time_scale": scenario.time_scale,
        "duration_s": scenario.duration,
        "warmup_s": scenario.warmup,
        "ended_s": arm.end_s,
        "drained": outcome.drained,
        "wall_s": outcome.wall_s,
        "start_s": outcome.start_s,
        "notes": [*outcome.notes, *arm.fidelity.notes(arm.tables)],
    }


def _classes(arm: MeasuredArm) -> Json:
    """The requests, waits and goodput of each class that had requests in the window."""
    counted, length_s = arm.counted, arm.window.to_s - arm.window.from_s
    figures: Json = {}
    for name, words in arm.scenario.classes.items():
        mine = rows(counted, counted["class"] == name)
        if row_count(mine):
            figures[name] = {
                "requests": outcome_counts(mine),
                **waits(arm, mine),
                "split_s": split_s(mine),
                "slowdown": slowdown(mine, arm.scenario, arm.topology, arm.end_s),
            }
            if words.slo is not None:
                good_per_s = goodput_per_s(mine, arm.scenario, words.slo, length_s, arm.end_s)
                figures[name]["goodput_per_s"] = good_per_s
    return figures


def _goodput_per_s(classes: Json) -> float:
    """Over all classes that have a service level objective; NaN where none has one."""
    known = [words["goodput_per_s"] for words in classes.values() if "goodput_per_s" in words]
    return sum(known) if known else math.nan


def _settled(arm: MeasuredArm) -> Json:
    """How long shares and sojourns took to settle after the last change; null without one, or if never."""
    scenario, window, loop_delay_s = arm.scenario, arm.window, arm.loop_delay_s
    changes = [each for each in changes_s(scenario) if each < window.to_s]
    if not changes:
        return {"change_at_s": None, "shares_settled_s": None, "sojourn_settled_s": None}
    change = changes[-1]
    # Without a loop delay (no report was ever used, or links take no time) there is nothing to average over.
    if not (window.to_s - window.from_s) / MOST_SETTLING_BINS < loop_delay_s < math.inf:
        return {"change_at_s": change, "shares_settled_s": None, "sojourn_settled_s": None}
    # Bins before an earlier change would tell of another regime than the one that ended here.
    before = Window(max([window.from_s, *changes[:-1]]), window.to_s)
    requests = arm.tables["requests"]
    seconds = sojourns(requests, scenario, arm.end_s).seconds
    return {
        "change_at_s": change,
        "shares_settled_s": shares_settled_s(
            scenario, requests, arm.tables.get("updates", {}), before, change, loop_delay_s
        ),
        "sojourn_settled_s": settled_sojourn_s(
            requests["planned_at_s"], seconds, before, change, loop_delay_s
        ),
    }


def _windows(arm: MeasuredArm) -> Json:
    """The same figures over parts of a run in which something changed, and over those that the scenario names.

    `before` is the time up to the first change, `during` that from the first to the last one, `last` what remains
    after it once 40 % of the time that follows it has been left to settling; one that the scenario names so is told of
    in its place. Of a run cut short there is what it has of a window.
    """
    ended_s = arm.window.to_s
    named = {
        name: Window(part.from_, min(part.to, ended_s))
        for name, part in arm.scenario.windows.items()
        if part.from_ < ended_s
    }
    parts = {**_parts_by_changes(arm), **named}
    return {name: stretch_figures(arm, part) for name, part in parts.items()}


def _parts_by_changes(arm: MeasuredArm) -> dict[str, Window]:
    window = arm.window
    changes = [each for each in changes_s(arm.scenario) if each < window.to_s]
    if not changes:
        return {}
    parts = {"last": Window(changes[-1] + SETTLING_PART * (window.to_s - changes[-1]), window.to_s)}
    if max(changes[0], window.from_s) < changes[-1]:
        parts = {"during": Window(max(changes[0], window.from_s), changes[-1]), **parts}
    if changes[0] > window.from_s:
        parts = {"before": Window(window.from_s, changes[0]), **parts}
    return parts
