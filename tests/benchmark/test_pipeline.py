"""The bare pipeline carries messages there and back, as large as ours, and leaves no process behind."""

from __future__ import annotations

import threading
import time

import msgpack
import psutil
import pytest

from testbed.benchmark import pipeline
from testbed.benchmark.pipeline import REPLY, REQUEST, requests_per_s
from testbed.benchmark.virtual_rate import rates
from testbed.errors import RunError
from testbed.roles.messages import Reply, Request
from testbed.runtime.wire import unpack_frame


@pytest.mark.parametrize(("words", "kind"), [(REQUEST, Request), (REPLY, Reply)])
def test_what_goes_through_it_is_a_frame_of_the_live_engine_with_one_message(words, kind):
    ((_, releases, messages),) = unpack_frame(msgpack.packb(words))

    assert len(releases) == 1
    assert [type(each) for each in messages] == [kind]


@pytest.mark.live
def test_messages_go_round_and_no_process_is_left():
    before = {each.pid for each in psutil.Process().children(recursive=True)}

    assert requests_per_s(0.2) > 0
    assert {each.pid for each in psutil.Process().children(recursive=True)} <= before


@pytest.mark.live
def test_a_process_that_dies_is_told_by_name_at_once():
    before = {each.pid for each in psutil.Process().children(recursive=True)}
    killer = threading.Thread(target=_kill, args=("leaf-2",))
    killer.start()

    with pytest.raises(RunError, match="the bare pipeline failed: leaf-2 ended with status -9"):
        requests_per_s(60.0)

    killer.join()
    assert {each.pid for each in psutil.Process().children(recursive=True)} <= before


@pytest.mark.live
def test_a_pipeline_that_does_not_end_is_an_error(monkeypatch):
    monkeypatch.setattr(pipeline, "WAIT_S", -59.9)

    with pytest.raises(RunError, match="the bare pipeline failed: it did not end"):
        requests_per_s(60.0)


def _kill(name: str) -> None:
    """The process of this name, once it is there."""
    until_s = time.monotonic() + 30.0
    while time.monotonic() < until_s:
        for each in psutil.Process().children():
            if "testbed.benchmark.pipeline" in (words := each.cmdline()) and words[-1] == name:
                each.kill()
                return
        time.sleep(0.01)


def test_the_virtual_engine_and_the_bare_chain_are_both_measured():
    ours, theirs, ratio = rates(True)

    assert ratio.value == pytest.approx(ours.value / theirs.value)
    assert min(ours.value, theirs.value) > 0
