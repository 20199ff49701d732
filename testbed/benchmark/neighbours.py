"""Who else uses the machine: a figure taken beside a busy neighbour says nothing of the testbed."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeVar, runtime_checkable

import psutil

from testbed.errors import RunError

QUIET_CORES = 0.15  # more than this in use by others is a busy neighbour
LOOK_S = 1.0  # how long one looks before the start
MOST_TRIES = 3  # of a disturbed measurement
MOST_STEAL = 0.02  # of the time of all cores, taken by the host of this machine

Measured = TypeVar("Measured")


class Load(NamedTuple):
    """What the machine did in a while: cores in use by all, cores' worth of time that its host took away."""

    busy_cores: float
    stolen_cores: float


class Clock:
    """Counts processor time of the machine from its making on."""

    def __init__(self) -> None:
        """Begin now."""
        self._at_s = time.monotonic()
        self._times = psutil.cpu_times()

    def load(self) -> Load:
        """Since the beginning."""
        now, spent_s = psutil.cpu_times(), max(time.monotonic() - self._at_s, 1e-9)
        idle_s = now.idle + now.iowait - self._times.idle - self._times.iowait
        stolen_s = getattr(now, "steal", 0.0) - getattr(self._times, "steal", 0.0)
        cores = psutil.cpu_count() or 1
        return Load(max(0.0, cores - (idle_s + stolen_s) / spent_s), stolen_s / spent_s)


def refuse_busy_host(look_s: float = LOOK_S) -> None:
    """Look for a while whether anything else uses the machine.

    Raises:
        RunError: more than 0.15 cores are in use.
    """
    clock = Clock()
    time.sleep(look_s)
    busy_cores = clock.load().busy_cores
    if busy_cores > QUIET_CORES:
        raise RunError(
            f"the machine is busy: others use {busy_cores:.2f} cores; accepted: up to {QUIET_CORES} "
            "(end them, or measure all the same with --anyway)"
        )


@runtime_checkable
class Watched(Protocol):
    """A measurement that knows what else the machine did meanwhile."""

    def disturbances(self) -> list[str]:
        """In words; empty: nothing."""


def undisturbed(measure: Callable[[], Measured]) -> tuple[Measured, str]:
    """What was measured, and what to say of the host.

    A measurement is repeated, up to three times in all, where time was stolen from the machine meanwhile or it tells itself
    of something that disturbed it. The last one counts, whatever it gave.
    """
    for _ in range(MOST_TRIES):
        clock = Clock()
        measured = measure()
        said = _theft(clock.load())
        if isinstance(measured, Watched):
            said += measured.disturbances()
        if not said:
            return measured, ""
    return measured, f"disturbed in each of {MOST_TRIES} tries, in the last: {', '.join(said)}"


def _theft(load: Load) -> list[str]:
    stolen = load.stolen_cores / (psutil.cpu_count() or 1)
    return [f"the host took {stolen:.0%} of the time"] if stolen > MOST_STEAL else []
