"""The findings that take a few seconds are met; `testbed verify` has the others."""

from __future__ import annotations

import pytest

from testbed.verification.catalogue import all_findings, all_illustrations

FAST = ("V1", "V2", "V3", "V5", "V6", "V7", "V9", "V16", "queueing")


@pytest.mark.parametrize("target", FAST)
def test_the_testbed_reproduces_this_target(target: str) -> None:
    found = list(all_findings(quick=True, only=(target,)))

    assert found
    assert [finding for finding in found if not finding.met] == []


def test_the_herd_is_drawn_with_a_caption() -> None:
    (drawn,) = all_illustrations(quick=True, only=("V5",))

    assert drawn.stem == "verification_herd"
    assert "equation (11)" in drawn.caption
    assert len(drawn.figure.axes) == 3
