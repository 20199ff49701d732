"""What can be said of the machine itself without measuring."""

from __future__ import annotations

import math

from testbed.fitness.check import Check
from testbed.host.machine import Machine

STEADY_CLOCKS = (
    "tsc",
    "kvm-clock",
    "arch_sys_counter",
    "hyperv_clocksource_tsc_page",
)  # read without a system call
LEAST_DISK_BYTES = 200e6
GB = 1e9


def machine_checks(machine: Machine) -> list[Check]:
    """A line for each thing, in the order of a reader's interest."""
    return [
        _cores(machine),
        _clock(machine),
        _swap(machine),
        Check("memory", f"{machine.memory_bytes / GB:.3g} GB"),
        _pressure(machine),
        Check("open files of a process", _count(machine.descriptors)),
        Check("processes of this user", _count(machine.processes)),
        _disk(machine),
    ]


def _cores(machine: Machine) -> Check:
    cores = machine.cores
    said = f"{cores.usable:g} usable ({cores.allowed} allowed, "
    if math.isinf(cores.quota):
        return Check("cores", f"{said}no quota)")
    word = "warning" if cores.quota < cores.allowed else "fits"
    advice = (
        "a quota stops all processes for the rest of its period, up to 100 ms: raise it, or allow fewer cores"
    )
    return Check("cores", f"{said}quota {cores.quota:g})", "", word, advice if word == "warning" else "")


def _clock(machine: Machine) -> Check:
    if not machine.clock_source:
        return Check("clock source", "", "", "unknown", "the system does not tell")
    if machine.clock_source in STEADY_CLOCKS:
        return Check("clock source", machine.clock_source)
    return Check(
        "clock source",
        machine.clock_source,
        STEADY_CLOCKS[0],
        "warning",
        "each look at the clock is a slow call: choose another source, if the machine has one",
    )


def _swap(machine: Machine) -> Check:
    used = f"{machine.swap_used_bytes / GB:.3g} GB in use"
    if not machine.swap_used_bytes:
        return Check("swap", used)
    return Check(
        "swap", used, "", "warning", "a process whose pages were swapped out stalls for many milliseconds"
    )


def _pressure(machine: Machine) -> Check:
    if machine.tells_pressure:
        return Check("CPU pressure", "told by the kernel")
    return Check(
        "CPU pressure",
        "not told",
        "",
        "unknown",
        "no /proc/pressure: a verdict goes by lateness alone, which hides busy neighbours where delays are long",
    )


def _disk(machine: Machine) -> Check:
    has = f"{machine.disk_bytes / GB:.3g} GB free in {machine.folder}"
    if machine.disk_bytes >= LEAST_DISK_BYTES:
        return Check("disk", has)
    return Check(
        "disk", has, f"{LEAST_DISK_BYTES / GB:.1g} GB", "does not fit", "records need room: free some"
    )


def _count(limit: float) -> str:
    return "no limit" if math.isinf(limit) else f"{limit:,.0f}"
