"""The time scale that is advised: enough for every check, no more than that, and more for a later host."""

from __future__ import annotations

import math
from typing import Any

import pytest

from testbed.analysis.limits import SUSPECT_FRACTION, Limit
from testbed.fitness.check import Check
from testbed.fitness.footprint import footprint
from testbed.fitness.request_cost import RequestCost
from testbed.fitness.scenario_checks import Speed, cheap_checks, speed_checks
from testbed.fitness.time_scale import advised_scale, least_scales, scale_check
from testbed.host.cores import Cores
from tests.analysis.made_arms import made_scenario
from tests.fitness.made_machine import MACHINE

COST = RequestCost(4_000.0, 140e-6, 10_000.0, 100e-6)
SPEED = Speed(COST, lateness_p99_s=0.0003, longest_s=0.002)
LATENESSES_S = (0.0001, 0.0009, 0.0011, 0.003, 0.02, 0.3)
SHORT = [{"from": "root.*", "to": "cell.*", "path": "request", "delay": "1.5 ms"}]


def checks_at(time_scale: float, speed: Speed, **words: Any) -> dict[str, Check]:
    needs = footprint(made_scenario(time_scale=time_scale, **words))
    checks = [*cheap_checks(needs, MACHINE), *speed_checks(needs, MACHINE, speed)]
    return {each.name: each for each in checks}


def advised(speed: Speed, time_scale: float = 1.0, **words: Any) -> float:
    return advised_scale(footprint(made_scenario(time_scale=time_scale, **words)), MACHINE, speed)


@pytest.mark.parametrize("time_scale", [0.2, 1.0, 3.0])
def test_a_scenario_that_fits_keeps_its_time_scale(time_scale: float) -> None:
    speed = SPEED._replace(lateness_p99_s=0.0001)
    assert {check.word for check in checks_at(time_scale, speed).values()} == {"fits"}

    check = scale_check(footprint(made_scenario(time_scale=time_scale)), MACHINE, speed)

    assert advised(speed, time_scale) == time_scale
    assert (check.word, check.has, check.needs) == ("fits", f"{time_scale:g}", f"{time_scale:g}")


@pytest.mark.parametrize("links", [[], SHORT])
@pytest.mark.parametrize("time_scale", [0.2, 1.0, 3.0])
def test_a_later_host_is_never_given_a_smaller_scale(time_scale: float, links: list[dict[str, str]]) -> None:
    by_p99 = [
        advised(SPEED._replace(lateness_p99_s=late_s), time_scale, links=links) for late_s in LATENESSES_S
    ]
    by_stall = [
        advised(SPEED._replace(longest_s=30.0 * late_s), time_scale, links=links) for late_s in LATENESSES_S
    ]

    for scales in (by_p99, by_stall):
        assert scales == sorted(scales)
        assert scales[0] >= time_scale
        assert scales[-1] > 4.0 * scales[0]


@pytest.mark.parametrize(
    "change",
    [
        {"lateness_p99_s": 0.005},
        {"lateness_p99_s": 0.07},
        {"longest_s": 0.4},
        {"cost": COST._replace(low_cpu_s=0.01)},
        {"cost": RequestCost(100.0, 0.01, 10_000.0, 0.008)},
    ],
)
@pytest.mark.parametrize("time_scale", [0.2, 1.0])
def test_the_advised_scale_is_enough_and_half_of_it_is_not(change: dict[str, Any], time_scale: float) -> None:
    speed = SPEED._replace(**change)
    scale = advised(speed, time_scale)

    assert math.log2(scale) == int(math.log2(scale))
    assert {check.word for check in checks_at(scale, speed).values()} == {"fits"}
    assert {check.word for check in checks_at(scale / 2.0, speed).values()} > {"fits"}


def test_a_link_that_is_shorter_than_the_lateness_decides_by_itself() -> None:
    """10 ms late against a link of 1.5 ms and a limit of 2 ms at scale 1; half of that limit asks for more than the link."""
    links = [{**SHORT[0], "delay": "0.1 ms"}]
    scales = least_scales(footprint(made_scenario(links=links)), MACHINE, SPEED._replace(lateness_p99_s=0.01))

    assert scales["lateness p99 of a link"] == pytest.approx(100.0)


def test_busy_processes_are_given_a_core_each_by_the_scale() -> None:
    busy = footprint(made_scenario())._replace(
        messages_per_s=(("a", 9e3), ("b", 2e4), ("c", 7e3), ("d", 1.0))
    )

    assert least_scales(busy, MACHINE, SPEED)["busy processes"] == pytest.approx(7.0 / 4.0)
    one_core = MACHINE._replace(cores=Cores(1, math.inf))
    assert least_scales(busy, one_core, SPEED)["busy processes"] == pytest.approx(9.0 / 4.0)
    many = MACHINE._replace(cores=Cores(8, math.inf))
    assert least_scales(busy, many, SPEED)["busy processes"] == 0.0


def test_the_line_says_what_decides_and_how_long_a_run_takes() -> None:
    needs = footprint(made_scenario(duration="20 s"))

    check = scale_check(needs, MACHINE, SPEED._replace(lateness_p99_s=0.0035))

    assert (check.word, check.has, check.needs) == ("warning", "1", "4")
    assert check.advice == "try --time-scale 4, for the lateness p99 of a link: a run then takes 80 s an arm"


def test_processes_that_fill_the_cores_while_idle_are_helped_by_no_scale() -> None:
    needs = footprint(made_scenario())._replace(processes=500)

    check = scale_check(needs, MACHINE, SPEED)

    assert math.isinf(advised_scale(needs, MACHINE, SPEED))
    assert (check.word, check.advice) == ("warning", "none would do: group nodes with processes:")


@pytest.mark.parametrize("limit", [Limit(0.002, 0.0), Limit(0.002, 0.0005), Limit(0.1, 0.3)])
@pytest.mark.parametrize("from_scale", [0.1, 1.0, 5.0])
def test_the_least_scale_brings_lateness_to_half_of_the_limit(limit: Limit, from_scale: float) -> None:
    for late_s in (0.0001, 0.003, 0.06, 0.8, 30.0):
        scale = limit.least_scale(late_s, from_scale)

        assert scale >= from_scale
        assert late_s <= SUSPECT_FRACTION * limit.at(scale) * (1.0 + 1e-12)
        if scale > from_scale:
            assert late_s > SUSPECT_FRACTION * limit.at(0.999 * scale)
