"""The time scale at which a scenario would fit this machine, from what it needs and what was measured.

By the clock a host is taken to be as late at every scale, while at scale s the limits of lateness are s times as long
(`analysis/limits.py`) and there are 1/s as many messages a second. A slower run wakes a host less often and is rather less
late, so the scale found is a cautious one.
"""

from __future__ import annotations

import math

from testbed.analysis.limits import STALL_FLOOR, round_scale
from testbed.fitness.check import Check
from testbed.fitness.footprint import Footprint
from testbed.fitness.scenario_checks import COMFORTABLE, IDLE_CPU, Speed, cores_of_reports
from testbed.host.machine import Machine
from testbed.scenario.quantity import format_s
from testbed.theory.process_load import BUSY_MESSAGES_PER_S


def least_scales(needs: Footprint, machine: Machine, speed: Speed) -> dict[str, float]:
    """The least time scale at which each check fits, by the name of the check; infinite: none does."""
    cores, scale = machine.cores.usable, needs.time_scale
    rates = sorted((rate for _, rate in needs.messages_per_s), reverse=True)
    one_too_many = rates[int(cores)] if len(rates) > cores else 0.0
    free_cores = COMFORTABLE * cores - needs.processes * IDLE_CPU
    reports, rate = cores_of_reports(needs), needs.requests_per_s
    return {
        "busy processes": scale * one_too_many / BUSY_MESSAGES_PER_S,
        "cores in use": scale / speed.cost.share(rate, reports, free_cores) if free_cores > 0.0 else math.inf,
        "requests": scale * rate / (COMFORTABLE * speed.cost.rate_per_s(cores)),
        "longest wait": STALL_FLOOR.least_scale(speed.longest_s, scale),
        "lateness p99 of a link": max(
            needs.limit.least_scale(speed.lateness_p99_s, scale),
            scale * speed.lateness_p99_s / needs.smallest_delay_s,
        ),
    }


def advised_scale(needs: Footprint, machine: Machine, speed: Speed) -> float:
    """The time scale to run at: that of the scenario where all fits, else the power of two; infinite: none would do."""
    return round_scale(max(least_scales(needs, machine, speed).values()), needs.time_scale)


def scale_check(needs: Footprint, machine: Machine, speed: Speed) -> Check:
    """The advice as a line."""
    scales = least_scales(needs, machine, speed)
    decisive = max(scales, key=lambda name: scales[name])
    advised, has = advised_scale(needs, machine, speed), f"{needs.time_scale:g}"
    if math.isinf(advised):
        return Check("time scale", has, "", "warning", "none would do: group nodes with processes:")
    needed = f"{advised:g}"
    if advised == needs.time_scale:
        return Check("time scale", has, needed)
    takes = format_s(needs.duration_s * advised / needs.time_scale)
    return Check(
        "time scale",
        has,
        needed,
        "warning",
        f"try --time-scale {advised:g}, for the {decisive}: a run then takes {takes} an arm",
    )
