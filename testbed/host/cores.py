"""How many cores a run may use: what the kernel lets this process run on, and what its quota leaves of that."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import NamedTuple

from testbed.host.cgroups import cgroup_files

UNLIMITED = "max"


class Cores(NamedTuple):
    """Cores.

    Attributes:
        allowed: that this process may run on (its affinity).
        quota: cores' worth of time that the control groups grant; infinite without a limit.
    """

    allowed: int
    quota: float

    @property
    def usable(self) -> float:
        """The lesser of both."""
        return min(float(self.allowed), self.quota)


def usable_cores(root: Path = Path("/"), allowed: int | None = None) -> Cores:
    """Of this process; `root` is where /proc and /sys lie, `allowed` another affinity, both for tests."""
    if allowed is None:
        known = hasattr(os, "sched_getaffinity")  # not on macOS
        allowed = len(os.sched_getaffinity(0)) if known else os.cpu_count() or 1
    quotas = [_quota_v2(path) for path in cgroup_files(root, "cpu", "cpu.max")]
    quotas += [_quota_v1(path) for path in cgroup_files(root, "cpu", "cpu.cfs_quota_us")]
    return Cores(allowed, min(quotas, default=math.inf))


def _quota_v2(path: Path) -> float:
    """Of `200000 100000`, or `max 100000`."""
    quota, _, period = path.read_text().strip().partition(" ")
    return math.inf if quota == UNLIMITED else int(quota) / int(period)


def _quota_v1(path: Path) -> float:
    """Of two files; the quota is -1 where there is no limit."""
    quota = int(path.read_text())
    return math.inf if quota < 0 else quota / int((path.parent / "cpu.cfs_period_us").read_text())
