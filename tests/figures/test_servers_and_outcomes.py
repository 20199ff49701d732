"""The figures of an incident: requests at each server, and what became of the requests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from matplotlib.patches import StepPatch
from PIL import Image

from testbed.analysis.records import Window
from testbed.analysis.summary import summarize_arm
from testbed.figures.colours import CELL_COLOURS, OUTCOME_COLOURS
from testbed.figures.drawing import DrawnArm, draw_all
from testbed.figures.files import save_figures
from testbed.figures.outcomes import draw_outcomes, has_outcomes_to_tell
from testbed.figures.page import faults_of, zoom
from testbed.figures.servers import draw_servers, requests_at_servers, server_colours
from testbed.roles.messages import OUTCOMES
from tests.analysis.made_arms import made_faults, made_scenario
from tests.laws.virtual_run import run_words

WORDS: dict[str, Any] = {
    "name": "failing",
    "duration": "4 s",
    "drain": "2 s",
    "cells": {"us": {"servers": 3, "service": {"slots": 4, "fixed": "20 ms"}}},
    "roots": {"a": {"traffic": [{"class": "c", "rate": "60 /s", "policy": "even"}]}},
    "classes": {"c": {"retries": {"attempts": 2}}},
    "policies": {"even": {"kind": "random"}},
    "faults": [{"at": "2 s", "server": "us/server-1", "set": {"errors": "100 %"}}],
}


@pytest.fixture(scope="module")
def arm(tmp_path_factory: pytest.TempPathFactory) -> DrawnArm:
    """One of three servers fails from the middle of the run on; what failed is sent once more."""

    run = run_words(tmp_path_factory.mktemp("run") / "main", WORDS)
    return DrawnArm("fault", run.scenario, run.tables, summarize_arm(run.scenario, run.tables, run.outcome))


def test_each_server_has_a_line_of_its_own_colour(arm):
    panel = draw_servers([arm]).axes[0]

    colours = [line.get_color() for line in panel.lines if line.get_label().startswith("_child")]
    assert set(CELL_COLOURS[:3]) <= set(colours)


def test_servers_of_large_cells_take_the_colour_of_their_cell():
    scenario = made_scenario()  # nine servers in three cells

    colours = server_colours(DrawnArm("flow", scenario, {}, {}))

    assert colours["us/server-1"] == colours["us/server-4"] != colours["eu/server-1"]


def test_the_line_of_a_server_is_what_was_sampled_there(arm):
    samples = arm.tables["cells"]
    mine = samples["server"] == "us/server-2"

    at_s, there = requests_at_servers(arm, Window(0.0, 4.0))["us/server-2"]

    inside = mine & (samples["at_s"] >= 0.0) & (samples["at_s"] < 4.0)
    assert at_s.tolist() == samples["at_s"][inside].tolist()
    assert there.tolist() == (samples["queued"] + samples["running"])[inside].tolist()


def test_the_areas_of_outcomes_hold_all_requests(arm):
    """The top of the stack, times the width of its bins, is every request that was planned."""
    upper, lower = draw_outcomes([arm]).axes

    failed = next(
        each for each in upper.patches if each.get_facecolor()[:3] == _rgb(OUTCOME_COLOURS["failed"])
    )
    assert failed.get_data().values.max() > 0
    top = upper.patches[len(OUTCOMES) - 1].get_data()
    assert (top.values * np.diff(top.edges)).sum() == pytest.approx(arm.summary["requests"]["planned"])
    given = lower.patches[0].get_data()
    in_all = (given.values * np.diff(given.edges)).sum()
    assert in_all == pytest.approx(arm.summary["requests"]["attempts"], abs=5)  # some in the drain
    assert given.values[45:].mean() > 1.2 * given.values[:45].mean()


def test_the_areas_of_outcomes_do_not_hide_when_the_fault_was(arm):
    """A strip above the highest area has the time of the fault, and a line on them its onset."""
    upper, _ = draw_outcomes([arm]).axes

    areas = [each for each in upper.patches if isinstance(each, StepPatch)]
    strip = next(each for each in upper.patches if not isinstance(each, StepPatch) and each.get_y() > 0)
    assert (strip.get_x(), strip.get_width(), strip.get_y() + strip.get_height()) == (2.0, 2.0, 1.0)
    highest = max(each.get_data().values.max() for each in areas)
    assert highest < strip.get_y() * upper.get_ylim()[1]
    (onset,) = upper.lines
    assert onset.get_xdata() == [2.0, 2.0]
    assert onset.get_zorder() > max(each.get_zorder() for each in areas)


def test_outcomes_are_drawn_only_where_there_is_something_to_tell(arm):
    requests = arm.tables["requests"]
    good = {
        **requests,
        "outcome": np.full_like(requests["outcome"], "completed"),
        "attempts": 1 + 0 * requests["attempts"],
    }
    quiet = replace(arm, tables={**arm.tables, "requests": good, "attempts": {}})

    assert has_outcomes_to_tell(arm)
    assert not has_outcomes_to_tell(quiet)
    assert list(draw_all([arm], only=("outcomes", "servers"))) == ["servers", "outcomes"]


def test_many_arms_fill_several_rows_of_outcomes(arm):
    six = [replace(arm, name=f"arm {i}") for i in range(6)]

    assert len(draw_outcomes(six).axes) == 12


def test_a_part_of_the_time_can_be_shown(arm):
    figure = draw_outcomes([arm, arm])

    zoom(figure, 1.0, 3.0)

    assert {axes.get_xlim() for axes in figure.axes} == {(1.0, 3.0)}


def test_small_files_keep_the_colours(arm, tmp_path):
    """So few colours that the file is small, but those of the lines among them."""
    whole = save_figures({"servers": draw_servers([arm])}, tmp_path / "whole")[0]

    small = save_figures({"servers": draw_servers([arm])}, tmp_path / "small", small=True)[0]

    assert small.stat().st_size < 0.5 * whole.stat().st_size
    pixels = np.asarray(Image.open(small).convert("RGB")).astype(int)
    for colour in CELL_COLOURS[:3]:
        wanted = [round(255 * part) for part in _rgb(colour)]
        assert np.abs(pixels - wanted).max(axis=2).min() <= 3


def test_faults_that_come_again_are_told_once():
    line = {"at": "3 s", "for": "1 ms", "every": "4 s", "times": 3, "cell": "us", "set": {"speed": 0.5}}
    scenario = made_scenario(faults=[line])

    arm = DrawnArm("flow", scenario, {"faults": made_faults(scenario)}, {})

    assert faults_of([arm]) == ["cell us: speed 0.5 at 3 s for 1 ms, 3 times up to 11 s"]


def _rgb(colour: str) -> tuple[float, ...]:
    return tuple(int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
