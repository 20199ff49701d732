"""The spread of figures over runs of one plan, and what it makes of the differences between arms."""

from __future__ import annotations

import io
import math
from typing import Any

import pytest
from rich.console import Console

from testbed.analysis.compare import main_figures
from testbed.analysis.spread import spreads, unequal_keys
from testbed.console.spread_table import print_spread


def run_of(wall_s: float = 1.0, **p99_s: float) -> dict[str, Any]:
    """The summary of a run, by the p99 of each arm."""
    return {
        "arms": {
            arm: {"sojourn_s": {"p99": each}, "cells": {}, "wall_s": wall_s, "start_s": wall_s}
            for arm, each in p99_s.items()
        }
    }


def p99_of(*runs: dict[str, Any]) -> dict[str, Any]:
    return {each.arm: each for each in spreads(runs) if each.figure == "sojourn_s.p99"}


def test_the_spread_is_the_largest_less_the_least_of_the_runs() -> None:
    found = p99_of(run_of(flow=0.20), run_of(flow=0.23), run_of(flow=0.21))

    assert found["flow"].spread == pytest.approx(0.03)
    assert found["flow"].relative == pytest.approx(0.03 * 3 / 0.64)
    assert math.isnan(found["flow"].difference)
    assert found["flow"].word == ""


@pytest.mark.parametrize(
    ("other", "word"),
    [((0.22, 0.19, 0.20), "noise"), ((0.30, 0.31, 0.32), "differs"), ((0.20, 0.22, 0.21), "equal")],
)
def test_a_difference_between_arms_within_their_spread_is_noise(other: tuple[float, ...], word: str) -> None:
    """The first arm has 0.20, 0.21 and 0.22: the same numbers in another order are equal in the mean."""
    runs = [run_of(even=a, flow=b) for a, b in zip((0.20, 0.21, 0.22), other, strict=True)]

    assert p99_of(*runs)["flow"].word == word


def test_more_spread_never_turns_noise_into_a_difference() -> None:
    words = [
        p99_of(*(run_of(even=0.2, flow=0.25 + each) for each in (-wide, 0.0, wide)))["flow"].word
        for wide in (0.0, 0.001, 0.01, 0.05, 0.2)
    ]

    assert words[0] == "differs"
    assert words[-1] == "noise"
    assert words == sorted(words)


def test_a_single_run_has_no_spread() -> None:
    found = p99_of(run_of(even=0.2, flow=0.3))

    assert all(math.isnan(each.spread) for each in found.values())
    assert {each.word for each in found.values()} == {""}


def test_figures_that_no_run_has_are_left_out_and_all_others_are_told() -> None:
    arm = {"sojourn_s": {"p50": 1.0, "p99": 2.0}, "cells": {"us": {"share": 0.5}}}
    runs = [{"arms": {"flow": arm}}] * 2

    assert [each.figure for each in spreads(runs)] == ["sojourn_s.p50", "sojourn_s.p99", "cells.us.share"]
    assert {each.figure for each in spreads(runs)} < set(main_figures(arm))
    assert {each.spread for each in spreads(runs)} == {0.0}


def test_runs_of_one_plan_may_differ_live_but_not_under_virtual_time() -> None:
    """Not even in a figure that no table shows; what they took by the clock is no figure."""
    same, other = run_of(1.0, flow=0.2), run_of(9.0, flow=0.2)
    other["arms"]["flow"]["laws"] = {"checked": 9}
    page = io.StringIO()
    said = Console(file=page, width=200)

    assert unequal_keys([same, run_of(9.0, flow=0.2)]) == []
    assert [each.key for each in unequal_keys([same, same, other])] == ["flow.laws"]
    assert print_spread(said, [same, run_of(9.0, flow=0.2)], "virtual")
    assert print_spread(said, [same, other], "live")
    assert not print_spread(said, [same, other], "virtual")
    assert "flow.laws is (not given) and then {'checked': 9}" in page.getvalue()
