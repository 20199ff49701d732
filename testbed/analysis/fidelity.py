"""How true a live run was to its scenario, beyond what its links say of themselves: measured once, judged and summed up."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from testbed.analysis.delivery import (
    Delivered,
    Draws,
    delivered_delays,
    delivery_findings,
    draw_findings,
    draws_of,
)
from testbed.analysis.hops import recorded_hops, untouched_links
from testbed.analysis.host import HostSeries, clock_steps
from testbed.analysis.injection import Early, earliest, injection_errors, injection_findings
from testbed.analysis.limits import Finding, Limit
from testbed.analysis.observation_age import (
    ObservationAge,
    age_findings,
    expected_ages,
    observation_ages,
    worst_age,
)
from testbed.analysis.pools import Pools, judged_hops
from testbed.analysis.processes import full_sockets
from testbed.analysis.reason import Places
from testbed.analysis.recorded_error import RecordedError, worst_error
from testbed.analysis.records import Tables, Window, row_count
from testbed.analysis.server_step import step_errors, step_findings
from testbed.analysis.timers import Timer, timer_figures, timer_findings, timers_of
from testbed.record.outcome import RunOutcome
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import Topology

# what compares instants that the roles wrote down: where they are told due ones, these agree by construction
BY_INSTANTS = ("injection", "server step", "generator slip", "delivered delay")
MOST_TOLD = 20  # links whose delays the summary tells; the verdict looks at all


class Fidelity(NamedTuple):
    """What was measured; empty under virtual time, where nothing is late and every draw is its own delivery.

    Attributes:
        host: what the machine did.
        errors: of the injected delays, from end to end.
        steps: of the answers of servers, against the planned boundaries of their steps.
        early: the message that came longest before its time; None: none did.
        delivered: delays against what was asked.
        draws: of the links that no fault touches.
        ages: of the observations.
        timers: of the processes, before the start.
        own_cpu_s: processor time of the run's processes.
        is_live: whether there was anything to measure.
        is_dated_due: whether the roles were told due instants, so that their records cannot be late.
        is_age_known: whether theory tells the age of any observation.
        window: that of the figures, and of the ages.
    """

    host: HostSeries
    errors: list[RecordedError]
    steps: list[RecordedError]
    early: Early | None
    delivered: list[Delivered]
    draws: list[Draws]
    ages: list[ObservationAge]
    timers: list[Timer]
    own_cpu_s: float
    is_live: bool
    is_dated_due: bool
    is_age_known: bool
    window: Window

    def findings(self, scenario: Scenario, topology: Topology, limit: Limit) -> Iterator[Finding]:
        """All that speaks against the run; the limit is that of lateness."""
        if not self.is_live:
            return
        scale, places = scenario.time_scale, Places(scenario, topology)
        yield from injection_findings(self.errors, self.early, limit, scale, self.host, places)
        yield from step_findings(self.steps, limit, scale, self.host, places)
        yield from timer_findings(self.timers, limit, scale)
        yield from delivery_findings(self.delivered, places)
        yield from draw_findings(self.draws, places)
        yield from age_findings(self.ages, self.host, limit.at(scale) / scale, self.window, places)
        yield from self.host.findings(self.own_cpu_s)

    def unknown(self) -> dict[str, str]:
        """Checks that this run has no data for, with `unknown`; with `not asked` those that do not apply."""
        if not self.is_live:
            return {}
        has_data = {
            "injection": bool(self.errors),
            "server step": bool(self.steps),
            "delivered delay": bool(self.delivered),
            "timers": bool(self.timers),
            "drawn delay": any(each.has_mean for each in self.draws),
            "loss": bool(self.draws),
            "observation age": bool(self.ages),
            "pressure": self.host.knows("pressure"),
        }
        found = {check: "unknown" for check, has in has_data.items() if not has}
        if self.is_dated_due:
            found |= dict.fromkeys(BY_INSTANTS, "not asked")
        if not self.is_age_known:
            found["observation age"] = "not asked"
        return found

    def notes(self, tables: Tables) -> list[str]:
        """What is worth a line, but decides nothing."""
        if not self.is_live:
            return []
        found = (clock_steps(self.host, tables.get("host", {})), full_sockets(tables.get("processes", {})))
        return [said for said in found if said]

    def figures(self) -> dict[str, Any]:
        """For the summary: the error of the worst link, the age that differs most, what the machine did."""
        worst, age = worst_error(self.errors), worst_age(self.ages)
        return {
            "injection_error_s": {
                "p50": worst.p50_s if worst else math.nan,
                "p99": worst.p99_s if worst else math.nan,
                "link": worst.name if worst else "",
            },
            "observation_age_s": {
                "mean": age.mean_s if age else math.nan,
                "expected": age.expected_s if age else math.nan,
            },
            "timers_s": timer_figures(self.timers) if self.is_live else None,
            "delivered_delays_s": [_delivered(each) for each in self._furthest()],
            "host": self.host.figures() if self.is_live else None,
        }

    def _furthest(self) -> list[Delivered]:
        """The links whose mean delay differs most from what is asked for."""
        return sorted(self.delivered, key=lambda each: -abs(each.delivered_s[0] - each.asked_s[0]))[
            :MOST_TOLD
        ]


def _delivered(link: Delivered) -> dict[str, Any]:
    names = ("mean", "p50", "p99")
    return {
        "link": link.name,
        "messages": link.messages,
        "asked": dict(zip(names, link.asked_s, strict=True)),
        "delivered": dict(zip(names, link.delivered_s, strict=True)),
    }


def measure_fidelity(
    scenario: Scenario, topology: Topology, tables: Tables, outcome: RunOutcome, window: Window
) -> Fidelity:
    """Of one arm; the scenario is unscaled, the window that of its figures."""
    is_live = outcome.engine == "live"
    host = HostSeries(tables.get("host", {}) if is_live else {}, scenario.time_scale)
    if not is_live:
        return Fidelity(host, [], [], None, [], [], [], [], 0.0, False, False, False, window)
    hops = list(recorded_hops(scenario, topology, tables))
    pools, scale = Pools(scenario, topology), scenario.time_scale
    processes = tables.get("processes", {})
    is_due = outcome.dating == "due"
    return Fidelity(
        host,
        [] if is_due else injection_errors(judged_hops(hops, pools), scale),
        [] if is_due else step_errors(scenario, topology, tables["requests"]),
        None if is_due else earliest(hops, scale),
        [] if is_due else delivered_delays(judged_hops(hops, pools, alike=True)),
        draws_of(untouched_links(scenario, topology), tables.get("lateness", {})),
        observation_ages(scenario, topology, tables.get("observations", {}), window),
        timers_of(tables.get("timers", {})),
        float(processes["cpu_s"].sum()) if row_count(processes) and "cpu_s" in processes else 0.0,
        True,
        is_due,
        bool(expected_ages(scenario, topology)),
        window,
    )
