"""Presses of Ctrl-C are counted, and none is lost between two blocks that count."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from testbed.runtime.interrupts import counted_interrupts


def press() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_presses_are_counted_and_raise_beyond_the_most() -> None:
    with counted_interrupts(most=2) as pressed:
        press()
        press()
        assert pressed.count == 2
        with pytest.raises(KeyboardInterrupt):
            press()


def test_a_block_within_another_counts_on_with_its_own_most() -> None:
    with counted_interrupts(most=1) as outer:
        press()
        with counted_interrupts() as inner:
            assert inner.count == 1
            press()
            press()
        assert outer.count == 3
        with pytest.raises(KeyboardInterrupt):
            press()


def test_between_two_blocks_within_a_third_no_press_is_lost() -> None:
    with counted_interrupts(most=1) as whole:
        with counted_interrupts(most=1):
            pass
        press()
        with counted_interrupts(most=1) as second:
            assert second.count == 1
    assert whole.count == 1


def test_after_the_outermost_block_ctrl_c_is_what_it_was() -> None:
    before = signal.getsignal(signal.SIGINT)  # ignored, where a shell has us in the background

    with counted_interrupts(), counted_interrupts():
        assert signal.getsignal(signal.SIGINT) != before

    assert signal.getsignal(signal.SIGINT) == before


def test_another_thread_counts_nothing_and_leaves_the_signal_alone() -> None:
    before = signal.getsignal(signal.SIGINT)
    seen: list[object] = []

    def elsewhere() -> None:
        with counted_interrupts() as pressed:
            seen.extend((pressed.count, signal.getsignal(signal.SIGINT)))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()

    assert seen == [0, before]
