"""Quantities with units: what they mean, what they refuse, and that they are written back exactly."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from testbed.scenario.quantity import (
    DURATION,
    PERCENT,
    RATE,
    STEP,
    Dimension,
    Percent,
    Step,
    StepSize,
    format_s,
    parse_duration_s,
    parse_step,
)

FINITE = st.floats(allow_nan=False, allow_infinity=False)


@pytest.mark.parametrize(
    ("dimension", "text", "value"),
    [
        (DURATION, "20 ms", 0.02),
        (DURATION, "35ms", 0.035),
        (DURATION, " 250 us ", 250e-6),
        (DURATION, "1.5 s", 1.5),
        (DURATION, "2 min", 120.0),
        (DURATION, ".5 h", 1800.0),
        (DURATION, "1e3 ms", 1.0),
        (DURATION, "-3 s", -3.0),
        (RATE, "80 /s", 80.0),
        (RATE, "80/s", 80.0),
        (RATE, "80 / s", 80.0),
        (RATE, "120 /min", 2.0),
        (RATE, "3600 /h", 1.0),
        (RATE, "2 /ms", 2000.0),
        (PERCENT, "7 %", 0.07),
        (PERCENT, "0.5%", 0.005),
        (STEP, "0.12 /s^2", 0.12),
    ],
)
def test_a_quantity_is_read_in_base_units(dimension: Dimension, text: str, value: float) -> None:
    assert dimension.parse(text) == value


@pytest.mark.parametrize(
    ("dimension", "value", "problem"),
    [
        (DURATION, 20, "20 has no unit"),
        (DURATION, 2.5, "2.5 has no unit"),
        (DURATION, "20", "'20' has no unit"),
        (DURATION, "20 sec", "'20 sec' has the unknown unit 'sec'"),
        (DURATION, "20 /s", "'20 /s' has the unknown unit '/s'"),
        (DURATION, "ms", "'ms' is not a time"),
        (DURATION, "", "'' is not a time"),
        (DURATION, "nan s", "'nan s' is not a time"),
        (DURATION, True, "True is not a time"),
        (DURATION, None, "None is not a time"),
        (DURATION, ["20 ms"], "['20 ms'] is not a time"),
        (DURATION, "1e999 s", "'1e999 s' is out of range"),
        (DURATION, "1e308 h", "'1e308 h' is out of range"),
        (RATE, "80 Hz", "'80 Hz' has the unknown unit 'Hz'"),
        (PERCENT, 0.5, "0.5 has no unit"),
        (STEP, "0.1 /s^3", "'0.1 /s^3' has the unknown unit '/s^3'"),
    ],
)
def test_what_is_no_quantity_says_what_is_wrong_with_it(
    dimension: Dimension, value: object, problem: str
) -> None:
    with pytest.raises(ValueError) as raised:
        dimension.parse(value)

    assert str(raised.value) == problem


def test_a_number_beyond_the_floats_is_zero_when_it_is_small() -> None:
    assert parse_duration_s("1e-999999999999999999999 ms") == 0.0


def test_what_is_accepted_shows_an_example_that_is_accepted() -> None:
    for dimension in (DURATION, RATE, PERCENT, STEP):
        assert dimension.parse(dimension.example) > 0
        assert dimension.accepted == f"{dimension.name} such as '{dimension.example}'"


@given(FINITE)
def test_durations_and_rates_are_written_back_exactly(value: float) -> None:
    assert DURATION.parse(DURATION.format(value)) == value
    assert RATE.parse(RATE.format(value)) == value


@given(st.floats(min_value=0, max_value=1))
def test_percentages_are_written_back_exactly(fraction: float) -> None:
    """No float times 0.01 is the nearest to every fraction, so percentages go through decimals."""
    adapter = TypeAdapter(Percent)

    assert adapter.validate_python(adapter.dump_python(fraction)) == fraction


@given(st.floats(min_value=0, allow_infinity=False), st.sampled_from(["/s", "/s^2"]))
def test_steps_are_written_back_with_their_unit(value: float, unit: str) -> None:
    adapter: TypeAdapter[Step] = TypeAdapter(StepSize)
    step = Step(value, unit)

    assert adapter.validate_python(adapter.dump_python(step)) == step


def test_percentages_are_written_as_people_would() -> None:
    assert TypeAdapter(Percent).dump_python(0.01) == "1 %"
    assert TypeAdapter(Percent).dump_python(0.1) == "10 %"
    assert TypeAdapter(Percent).dump_python(0.0) == "0 %"


def test_a_negative_step_is_refused_since_it_would_climb_the_cost() -> None:
    with pytest.raises(ValueError, match="out of range"):
        parse_step("-0.1 /s^2")


def test_a_step_shrinks_with_the_square_of_the_time_scale_when_the_cost_is_in_seconds() -> None:
    """measures.md section 1: costs scale by s, so a step per s^2 is divided by s^2 and one per s by s."""
    assert parse_step("0.12 /s^2").scaled(2.0) == Step(0.03, "/s^2")
    assert parse_step("0.12 /s").scaled(2.0) == Step(0.06, "/s")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0, "0 s"), (0.02, "20 ms"), (1.5, "1.5 s"), (250e-6, "250 us"), (-0.02, "-20 ms"), (123.4, "123 s")],
)
def test_durations_for_people_have_three_digits(seconds: float, text: str) -> None:
    assert format_s(seconds) == text
