"""What a scenario needs, and whether a machine has it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from testbed.fitness.at_start import start_warnings
from testbed.fitness.check import held_against
from testbed.fitness.footprint import Footprint, footprint
from testbed.fitness.machine_checks import machine_checks
from testbed.fitness.request_cost import RequestCost
from testbed.fitness.scenario_checks import Speed, cheap_checks, speed_checks, warnings
from testbed.host.cores import Cores
from testbed.host.machine import Machine, look_at_machine
from tests.analysis.made_arms import made_scenario
from tests.fitness.made_machine import MACHINE
from tests.host.layouts import put, write

NEEDS = footprint(made_scenario())
COST = RequestCost(4_000.0, 140e-6, 10_000.0, 100e-6)
SPEED = Speed(COST, lateness_p99_s=0.0003, longest_s=0.002)


def words_of(machine: Machine, needs: Footprint = NEEDS) -> dict[str, str]:
    return {each.name: each.word for each in [*machine_checks(machine), *cheap_checks(needs, machine)]}


def test_a_scenario_needs_a_process_a_node_and_messages_for_requests_and_reports() -> None:
    """Three roots of 300 requests a second, three cells of 4, 3 and 2 servers, 10 reports a second from each to each."""
    rates = dict(NEEDS.messages_per_s)

    assert NEEDS.processes == 3 + 3 + 9
    assert NEEDS.requests_per_s == pytest.approx(900.0)
    assert rates["root.west"] == pytest.approx(600.0 + 30.0)
    leaves = [rates[f"{cell}/leaf-1"] for cell in ("us", "eu", "asia")]
    assert leaves == pytest.approx([830.0, 630.0, 430.0])
    assert rates["us/server-1"] == pytest.approx(100.0)
    assert NEEDS.most_peers == 3 + 4  # of the leaf of the us: roots and servers
    assert NEEDS.smallest_delay_s == pytest.approx(0.02)
    assert NEEDS.busy == []


def test_needs_are_the_wall_s_and_the_processes() -> None:
    twice = footprint(made_scenario(time_scale=2.0))
    grouped = footprint(made_scenario(processes={"roots": 1, "cells": 1}))

    assert twice.requests_per_s == pytest.approx(450.0)
    assert twice.smallest_delay_s == pytest.approx(0.04)
    assert twice.disk_bytes == pytest.approx(NEEDS.disk_bytes)
    assert grouped.processes == 2
    assert grouped.most_peers == 1
    assert sum(dict(grouped.messages_per_s).values()) == pytest.approx(
        sum(dict(NEEDS.messages_per_s).values())
    )


def test_a_roomy_machine_fits_and_says_nothing() -> None:
    assert set(words_of(MACHINE).values()) == {"fits"}
    assert warnings([*machine_checks(MACHINE), *cheap_checks(NEEDS, MACHINE)]) == []


@pytest.mark.parametrize(
    ("change", "name", "word"),
    [
        ({"cores": Cores(4, 1.5)}, "cores", "warning"),
        ({"clock_source": "hpet"}, "clock source", "warning"),
        ({"clock_source": ""}, "clock source", "unknown"),
        ({"swap_used_bytes": 1 << 30}, "swap", "warning"),
        ({"tells_pressure": False}, "CPU pressure", "unknown"),
        ({"disk_bytes": 1_000_000}, "disk", "does not fit"),
        ({"memory_bytes": 50_000_000}, "memory", "does not fit"),
        ({"memory_bytes": 130_000_000}, "memory", "warning"),
        ({"processes": 10.0}, "processes", "does not fit"),
        ({"descriptors": 40.0}, "open files of a process", "does not fit"),
        ({"temporary": Path("/" + "x" * 90)}, "ipc path", "does not fit"),
    ],
)
def test_what_a_machine_lacks_is_said_with_what_to_try(change: dict[str, Any], name: str, word: str) -> None:
    machine = MACHINE._replace(**change)
    checks = [*machine_checks(machine), *cheap_checks(NEEDS, machine)]

    assert word in [each.word for each in checks if each.name == name]
    assert all(each.advice for each in checks if each.word != "fits")
    said = [text for text in warnings(checks) if text.startswith(f"{name}: ")]
    assert bool(said) == (word != "unknown")


def test_sockets_of_another_transport_have_no_path() -> None:
    assert "ipc path" not in words_of(MACHINE, NEEDS._replace(transport="tcp"))


def test_more_busy_processes_than_cores_are_warned_of() -> None:
    busy = NEEDS._replace(messages_per_s=tuple((f"p{i}", 5_000.0) for i in range(3)))

    assert words_of(MACHINE, busy)["busy processes"] == "warning"
    assert words_of(MACHINE._replace(cores=Cores(3, math.inf)), busy)["busy processes"] == "fits"


@pytest.mark.parametrize(
    ("speed", "name", "word"),
    [
        (SPEED, "requests", "fits"),
        (SPEED._replace(cost=COST._replace(low_cpu_s=0.0018)), "requests", "warning"),
        (SPEED._replace(cost=COST._replace(low_cpu_s=0.003)), "requests", "does not fit"),
        (SPEED._replace(cost=COST._replace(low_cpu_s=0.0015)), "cores in use", "warning"),
        (SPEED._replace(cost=COST._replace(low_cpu_s=0.003)), "cores in use", "does not fit"),
        (SPEED._replace(longest_s=0.06), "longest wait", "warning"),
        (SPEED._replace(lateness_p99_s=0.0015), "lateness p99 of a link", "warning"),
        (SPEED._replace(lateness_p99_s=0.0021), "lateness p99 of a link", "does not fit"),
    ],
)
def test_a_scenario_is_held_against_the_measured_speed(speed: Speed, name: str, word: str) -> None:
    checks = {each.name: each for each in speed_checks(NEEDS, MACHINE, speed)}

    assert checks[name].word == word
    assert bool(checks[name].advice) == (word != "fits")


@pytest.mark.parametrize(
    ("rate", "word"), [(9_000.0, "fits"), (18_000.0, "warning"), (60_000.0, "does not fit")]
)
def test_beyond_the_rates_that_were_measured_only_what_fits_by_no_account_does_not_fit(
    rate: float, word: str
) -> None:
    """By the line of the measurements 1.6, 2.5 and 4.7 cores at 18,000, 30,000 and 60,000 a second; at least 1.5 and 2.2."""
    checks = {
        each.name: each.word
        for each in speed_checks(NEEDS._replace(requests_per_s=rate, reports_per_s=0.0), MACHINE, SPEED)
    }

    assert (checks["cores in use"], checks["requests"]) == (word, word)


def test_memory_is_needed_for_every_request_too() -> None:
    """Of 900 a second: for the plan, and for merging what came of it."""
    longer = footprint(made_scenario(duration="40 s"))

    assert longer.memory_bytes - NEEDS.memory_bytes == pytest.approx(18_000 * 850.0)


def test_a_link_shorter_than_the_lateness_is_warned_of() -> None:
    short = NEEDS._replace(smallest_delay_s=0.0002)

    assert speed_checks(short, MACHINE, SPEED)[-1].word == "warning"


def test_amounts_without_a_limit_fit_whatever_is_needed() -> None:
    assert held_against("x", math.inf, 1e9, "MB", "more").word == "fits"


def test_a_machine_without_proc_and_sys_is_looked_at_all_the_same(tmp_path: Path) -> None:
    machine = look_at_machine(tmp_path / "runs" / "new", root=tmp_path / "nothing")

    assert machine.folder == tmp_path
    assert machine.clock_source == ""
    assert not machine.tells_pressure
    assert math.isinf(machine.cores.quota)
    assert machine.memory_bytes > 0


def test_the_memory_of_a_control_group_is_what_it_leaves(tmp_path: Path) -> None:
    write(tmp_path, proc__self__cgroup="0::/job\n")
    put(tmp_path, "sys/fs/cgroup/job/memory.max", "3000000\n")
    put(tmp_path, "sys/fs/cgroup/job/memory.current", "1000000\n")
    put(tmp_path, "sys/fs/cgroup/memory.max", "max\n")
    put(tmp_path, "sys/fs/cgroup/memory.current", "9000000\n")

    assert look_at_machine(tmp_path, root=tmp_path).memory_bytes == 2_000_000


def test_a_run_warns_once_of_what_all_arms_lack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "testbed.fitness.at_start.look_at_machine", lambda folder: MACHINE._replace(descriptors=40.0)
    )

    said = start_warnings([made_scenario(), made_scenario(policy="greedy")], tmp_path)

    assert said == [
        "open files of a process: 40, 85 needed: raise ulimit -Hn, or group nodes with processes:"
    ]
