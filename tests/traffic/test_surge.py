"""Requests ordered by hand: the same for whoever knows the order, in their place among those to come."""

from __future__ import annotations

import math

import numpy as np
import pytest

from testbed.runtime.ordered import Ordered
from testbed.scenario.topology import build_topology
from testbed.traffic.plan import build_plan
from testbed.traffic.surge import LEAD_S, joined, surge, surge_of_root, with_surges
from tests.analysis.made_arms import made_scenario

SCENARIO = made_scenario().scaled()
RATE_PER_S = 300  # of each of its three roots


def of(words, at_s=4.0, until_s=math.inf, root="*", number=0):
    order = Ordered(number, at_s, until_s, {"at": "0 s", "root": root, "set": words})
    return surge(SCENARIO, order.fault(SCENARIO, build_topology(SCENARIO)))


def test_a_demand_adds_what_it_has_above_the_planned_one():
    """Twice as much again from 4 to 8 s at one root of 300 /s: 2,400 requests, within four deviations."""
    found = of({"demand": "x3"}, until_s=8.0, root="west")

    assert found.requests == pytest.approx(2 * RATE_PER_S * 4, abs=4 * 2400**0.5)
    assert set(found.root) == {0}
    assert found.at_s.min() >= 4.0 + LEAD_S
    assert found.at_s.max() < 8.0 + LEAD_S
    assert (np.diff(found.at_s) >= 0).all()


def test_a_demand_without_an_end_lasts_as_long_as_arrivals_do():
    found = of({"demand": "x2"})

    assert found.at_s.max() < SCENARIO.duration
    assert found.at_s.max() > SCENARIO.duration - 0.1


def test_a_burst_comes_at_once_or_over_the_time_that_is_given():
    at_once, spread = of({"burst": 60}), of({"burst": 60}, until_s=6.0)

    assert set(at_once.at_s) == {4.0 + LEAD_S}
    assert at_once.requests == spread.requests == 180
    assert spread.at_s.max() - spread.at_s.min() == pytest.approx(2.0, abs=0.05)


def test_orders_draw_apart_and_each_of_them_always_the_same():
    assert of({"demand": "x2"}).at_s.tolist() == of({"demand": "x2"}).at_s.tolist()
    assert of({"demand": "x2"}).at_s.tolist() != of({"demand": "x2"}, number=1).at_s.tolist()


def test_ids_are_positions_behind_the_plan_however_the_requests_are_dealt_to_roots():
    plan = build_plan(SCENARIO)
    surges = [of({"demand": "x2"}), of({"burst": 10}, at_s=9.0, number=1)]

    whole = with_surges(plan, surges)

    first_id = plan.requests
    for found in surges:
        for root in range(3):
            told = surge_of_root(found, root, first_id, -math.inf)
            ids = np.array(told.request_ids)
            assert (whole.root[ids] == root).all()
            assert whole.at_s[ids].tolist() == list(told.at_s)
            assert whole.prompt_tokens[ids].tolist() == list(told.prompt_tokens)
        first_id += found.requests
    assert first_id == whole.requests


def test_more_requests_take_their_places_among_those_to_come():
    planned = build_plan(SCENARIO).of_root(1)
    done = int(np.searchsorted(planned.at_s, 4.0))
    told = surge_of_root(of({"demand": "x2"}, until_s=5.0), 1, 100_000, -math.inf)

    found = joined(planned, done, told)

    assert found.request_ids[:done] == planned.request_ids[:done]
    assert sorted(found.request_ids) == sorted([*planned.request_ids, *told.request_ids])
    assert (np.diff(found.at_s) >= 0).all()
    where = found.request_ids.index(told.request_ids[0])
    assert (found.at_s[where], found.output_tokens[where]) == (told.at_s[0], told.output_tokens[0])


def test_a_later_life_is_told_of_what_is_still_to_come():
    found = of({"demand": "x2"}, until_s=6.0)

    later = surge_of_root(found, 0, 7, 5.0)

    assert min(later.at_s) >= 5.0
    assert later.request_ids[0] == 7 + int(np.flatnonzero((found.root == 0) & (found.at_s >= 5.0))[0])
