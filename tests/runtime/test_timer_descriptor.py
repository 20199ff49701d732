"""The timer that a poller can wait for."""

from __future__ import annotations

import math
import select
import time
from collections.abc import Iterator

import pytest

from testbed.runtime.timer_descriptor import TimerDescriptor


@pytest.fixture
def timer() -> Iterator[TimerDescriptor]:
    descriptor = TimerDescriptor()
    yield descriptor
    descriptor.close()


def is_readable(timer: TimerDescriptor, timeout_s: float) -> bool:
    return bool(select.select([timer.fd], [], [], timeout_s)[0])


def test_it_turns_readable_at_its_instant_and_not_before(timer: TimerDescriptor) -> None:
    """Never early, also by less than the millisecond to which the poller of ZeroMQ rounds."""
    at_s = time.monotonic() + 0.0013

    timer.arm(at_s)

    assert is_readable(timer, 5.0)
    assert time.monotonic() >= at_s


def test_a_past_instant_is_due_at_once(timer: TimerDescriptor) -> None:
    """Also one before the host's clock began, which the kernel would take for `never`."""
    for at_s in (time.monotonic() - 1.0, 0.0, -1.0):
        timer.arm(at_s)

        assert is_readable(timer, 0.0)


def test_arming_anew_ends_what_was_armed(timer: TimerDescriptor) -> None:
    """Neither a later instant nor `never` leaves it readable."""
    for later_s in (time.monotonic() + 100.0, math.inf):
        timer.arm(0.0)
        timer.arm(later_s)

        assert not is_readable(timer, 0.0)


def test_sleeping_lasts_until_the_instant(timer: TimerDescriptor) -> None:
    """And a sleep that would not end is refused."""
    at_s = time.monotonic() + 0.0007

    timer.sleep_until(at_s)

    assert time.monotonic() >= at_s
    with pytest.raises(ValueError, match="does not end"):
        timer.sleep_until(math.inf)
