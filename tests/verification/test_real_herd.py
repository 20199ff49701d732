"""Whole runs of two cells against the theory, in virtual time; `testbed verify --live` does it with real processes."""

from __future__ import annotations

from testbed.verification.real_herd import on


def test_greedy_herds_and_eager_flow_keep_the_periods_of_theory_and_calm_flow_has_none():
    """Shortened: one delay, half the time; the tolerances are those of the full form."""
    findings = list(on("virtual")(True))

    assert [each.engine for each in findings] == ["virtual"] * 3
    assert [each.what for each in findings if not each.met] == []
