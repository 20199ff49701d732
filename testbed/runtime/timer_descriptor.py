"""A timer that a poller can wait for: precise to microseconds, where `zmq_poll` counts whole milliseconds.

Linux only. Python has `os.timerfd_create` from 3.13 on, so the two calls go through ctypes here.
"""

from __future__ import annotations

import ctypes
import math
import os

_CLOCK_MONOTONIC = 1
_TFD_CLOEXEC = os.O_CLOEXEC
_TFD_TIMER_ABSTIME = 1
_NS = 1_000_000_000


class _TimeSpec(ctypes.Structure):
    _fields_ = (("tv_sec", ctypes.c_long), ("tv_nsec", ctypes.c_long))


class _TimerSpec(ctypes.Structure):
    _fields_ = (("it_interval", _TimeSpec), ("it_value", _TimeSpec))


_libc = ctypes.CDLL(None, use_errno=True)
_create = _libc.timerfd_create
_create.argtypes = (ctypes.c_int, ctypes.c_int)
_create.restype = ctypes.c_int
_set_time = _libc.timerfd_settime
# without argtypes: the arguments below are made once, as what C takes, which halves the price of a call
_set_time.restype = ctypes.c_int


class TimerDescriptor:
    """A descriptor that turns readable at an instant of `time.monotonic`, and stays so until it is armed anew."""

    __slots__ = ("_arguments", "_spec", "_value", "armed_at_s", "fd")

    def __init__(self) -> None:
        """Open it, disarmed.

        Raises:
            OSError: no descriptor is left.
        """
        self.fd: int = _create(_CLOCK_MONOTONIC, _TFD_CLOEXEC)
        if self.fd < 0:
            raise OSError(ctypes.get_errno(), f"timerfd_create: {os.strerror(ctypes.get_errno())}")
        self._spec = _TimerSpec()
        self._value = self._spec.it_value
        flags, nothing = ctypes.c_int(_TFD_TIMER_ABSTIME), ctypes.c_void_p(None)
        self._arguments = (ctypes.c_int(self.fd), flags, ctypes.byref(self._spec), nothing)
        self.armed_at_s = math.inf

    def arm(self, at_s: float) -> None:
        """Turn readable at this instant (at once, if it is past); `math.inf` never. Ends what was armed before.

        Rounded up to the next nanosecond: a timer that fired early would wake a loop that finds nothing due.

        Raises:
            OSError: the kernel refused the instant.
        """
        ticks = 0 if at_s == math.inf else max(1, math.ceil(at_s * _NS))  # 0 disarms
        value = self._value
        value.tv_sec = seconds = ticks // _NS
        value.tv_nsec = ticks - seconds * _NS
        if _set_time(*self._arguments) != 0:
            raise OSError(ctypes.get_errno(), f"timerfd_settime: {os.strerror(ctypes.get_errno())}")
        self.armed_at_s = at_s

    def sleep_until(self, at_s: float) -> None:
        """Arm and wait for this instant, deaf to all else; finer than `time.sleep`, which adds the timer slack.

        Raises:
            ValueError: the instant never comes.
        """
        if at_s == math.inf:
            raise ValueError("a sleep until never does not end")
        self.arm(at_s)
        os.read(self.fd, 8)
        self.armed_at_s = math.inf

    def close(self) -> None:
        """Give the descriptor back; harmless when repeated."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
