"""What processes of a live run ask of the kernel: death with the parent, who is who, waking on time.

Linux only. A pid alone may be given to another process later; with its start time it names one process.
"""

from __future__ import annotations

import ctypes
import os
import platform
import signal
from pathlib import Path

from testbed.errors import RunError

_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
_PR_SET_TIMERSLACK = 29
_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274, "riscv64": 274}  # system calls, which the C library may lack
_SCHED_GETATTR = {"x86_64": 315, "aarch64": 275, "riscv64": 275}
SLICE_NS = 100_000  # the shortest that Linux grants
_START_TIME = 19  # of the fields behind the name in /proc/PID/stat; the 22nd of all

_libc = ctypes.CDLL(None, use_errno=True)


def ask_for_death() -> None:
    """Have the kernel kill this process when its parent dies; a program that it turns into is killed too.

    For the moment between a fork and the start of a program: what is imported there takes seconds on a full machine.
    """
    if _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise RunError(f"prctl(PR_SET_PDEATHSIG): {os.strerror(ctypes.get_errno())}")


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent dies.

    Raises:
        RunError: the parent, which had this pid, has died already, so that the kernel would have no occasion.
    """
    ask_for_death()
    if os.getppid() != parent:
        raise RunError(f"the parent process {parent} is gone")


def set_process_name(name: str) -> None:
    """What `ps` and `top` call this process; the kernel keeps the first 15 bytes."""
    _libc.prctl(_PR_SET_NAME, ctypes.c_char_p(name.encode()), 0, 0, 0)


def end_timer_slack() -> None:
    """Have the kernel wake this process when it asks to be woken, and what it forks; it may else do so 50 us later."""
    _libc.prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)  # nanoseconds


class _SchedAttr(ctypes.Structure):
    """`struct sched_attr` of sched_setattr(2)."""

    _fields_ = (
        ("size", ctypes.c_uint32),
        ("policy", ctypes.c_uint32),
        ("flags", ctypes.c_uint64),
        ("nice", ctypes.c_int32),
        ("priority", ctypes.c_uint32),
        ("runtime_ns", ctypes.c_uint64),
        ("deadline_ns", ctypes.c_uint64),
        ("period_ns", ctypes.c_uint64),
    )


def ask_for_short_turns() -> bool:
    """Have the kernel give this process, and what it forks, the processor in turns as short as it grants.

    It keeps its fair share and no more, but gets it sooner: one that wakes up waits no longer behind another of ours that
    is in the middle of a burst. A process with a share of its own kind (real time, batch) keeps it.

    Returns:
        Whether the kernel grants it: Linux from 6.12 on does.
    """
    machine = platform.machine()
    if machine not in _SCHED_SETATTR or os.sched_getscheduler(0) != os.SCHED_OTHER:
        return False
    told, size = _SchedAttr(), ctypes.sizeof(_SchedAttr)
    if _libc.syscall(_SCHED_GETATTR[machine], 0, ctypes.byref(told), size, 0) != 0:
        return False
    told.size, told.runtime_ns = size, SLICE_NS
    if _libc.syscall(_SCHED_SETATTR[machine], 0, ctypes.byref(told), 0) != 0:
        return False
    _libc.syscall(_SCHED_GETATTR[machine], 0, ctypes.byref(told), size, 0)
    return int(told.runtime_ns) == SLICE_NS


def start_ticks(pid: int) -> int | None:
    """When a process started, in clock ticks since the host did; None when there is no such process, or a zombie."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    state, *fields = text.rpartition(")")[2].split()
    return None if state == "Z" else int(fields[_START_TIME - 1])
