"""The bare pipeline carries messages there and back, and leaves no process behind."""

from __future__ import annotations

import psutil
import pytest

from testbed.benchmark.pipeline import requests_per_s
from testbed.benchmark.virtual_rate import rates


@pytest.mark.live
def test_messages_go_round_and_no_process_is_left():
    before = {each.pid for each in psutil.Process().children(recursive=True)}

    assert requests_per_s(0.2) > 0
    assert {each.pid for each in psutil.Process().children(recursive=True)} <= before


def test_the_virtual_engine_and_the_bare_chain_are_both_measured():
    ours, theirs, ratio = rates(True)

    assert ratio.value == pytest.approx(ours.value / theirs.value)
    assert min(ours.value, theirs.value) > 0
