"""The trials of the verdict, one alone and one beside hogs, in short."""

from __future__ import annotations

import psutil
import pytest

from testbed.benchmark.verdict_trials import trial_table, trials

pytestmark = pytest.mark.live


def test_a_run_beside_hogs_is_not_valid_and_says_why() -> None:
    """What a run alone is depends on the machine that the test runs on."""
    before = {child.pid for child in psutil.Process().children(recursive=True)}

    *alone, beside = trials(1, seconds=2.0, beside=6)

    assert [each.hogs for each in alone] == [0] * len(alone)
    assert beside.hogs == 6
    assert len(alone) == 1 or all(each.disturbed_by for each in alone[:-1])
    assert beside.verdict != "valid"
    assert beside.is_named
    assert beside.lateness_p99_s is not None
    assert trial_table([*alone, beside]).row_count == len(alone) + 1
    assert {child.pid for child in psutil.Process().children(recursive=True)} <= before
