"""Every public incident that is staged shows its fault in one arm, and not in the arm with the cure."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from testbed.console.resolved_plan import describe
from testbed.experiment import run_arm
from testbed.record.read import read_tables
from testbed.record.run_folder import ArmFolder
from testbed.scenario.load import load_scenario
from testbed.scenario.shorten import with_duration
from tests.full_length import checked_expectations, silent

INCIDENTS = Path(__file__).parents[1] / "scenarios" / "incidents"
STAGED = sorted(INCIDENTS.glob("*.yaml"))
SHORT_S = 8.0


def compared(path):
    """The file with those arms alone that its expectations look at."""
    needed = {arm for each in load_scenario(path).expectations for arm in each.arms}
    return load_scenario(path, arms=tuple(needed))


@pytest.mark.parametrize("path", STAGED, ids=lambda path: path.stem)
def test_an_incident_shows_in_the_fault_arm_and_not_in_the_cure(path, tmp_path):
    file = compared(path)
    checked = checked_expectations(file, tmp_path)

    assert any(each["text"].startswith("fault") for each in checked)
    assert any("cure" in each["text"] for each in checked)
    assert [(each["text"], each["said"]) for each in checked if not each["met"]] == []


@pytest.mark.parametrize("path", STAGED, ids=lambda path: path.stem)
def test_an_incident_names_its_public_report_and_its_cure(path):
    comment = load_scenario(path).comment

    assert "#" in comment or "PR " in comment
    assert "One sees" in comment


@pytest.mark.parametrize("path", STAGED, ids=lambda path: path.stem)
def test_an_incident_is_the_same_at_twice_the_time_scale(path, tmp_path):
    """To the last bit in scenario time, faults and all: with real processes it may be run as slowly as the host asks."""
    (fault,) = load_scenario(path, arms=("fault",)).arms.values()
    short = with_duration(fault, SHORT_S)
    one, two = (ArmFolder(tmp_path / f"{scale}") for scale in (1, 2))
    run_arm(one, short, "virtual", silent)
    run_arm(two, short.model_copy(update={"time_scale": 2.0}), "virtual", silent)

    tables, stretched = read_tables(one.tables), read_tables(two.tables)

    assert len(tables["requests"]["request_id"]) > 8
    for table in ("requests", "observations", "faults", "lateness", "attempts", "rotations"):
        for name, column in tables[table].items():
            if column.dtype.kind == "f":
                np.testing.assert_array_equal(column, stretched[table][name], err_msg=f"{table}.{name}")
            elif column.ndim == 1:
                assert column.tolist() == stretched[table][name].tolist(), f"{table}.{name}"


def test_a_staleness_limit_below_the_report_period_is_warned_of_before_the_run():
    page = io.StringIO()
    console = Console(width=200, file=page)
    for part in describe(load_scenario(INCIDENTS / "staleness_below_period.yaml", arms=("fault", "cure"))):
        console.print(part)

    assert "stale_after of distrustful, 200 ms, is below the age" in page.getvalue()
    assert "stale_after of patient" not in page.getvalue()
