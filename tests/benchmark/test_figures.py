"""Figures and their aims, the neighbours of a measurement, and the table."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
import psutil
import pytest

from testbed.benchmark import neighbours
from testbed.benchmark.catalogue import CATALOGUE, all_figures
from testbed.benchmark.figure import Figure
from testbed.benchmark.neighbours import Clock, Load, refuse_busy_host, undisturbed
from testbed.benchmark.table import figure_data, figure_table
from testbed.errors import RunError, UsageError
from tests.benchmark.made_run import made_run


class FakeClock(Clock):
    """Tells loads that were written down before."""

    loads: ClassVar[list[Load]] = []

    def __init__(self) -> None:
        pass

    def load(self) -> Load:
        return self.loads.pop(0)


@pytest.fixture
def loads(monkeypatch):
    monkeypatch.setattr(neighbours, "Clock", FakeClock)
    FakeClock.loads.clear()
    return FakeClock.loads


@pytest.mark.parametrize(
    ("value", "aim", "is_least", "reached"),
    [
        (2.0, 1.0, True, True),
        (0.5, 1.0, True, False),
        (2.0, 1.0, False, False),
        (2.0, math.nan, True, None),
        (math.nan, 1.0, True, None),
    ],
)
def test_a_figure_reaches_its_aim_from_the_right_side(value, aim, is_least, reached):
    assert Figure("x", value, "s", aim, is_least).reached is reached


def test_what_is_not_known_is_null_in_the_data():
    (row,) = figure_data([Figure("x", math.nan, "s")])

    assert (row["value"], row["aim"], row["reached"]) == (None, None, None)


@pytest.mark.parametrize(
    ("value", "said"),
    [(30_000, "30,000 /s"), (9_999.4, "9999 /s"), (0.30784, "0.3078 /s"), (math.nan, "nan /s")],
)
def test_large_figures_are_written_out(value, said):
    (column,) = [each for each in figure_table([Figure("x", value, "/s")]).columns if each.header == "value"]

    assert list(column.cells) == [said]


def test_a_busy_neighbour_is_refused_and_told(loads):
    loads += [Load(0.6, 0.0), Load(0.05, 0.0)]

    with pytest.raises(RunError, match=r"others use 0\.60 cores; accepted: up to 0\.15"):
        refuse_busy_host(0.0)
    refuse_busy_host(0.0)


def test_a_run_during_which_time_was_stolen_is_repeated_and_the_last_one_says_so(loads):
    cores = psutil.cpu_count() or 1
    measured = iter(range(9))
    loads += [Load(1.0, 0.5 * cores), Load(1.0, 0.0)]

    assert undisturbed(lambda: next(measured)) == (1, "")

    loads += [Load(1.0, 0.5 * cores)] * 3
    value, note = undisturbed(lambda: next(measured))
    assert value == 4
    assert note == "disturbed in each of 3 tries, in the last: the host took 50% of the time"


@pytest.mark.parametrize(
    ("host", "said"),
    [
        ({}, []),
        ({"slowdown": 5.0}, ["1 slow spell of the processors"]),
        ({"busy_cores": 0.5}, ["others used 0.40 cores"]),
        ({"busy_cores": 0.3}, []),
        ({"busy_cores": math.nan}, []),
    ],
)
def test_a_run_tells_what_its_machine_did_beside_it(host, said):
    assert made_run(cpu_s=1.0, host=host).disturbances() == said


def test_a_machine_that_was_not_watched_tells_nothing():
    ran = made_run()._replace(tables={"host": {}, "processes": {"cpu_s": np.ones(1)}})

    assert ran._replace(summary={"host": {"watched": False}}).disturbances() == []
    assert ran._replace(summary={"host": None}).disturbances() == []


def test_a_run_in_a_slow_spell_is_repeated_until_there_is_none(loads):
    loads += [Load(1.0, 0.0)] * 2
    runs = [made_run(host={"slowdown": 5.0}), made_run(planned=7)]

    ran, note = undisturbed(lambda: runs.pop(0))

    assert (ran.planned, note, runs) == (7, "", [])


def test_decisions_are_measured_for_few_and_many_targets():
    names = [figure.name for figure in all_figures(quick=True, only=("decision",))]

    assert "a decision of flow among 300 targets" in names
    assert len(names) == 12


def test_an_unknown_measurement_is_refused():
    with pytest.raises(UsageError, match=f"accepted: {', '.join(CATALOGUE)}"):
        list(all_figures(quick=True, only=("nothing",)))
