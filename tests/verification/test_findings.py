"""The findings that take a few seconds are met; `testbed verify` has the others."""

from __future__ import annotations

import pytest

from testbed.verification.pictures import herding
from testbed.verification.replicas import Scene, measure
from testbed.verification.work import Order, all_results

FAST = ("V1", "V2", "V3", "V5", "V6", "V7", "V9", "V13", "V15", "V16", "queueing", "incidents")


@pytest.mark.parametrize("target", FAST)
def test_the_testbed_reproduces_this_target(target: str) -> None:
    found = list(all_results(Order(quick=True, only=(target,))))

    assert found
    assert [finding for finding in found if not finding.met] == []


def test_the_herd_is_drawn_with_a_caption() -> None:
    (drawn,) = herding(quick=True)

    assert drawn.stem == "verification_herd"
    assert "equation (11)" in drawn.caption
    assert len(drawn.figure.axes) == 3


def test_a_replica_that_misses_the_deadline_counts_as_the_deadline() -> None:
    """Three times what the cores can do: many requests fail, and the percentiles are cut at 5 s."""
    scene = Scene(servers=2, leaves=2, duration_s=12.0, warmup_s=2.0)

    found = measure(scene, "Random", 3.0)

    assert 0.1 < found.failed_fraction < 1.0
    assert found.ms(100) == 5000.0
    assert (found.sojourn_s[found.failed] == 5.0).all()
    assert found.planned_at_s.min() >= 2.0
