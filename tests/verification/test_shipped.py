"""A shipped scenario whose expectations do not hold over the seeds is told with the numbers."""

from __future__ import annotations

import pytest

from testbed.scenario.expectation import parse_expectation
from testbed.verification import shipped
from testbed.verification.full_length import FullRun
from tests.verification.test_incidents import TEXT

TRACE = "traces: {conv: {path: nowhere.csv, format: azure}}"


def test_expectations_that_do_not_hold_are_told_with_their_numbers(tmp_path, monkeypatch) -> None:
    (tmp_path / "made.yaml").write_text(TEXT)
    monkeypatch.setattr(shipped, "FOLDER", tmp_path)

    (found,) = shipped.as_expected(quick=False)

    assert not found.met
    assert (found.target, found.source, found.expected) == ("shipped", "scenarios/made.yaml", "all 2")
    assert found.measured == (
        "1 of 2; cure: cells.us.servers.server-1.share <= 0.3: "
        "not met, 0.5047 against 0.3 in the mean, 0 of 5 seeds"
    )


@pytest.mark.parametrize(
    ("shares", "met"), [((0.5, 0.5, 0.5, 0.5, 0.3), True), ((0.7, 0.7, 0.7, 0.3, 0.3), False)]
)
def test_an_expectation_may_miss_in_one_seed_of_five(
    shares: tuple[float, ...], met: bool, tmp_path, monkeypatch
) -> None:
    (tmp_path / "made.yaml").write_text(TEXT)
    expected = parse_expectation("fault", "cells.us.share >= 0.4")
    monkeypatch.setattr(shipped, "FOLDER", tmp_path)
    monkeypatch.setattr(
        shipped,
        "run_at_full_length",
        lambda path, seed: FullRun(
            (expected,), {"arms": {"fault": {"cells": {"us": {"share": shares[seed - 1]}}}}}
        ),
    )

    (found,) = shipped.as_expected(quick=False)

    assert found.met is met


def test_a_scenario_without_its_trace_has_no_row(tmp_path, monkeypatch) -> None:
    (tmp_path / "made.yaml").write_text(TEXT.replace("arms:", f"{TRACE}\narms:"))
    monkeypatch.setattr(shipped, "FOLDER", tmp_path)

    assert list(shipped.as_expected(quick=False)) == []
