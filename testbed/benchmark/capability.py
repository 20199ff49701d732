"""What this machine carries, measured in some twenty seconds: timers, speed, a hop, a pipeline, three short runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from testbed.analysis.lateness import LinkLateness, link_lateness
from testbed.benchmark.neighbours import Clock
from testbed.benchmark.pipeline import requests_per_s
from testbed.benchmark.scenes import run, shipped
from testbed.fitness.check import Check
from testbed.fitness.footprint import PROCESS_BYTES
from testbed.fitness.request_cost import RequestCost
from testbed.fitness.scenario_checks import COMFORTABLE, IDLE_CPU, Speed
from testbed.host.machine import Machine
from testbed.host.speed import SpeedGauge
from testbed.scenario.quantity import format_s
from testbed.theory.process_load import BUSY_MESSAGES_PER_S

TIMER_S = 0.003  # a sleep that is timed
CALIBRATION_S = 1.5
PIPELINE_S = 1.0
LINK_RUN_S = 2.5
LOAD_RUN_S = 2.5
LOADS_PER_S = (4_000, 10_000)  # a request costs less at the higher one
HOPS = 4  # of a request in the bare pipeline: there and back over two links
QUIET_OTHERS = 0.15  # cores
NOTED_SLOW = 0.01  # share of the time
Step = Callable[[str], None]


class Calibration(NamedTuple):
    """Of an otherwise idle process.

    Attributes:
        overshoot_s: by how much sleeps were too long; shape (sleeps,).
        slowdown: largest time of a piece of computing over the usual.
        slow_fraction: share of the time at less than a third of the usual speed.
        others: cores in use meanwhile, all of others.
    """

    overshoot_s: np.ndarray[tuple[int], np.dtype[np.float64]]
    slowdown: float
    slow_fraction: float
    others: float


class Capability(NamedTuple):
    """All that was measured.

    Attributes:
        calibration: timers and speed.
        pipeline_per_s: requests a second through a bare pipeline of pyzmq and msgpack, seven processes.
        link: lateness of a link of 20 ms at 1,000 messages a second.
        hop: lateness of a link without delay, which is its transport.
        start_s: from the first fork until all are greeted.
        cost: processor time of a request at 4,000 and at 10,000 a second.
    """

    calibration: Calibration
    pipeline_per_s: float
    link: LinkLateness
    hop: LinkLateness
    start_s: float
    cost: RequestCost

    @property
    def smallest_delay_s(self) -> float:
        """The delay that is kept to within a tenth of it in 99 of 100 messages."""
        return 10.0 * self.link.p99_s

    @property
    def speed(self) -> Speed:
        """What scenarios are held against."""
        overshoot_s = self.calibration.overshoot_s
        return Speed(
            self.cost,
            max(self.link.p99_s, self.hop.p99_s, float(np.quantile(overshoot_s, 0.99))),
            max(self.link.max_s, self.hop.max_s, float(overshoot_s.max())),
        )


def calibrate(seconds: float = CALIBRATION_S) -> Calibration:
    """Sleep and compute in turn."""
    gauge, overshoots_s = SpeedGauge(), []
    clock, until_s = Clock(), time.monotonic() + seconds
    while (began_s := time.monotonic()) < until_s:
        time.sleep(TIMER_S)
        overshoots_s.append(time.monotonic() - began_s - TIMER_S)
        gauge.probe()
    slow = gauge.take()
    return Calibration(np.array(overshoots_s), slow.largest, slow.slow_fraction, clock.load().busy_cores)


def measure(on_step: Step) -> Capability:
    """All of it.

    Args:
        on_step: told what is being measured.

    Raises:
        RunError: a process failed.
        InterruptError: the user stopped it.
    """
    on_step("timers and speed")
    calibration = calibrate()
    on_step("a bare pipeline")
    pipeline_per_s = requests_per_s(PIPELINE_S)
    on_step("a link of 20 ms")
    linked = run(shipped("injection.yaml", duration_s=LINK_RUN_S))
    links = link_lateness(linked.tables["lateness"])
    loaded = []
    for rate in LOADS_PER_S:
        on_step(f"{rate} requests a second")
        changes = [("roots.load.traffic.0.rate", f"{rate} /s")]
        loaded.append(run(shipped("throughput.yaml", changes, LOAD_RUN_S)))
    low_s, high_s = (each.cpu_s / max(each.completed, 1) for each in loaded)
    return Capability(
        calibration,
        pipeline_per_s,
        _of(links, "root.load", "request"),
        _of(links, "a/leaf-1", "request"),
        loaded[0].outcome.start_s,
        RequestCost(LOADS_PER_S[0], low_s, LOADS_PER_S[1], high_s),
    )


def measured_checks(found: Capability, machine: Machine) -> list[Check]:
    """The measurements as lines; warnings where they are not those of a quiet machine."""
    calibration, cost = found.calibration, found.cost
    carried_per_s = cost.rate_per_s(COMFORTABLE * machine.cores.usable)
    p50_s, p99_s = np.quantile(calibration.overshoot_s, [0.5, 0.99])
    return [
        _others(calibration),
        _slow(calibration),
        Check("sleep of 3 ms is too long by", f"p50 {format_s(float(p50_s))}, p99 {format_s(float(p99_s))}"),
        Check("hop without delay", f"p50 {format_s(found.hop.p50_s)}, p99 {format_s(found.hop.p99_s)}"),
        Check(
            "link of 20 ms, 1,000 messages/s, is late by",
            f"p50 {format_s(found.link.p50_s)}, p99 {format_s(found.link.p99_s)}",
        ),
        Check("smallest trustworthy delay", format_s(found.smallest_delay_s)),
        Check(
            "requests, records on",
            f"{carried_per_s:,.0f} /s ({1e6 * cost.low_cpu_s:.0f} us of CPU each at {cost.low_per_s:,.0f} /s, "
            f"{1e6 * cost.high_cpu_s:.0f} at {cost.high_per_s:,.0f})",
        ),
        Check(
            "messages, records on",
            f"{HOPS * carried_per_s:,.0f} /s (a bare pipeline: {HOPS * found.pipeline_per_s:,.0f})",
        ),
        _processes(machine),
        Check("start of seven processes", format_s(found.start_s)),
    ]


def _processes(machine: Machine) -> Check:
    """How many there may be, by what there is least of; none that waits is free of charge."""
    cores = machine.cores.usable
    most = {
        "memory": machine.memory_bytes / PROCESS_BYTES,
        "the processor time of idling": COMFORTABLE * cores / IDLE_CPU,
        "ulimit -u": machine.processes,
    }
    least = min(most, key=lambda name: most[name])
    return Check(
        "processes",
        f"{most[least]:,.0f} by {least}, of which {4 * cores:.0f} may handle {BUSY_MESSAGES_PER_S:,.0f} messages/s",
    )


def _others(calibration: Calibration) -> Check:
    has = f"{calibration.others:.2g} cores in use"
    if calibration.others <= QUIET_OTHERS:
        return Check("other processes", has)
    return Check(
        "other processes",
        has,
        f"{QUIET_OTHERS} or less",
        "warning",
        "end them: what follows was measured beside them",
    )


def _slow(calibration: Calibration) -> Check:
    has = f"slow {calibration.slow_fraction:.1%} of the time, at worst 1/{calibration.slowdown:.0f} of the speed"
    if not calibration.slow_fraction > NOTED_SLOW:
        return Check("speed of the processors", has)
    return Check(
        "speed of the processors",
        has,
        f"{NOTED_SLOW:.0%} or less",
        "warning",
        "the machine under this one slows it down: p99s will be those spells, and runs `invalid`",
    )


def _of(links: list[LinkLateness], source: str, path: str) -> LinkLateness:
    return next(link for link in links if link.source == source and link.path == path)
