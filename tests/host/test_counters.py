"""What the kernel counts is read where it is there, and is NaN where it is not."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest

from testbed.errors import RunError
from testbed.host.counters import Counters, Counts
from testbed.host.speed import Slowness
from testbed.host.stretch import Stretches
from testbed.record.tables import LOGGED
from tests.host.layouts import proc, put, write

TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def read(root: Path) -> Counts:
    counters = Counters(root, monotonic=lambda: 10.0, wall=lambda: 1010.0)
    counts = counters.read()
    counters.close()
    return counts


def test_a_machine_that_tells_nothing_is_unknown_in_all_but_its_clocks(tmp_path: Path) -> None:
    """As on macOS, or on an old kernel."""
    counts = read(tmp_path)

    assert counts.at_s == 10.0
    assert counts.wall_s == 1000.0
    assert all(math.isnan(value) for value in counts[1:-1])


def test_the_counts_of_linux_are_in_seconds(tmp_path: Path) -> None:
    counts = read(write(tmp_path, **proc(2_500_000, 3 * TICKS_PER_S, TICKS_PER_S, 12)))

    assert counts.pressure_s == pytest.approx(2.5)
    assert counts.busy_s == pytest.approx(3.0)
    assert counts.stolen_s == pytest.approx(1.0)
    assert counts.swapped_pages == 12.0
    assert math.isnan(counts.throttled_s)  # no control groups here


def test_an_old_kernel_without_steal_or_pressure_tells_the_rest(tmp_path: Path) -> None:
    write(tmp_path, proc__stat=f"cpu  {TICKS_PER_S} 0 0 99 0 0 0\n")

    counts = read(tmp_path)

    assert counts.busy_s == pytest.approx(1.0)
    assert math.isnan(counts.stolen_s)
    assert math.isnan(counts.pressure_s)


def test_throttling_adds_up_over_the_groups_above_in_version_2(tmp_path: Path) -> None:
    write(tmp_path, proc__self__cgroup="0::/a/b\n")
    put(tmp_path, "sys/fs/cgroup/a/b/cpu.stat", "usage_usec 5\nnr_throttled 2\nthrottled_usec 1500000\n")
    put(tmp_path, "sys/fs/cgroup/a/cpu.stat", "nr_throttled 1\nthrottled_usec 500000\n")
    put(tmp_path, "sys/fs/cgroup/cpu.stat", "usage_usec 5\n")  # the root has no quota

    counts = read(tmp_path)

    assert (counts.throttled_s, counts.throttles) == (pytest.approx(2.0), 3.0)


def test_throttling_is_in_nanoseconds_in_version_1(tmp_path: Path) -> None:
    write(tmp_path, proc__self__cgroup="3:cpuset:/\n2:cpu,cpuacct:/job\n0::/\n")
    put(
        tmp_path,
        "sys/fs/cgroup/cpu,cpuacct/job/cpu.stat",
        "nr_periods 9\nnr_throttled 4\nthrottled_time 3000000000\n",
    )

    counts = read(tmp_path)

    assert (counts.throttled_s, counts.throttles) == (pytest.approx(3.0), 4.0)


def test_throttling_in_a_unit_that_nobody_knows_is_said(tmp_path: Path) -> None:
    write(tmp_path, proc__self__cgroup="0::/\n")
    put(tmp_path, "sys/fs/cgroup/cpu.stat", "nr_throttled 4\nthrottled_days 3\n")

    with pytest.raises(RunError, match="unknown unit: nr_throttled, throttled_days"):
        read(tmp_path)


def test_a_reading_of_the_clocks_that_was_interrupted_is_no_step(tmp_path: Path) -> None:
    """The first two readings are 2 s apart; the next ones lie together."""
    monotonic = iter([0.0, 0.0, 2.0, 3.0, 3.0])
    wall = iter([100.0, 103.0])
    counters = Counters(tmp_path, monotonic=lambda: next(monotonic), wall=lambda: next(wall))

    assert counters.read().wall_s == pytest.approx(100.0)
    counters.close()


def test_a_row_tells_what_came_between_two_readings() -> None:
    before = Counts(10.0, 1.0, 4.0, 0.5, 0.0, 2.0, 7.0, 1000.0)
    now = Counts(10.5, 1.3, 4.9, 0.6, 0.25, 5.0, 9.0, 1003.0)
    columns = [column.name for column in LOGGED["host"]]

    row = dict(zip(columns, Stretches(2, before).row(now, 1.5, Slowness(8.0, 0.4), 0.01), strict=True))

    assert row == pytest.approx(
        {
            "at_s": 1.5, "span_s": 0.5, "pressure": 0.6, "busy_cores": 1.8, "steal": 0.1, "throttled_s": 0.25,
            "throttles": 3.0, "swapped_pages": 2.0, "clock_step_s": 3.0, "slowdown": 8.0, "slow_fraction": 0.4,
            "wake_late_s": 0.01,
        }
    )  # fmt: skip


def test_what_is_unknown_stays_unknown_in_a_row() -> None:
    nothing = Counts(0.0, *[math.nan] * 6, 5.0)

    row = Stretches(2, nothing).row(
        nothing._replace(at_s=1.0), 1.0, Slowness(float("nan"), float("nan")), 0.0
    )

    assert math.isnan(row[2])
    assert math.isnan(row[4])
    assert row[8] == 0.0
