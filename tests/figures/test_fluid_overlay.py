"""The fluid over the measured: where it applies, dashed; where it does not, nothing."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

from testbed.analysis.summary import summarize_arm, summarize_run
from testbed.figures.drawing import DrawnArm
from testbed.figures.fluid_course import PERIODS
from testbed.figures.in_flight import draw_in_flight
from testbed.figures.shares import draw_shares
from tests.analysis.made_arms import made_outcome, made_scenario, made_tables, steady, swinging

FAULT = {"at": "12 s", "for": "4 s", "cell": "eu", "set": {"speed": 0.4}}


def drawn(policy: str, **changes) -> DrawnArm:
    scenario = made_scenario(policy, **changes)
    split = swinging(0.8, 1.8) if policy == "greedy" else steady(0.44, 0.34, 0.22)
    tables = made_tables(scenario, split, updates=policy == "flow")
    run = summarize_run("herding", {policy: summarize_arm(scenario, tables, made_outcome())})
    return DrawnArm(policy, scenario, tables, run["arms"][policy])


def dashed_lines(figure: Figure, panel: int = 0) -> int:
    return sum(line.is_dashed() for line in figure.axes[panel].get_lines())


def test_flow_is_overlaid_with_its_fluid_in_flight_and_shares():
    arm = drawn("flow")
    cells = len(arm.scenario.cells)

    assert dashed_lines(draw_in_flight([arm])) == cells
    assert dashed_lines(draw_shares([arm])) == cells
    theory = arm.fluid
    assert theory is not None
    assert theory.shares is not None
    assert theory.shares.sum(axis=1) == pytest.approx(np.ones(len(theory.at_s)))


def test_a_herd_is_overlaid_for_three_periods_and_its_shares_not_at_all():
    arm = drawn("greedy")

    theory = arm.fluid

    assert theory is not None
    assert theory.shares is None
    assert theory.at_s[-1] < arm.scenario.duration / 2
    assert PERIODS == 3
    assert dashed_lines(draw_shares([arm])) == 0


def test_a_run_with_faults_has_no_fluid_and_no_entry_for_it_in_the_legend():
    figure = draw_in_flight([drawn("flow", faults=[FAULT])])

    assert dashed_lines(figure) == 0
    assert not any("fluid" in text.get_text() for legend in figure.legends for text in legend.get_texts())
