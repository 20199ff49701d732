"""What a hop without delay takes at the planned rate of a scenario, in its own processes: a null run of some seconds."""

from __future__ import annotations

from typing import NamedTuple

from testbed.analysis.lateness import LEAST_MESSAGES
from testbed.analysis.overhead import hop_overheads
from testbed.benchmark.scenes import run
from testbed.fitness.check import Check
from testbed.fitness.null_run import null_scenario
from testbed.fitness.scenario_checks import Speed
from testbed.scenario.quantity import format_s
from testbed.scenario.schema import Scenario
from testbed.scenario.shorten import with_duration
from testbed.scenario.topology import build_topology

BASELINE_S = 3.0  # wall time


class Baseline(NamedTuple):
    """Of the kind of hop that was latest at its p99, wall seconds; NaN where no kind had enough messages."""

    hop: str
    p50_s: float
    p99_s: float
    longest_s: float

    def worsen(self, speed: Speed) -> Speed:
        """The speed of the machine, as late as it was here where that is later."""
        if not self.hop:
            return speed
        return speed._replace(
            lateness_p99_s=max(speed.lateness_p99_s, self.p99_s),
            longest_s=max(speed.longest_s, self.longest_s),
        )

    def check(self) -> Check:
        """As a line."""
        if not self.hop:
            return Check("hop at the planned rate", "", "", "unknown", "too few messages in 3 s")
        return Check(
            "hop at the planned rate", f"p50 {format_s(self.p50_s)}, p99 {format_s(self.p99_s)}, {self.hop}"
        )


def measure_baseline(scenario: Scenario) -> Baseline:
    """Of an arm, unscaled.

    Raises:
        RunError: a process failed, or a trace is missing.
    """
    null = with_duration(null_scenario(scenario), BASELINE_S / scenario.time_scale)
    hops = hop_overheads(build_topology(null), run(null).tables["lateness"])
    counted = [each for each in hops if each.messages >= LEAST_MESSAGES]
    if not counted:
        return Baseline("", float("nan"), float("nan"), float("nan"))
    worst = max(counted, key=lambda each: each.p99_s)
    return Baseline(worst.hop, worst.p50_s, worst.p99_s, max(each.max_s for each in counted))
