"""What the figures of an arm are worked out from, each part once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from testbed.analysis.fidelity import Fidelity, measure_fidelity
from testbed.analysis.lateness import LinkLateness
from testbed.analysis.law import Law
from testbed.analysis.laws import all_laws
from testbed.analysis.loop_delay import PairDelay, best_loop_delay_s, measured_loop_delays
from testbed.analysis.pools import Pools, judged_links
from testbed.analysis.records import Table, Tables, Window, ended_s, measured_window, rows
from testbed.analysis.verdict import Verdict, judge
from testbed.record.outcome import RunOutcome
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import Topology, build_topology


@dataclass(frozen=True)
class MeasuredArm:
    """An arm that has run.

    Attributes:
        scenario: resolved, unscaled.
        tables: the merged tables.
        outcome: how its run ended.
        log_problems: what is wrong with logs, such as a missing end marker.
    """

    scenario: Scenario
    tables: Tables
    outcome: RunOutcome
    log_problems: Sequence[str] = ()

    @property
    def is_virtual(self) -> bool:
        """Whether it ran under virtual time, in which nothing is late."""
        return self.outcome.engine == "virtual"

    @cached_property
    def topology(self) -> Topology:
        """Its nodes and links."""
        return build_topology(self.scenario)

    @cached_property
    def window(self) -> Window:
        """From the end of the warm-up to the end of the arrivals."""
        return measured_window(self.scenario, self.outcome)

    @cached_property
    def end_s(self) -> float:
        """When its run ended, drain included."""
        return ended_s(self.scenario, self.outcome)

    @cached_property
    def counted(self) -> Table:
        """The rows of the requests planned in the window."""
        requests = self.tables["requests"]
        return rows(requests, self.window.holds(requests["planned_at_s"]))

    @cached_property
    def pairs(self) -> list[PairDelay]:
        """The loop delays measured between each root and cell."""
        return measured_loop_delays(self.scenario, self.tables, self.window)

    @cached_property
    def loop_delay_s(self) -> float:
        """The loop delay, measured or else predicted; NaN where there is neither."""
        return best_loop_delay_s(self.scenario, self.topology, self.pairs)

    @cached_property
    def links(self) -> list[LinkLateness]:
        """How late the links of real processes, and pools of those with few messages, released; none under virtual time."""
        if self.is_virtual:
            return []
        return judged_links(self.tables.get("lateness", {}), Pools(self.scenario, self.topology))

    @cached_property
    def laws(self) -> list[Law]:
        """Conservation, Little and causality, each as it was checked."""
        is_whole = not (self.outcome.deaths or self.outcome.interrupted or self.log_problems)
        return all_laws(self.scenario, self.topology, self.tables, self.end_s, is_whole=is_whole)

    @cached_property
    def fidelity(self) -> Fidelity:
        """How true to its plan the run was."""
        return measure_fidelity(self.scenario, self.topology, self.tables, self.outcome, self.window)

    @cached_property
    def verdict(self) -> Verdict:
        """Whether it may be believed."""
        return judge(
            self.scenario,
            self.topology,
            self.tables,
            self.outcome,
            lateness=self.links,
            laws=self.laws,
            loop_delay_s=self.loop_delay_s,
            fidelity=self.fidelity,
            log_problems=self.log_problems,
        )
