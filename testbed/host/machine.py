"""What this machine has, as far as it can be read without measuring: cores, clock, swap, limits, room."""

from __future__ import annotations

import math
import resource
import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

import psutil

from testbed.host.cgroups import cgroup_files
from testbed.host.cores import Cores, usable_cores

CLOCK = "sys/devices/system/clocksource/clocksource0/current_clocksource"


class Machine(NamedTuple):
    """What there is.

    Attributes:
        cores: that may be used.
        clock_source: of the kernel; empty: unknown.
        swap_used_bytes: now.
        memory_bytes: that may still be taken: free, or what the control groups leave of it.
        descriptors: open files that a process may have; infinite without a limit.
        processes: that this user may have; infinite without a limit.
        disk_bytes: free where records would go.
        folder: where that is.
        temporary: folder of temporary files, where sockets go whose paths would be too long.
        tells_pressure: the kernel tells how long tasks waited for a core.
    """

    cores: Cores
    clock_source: str
    swap_used_bytes: int
    memory_bytes: int
    descriptors: float
    processes: float
    disk_bytes: int
    folder: Path
    temporary: Path
    tells_pressure: bool


def look_at_machine(folder: Path, root: Path = Path("/")) -> Machine:
    """This machine, for records below `folder`, which need not exist; `root` is where /proc and /sys lie."""
    place = next(each for each in (folder.absolute(), *folder.absolute().parents) if each.is_dir())
    return Machine(
        usable_cores(root),
        _word(root / CLOCK),
        psutil.swap_memory().used,
        min(psutil.virtual_memory().available, _group_memory_bytes(root)),
        _limit("RLIMIT_NOFILE"),
        _limit("RLIMIT_NPROC"),
        shutil.disk_usage(place).free,
        place,
        Path(tempfile.gettempdir()),
        (root / "proc/pressure/cpu").is_file(),
    )


def _word(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _limit(name: str) -> float:
    """The hard limit: that of open files is raised to it."""
    _, most = resource.getrlimit(getattr(resource, name))
    return math.inf if most == resource.RLIM_INFINITY else float(most)


def _group_memory_bytes(root: Path) -> int:
    """The least that a control group above us leaves; without limits, all that a number holds."""
    left = [
        _left(path, path.parent / "memory.current") for path in cgroup_files(root, "memory", "memory.max")
    ]
    left += [
        _left(path, path.parent / "memory.usage_in_bytes")
        for path in cgroup_files(root, "memory", "memory.limit_in_bytes")
    ]
    return min(left, default=2**63 - 1)


def _left(limit: Path, used: Path) -> int:
    most, now = _word(limit), _word(used)
    return max(0, int(most) - int(now)) if most.isdigit() and now.isdigit() else 2**63 - 1
