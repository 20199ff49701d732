"""Cores by affinity and quota; the speed of the processors by a piece of computing, on a clock of our own."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

import pytest

from testbed.host.cores import usable_cores
from testbed.host.speed import LEAST_PROBES, SpeedGauge
from tests.host.layouts import put, write


def test_without_control_groups_the_affinity_decides(tmp_path: Path) -> None:
    cores = usable_cores(tmp_path, allowed=6)

    assert cores == (6, math.inf)
    assert cores.usable == 6.0


def test_the_least_quota_on_the_way_up_decides_in_version_2(tmp_path: Path) -> None:
    write(tmp_path, proc__self__cgroup="0::/a/b\n")
    put(tmp_path, "sys/fs/cgroup/a/b/cpu.max", "max 100000\n")
    put(tmp_path, "sys/fs/cgroup/a/cpu.max", "150000 100000\n")

    assert usable_cores(tmp_path, allowed=6).usable == pytest.approx(1.5)


def test_the_quota_of_version_1_has_its_period_in_a_file_of_its_own(tmp_path: Path) -> None:
    write(tmp_path, proc__self__cgroup="4:cpu,cpuacct:/job\n")
    put(tmp_path, "sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "400000\n")
    put(tmp_path, "sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n")
    put(tmp_path, "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n")

    assert usable_cores(tmp_path, allowed=2).usable == 2.0
    assert usable_cores(tmp_path, allowed=6).usable == pytest.approx(4.0)


def test_a_group_whose_path_is_not_here_is_looked_for_at_the_mount(tmp_path: Path) -> None:
    """As in a container, whose path may be that of its host."""
    write(tmp_path, proc__self__cgroup="0::/docker/1234\n")
    put(tmp_path, "sys/fs/cgroup/cpu.max", "50000 100000\n")

    assert usable_cores(tmp_path, allowed=2).usable == pytest.approx(0.5)


def gauge(taken_us: Iterable[float]) -> SpeedGauge:
    """A gauge whose pieces take these times."""
    instants, now = [], 0
    for taken in taken_us:
        instants += [now, now + int(1000 * taken)]
        now += 30_000_000
    clock = iter(instants)
    return SpeedGauge(clock_ns=lambda: next(clock), work=lambda: None)


def test_a_spell_at_a_tenth_of_the_speed_is_told_with_its_share() -> None:
    speed = gauge([10.0] * 20 + [10.0, 100.0, 90.0, 10.0])
    for _ in range(20):
        speed.probe()
    assert speed.take() == (pytest.approx(1.0), 0.0)
    for _ in range(4):
        speed.probe()

    assert speed.take() == (pytest.approx(10.0), pytest.approx(0.5))


def test_a_spell_that_lasts_does_not_become_usual() -> None:
    speed = gauge([10.0] * 20 + [50.0] * 400)
    for _ in range(20):
        speed.probe()
    speed.take()
    for _ in range(400):
        speed.probe()
    speed.take()

    assert speed.take() == pytest.approx((math.nan, math.nan), nan_ok=True)  # no probe since
    assert gauge_after(speed) == pytest.approx(5.0)


def gauge_after(speed: SpeedGauge) -> float:
    """What one more slow piece is told as."""
    taken = iter([0, 50_000])
    speed._clock_ns = lambda: next(taken)
    speed.probe()
    return speed.take().largest


def test_nothing_is_usual_before_there_are_some_probes() -> None:
    speed = gauge([10.0] * LEAST_PROBES)
    for _ in range(LEAST_PROBES - 1):
        speed.probe()
    assert math.isnan(speed.take().largest)
    speed.probe()

    assert speed.take().largest == pytest.approx(1.0)
