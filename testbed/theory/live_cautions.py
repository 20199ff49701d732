"""Warnings about what the live engine cannot do, or not on this machine; under virtual time they mean nothing."""

from __future__ import annotations

from collections.abc import Iterator

from testbed.scenario.quantity import format_s
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import Topology, oracles_of
from testbed.theory.operating_point import Demand, OperatingPoint
from testbed.theory.process_load import BUSY_MESSAGES_PER_S, process_rates, reports_per_s

MOST_REPORTS_PER_S = 5_000.0  # frames; each is a wake-up and a row (speed.md, measured on 2 cores)
MOST_SPACING = (
    0.5  # of the smallest delay of a link: a message may have to wait for a pass at either end of it
)


def live_cautions(
    scenario: Scenario, topology: Topology, wanted: Demand, optimum: OperatingPoint, cores: int
) -> Iterator[str]:
    """All of one arm; `cores` are those that may be used."""
    for oracle in oracles_of(scenario):
        yield f"live: {oracle} is an oracle, which the virtual engine alone can have: run with --engine virtual"
    yield from _of_reports(scenario, topology)
    yield from _of_rates(scenario, topology, wanted, optimum, cores)
    yield from _of_spacing(scenario, topology)


def _of_reports(scenario: Scenario, topology: Topology) -> Iterator[str]:
    reports = reports_per_s(scenario, topology) / scenario.time_scale
    if reports > MOST_REPORTS_PER_S:
        yield (
            f"live: {reports:.4g} reports a second of wall time, above {MOST_REPORTS_PER_S:.0f}:"
            " each is a wake-up; report less often or through fewer leaves"
        )


def _of_rates(
    scenario: Scenario, topology: Topology, wanted: Demand, optimum: OperatingPoint, cores: int
) -> Iterator[str]:
    """Processes that handle more messages a second than keep a quarter of a core busy."""
    rates = process_rates(scenario, topology, wanted, optimum.cells).values()
    busy = sum(rate > BUSY_MESSAGES_PER_S for rate in rates)
    if busy > cores:
        yield (
            f"live: {busy} processes handle more than {BUSY_MESSAGES_PER_S:.0f} messages a second, on"
            f" {cores} {'core' if cores == 1 else 'cores'}: expect lateness; raise time_scale or lower the rates"
        )


def _of_spacing(scenario: Scenario, topology: Topology) -> Iterator[str]:
    """The spacing is wall time; links without any delay are late by it in any case."""
    delays = [
        link.effect.delay_s * scenario.time_scale for link in topology.links if link.effect.delay_s > 0.0
    ]
    spacing_s = scenario.live.pass_spacing
    if delays and spacing_s > MOST_SPACING * min(delays):
        yield (
            f"live: pass_spacing, {format_s(spacing_s)}, is above half of the smallest delay of a link,"
            f" {format_s(min(delays))} of wall time: messages come later than their links have it"
        )
