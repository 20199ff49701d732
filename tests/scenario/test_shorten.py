"""A shorter run has what is pinned to its course at the same share of it."""

from __future__ import annotations

import pytest

from testbed.scenario.shorten import with_duration
from tests.analysis.made_arms import made_scenario


def test_windows_and_warm_up_keep_their_share_of_a_shorter_run() -> None:
    scenario = made_scenario(windows={"late": {"from": "10 s", "to": "18 s"}})

    short = with_duration(scenario, 2.0)

    assert short.warmup == pytest.approx(0.5)
    assert (short.windows["late"].from_, short.windows["late"].to) == pytest.approx((1.0, 1.8))
