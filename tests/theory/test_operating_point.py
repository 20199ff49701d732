"""The operating point: the optimum levels the marginal costs, and cells stand where their curves say."""

from __future__ import annotations

import math

import numpy as np
import pytest

from testbed.scenario.schema import Scenario
from testbed.scenario.topology import build_topology
from testbed.theory.operating_point import (
    Demand,
    OperatingPoint,
    at_capacity_split,
    at_optimum,
    demand,
)
from testbed.theory.path_delays import PathDelays
from tests.traffic.scenes import herding, scene


def wanted_of(scenario: Scenario) -> Demand:
    return demand(scenario, PathDelays(build_topology(scenario)))


def marginal_costs(wanted: Demand, point: OperatingPoint, line: int) -> list[float]:
    """dN/dr with travel of every cell to one line, by a small change of what it sends there."""
    rates = point.shares * wanted.rates_per_s[:, None]
    costs = []
    for j in range(len(wanted.cells)):
        change = 1e-6 * wanted.rates_per_s.sum()
        both = []
        for sign in (-1.0, 1.0):
            busy = sum(row[j].beta_s * rates[i, j] for i, row in enumerate(wanted.curves))
            work = sum(row[j].alpha_s * rates[i, j] for i, row in enumerate(wanted.curves))
            busy += sign * change * wanted.curves[line][j].beta_s
            work += sign * change * wanted.curves[line][j].alpha_s
            both.append(wanted.servers[j] * work / (wanted.servers[j] - busy))
        costs.append((both[1] - both[0]) / (2 * change) + wanted.travel_s[line, j])
    return costs


def assert_optimal(wanted: Demand, point: OperatingPoint) -> None:
    """Karush, Kuhn and Tucker: used cells cost the same, unused ones no less."""
    assert point.shares.sum(axis=1) == pytest.approx(1.0)
    assert (point.shares[~wanted.allowed] == 0.0).all()
    for i in range(len(wanted.lines)):
        costs = np.array(marginal_costs(wanted, point, i))
        used = point.shares[i] > 1e-6
        level = costs[used].mean()
        assert costs[used] == pytest.approx(level, rel=1e-5)
        assert (costs[~used & wanted.allowed[i]] >= level * (1 - 1e-5)).all()


def test_the_optimum_of_herding_is_the_capacity_split() -> None:
    """Equal servers at equal distance: 4/9, 3/9, 2/9."""
    wanted = wanted_of(herding())

    optimum, split = at_optimum(wanted), at_capacity_split(wanted)

    assert [cell.share for cell in optimum.cells] == pytest.approx([4 / 9, 3 / 9, 2 / 9])
    assert [cell.share for cell in split.cells] == pytest.approx([4 / 9, 3 / 9, 2 / 9])
    assert_optimal(wanted, optimum)


def test_a_cell_stands_where_its_curve_says() -> None:
    """N = k n, W = alpha + beta n, a = l'(n), sigma = dm/dN, by differences of the curve."""
    wanted = wanted_of(herding())

    us = at_optimum(wanted).cells[0]

    n, change = us.in_flight / 4, 1e-4
    slope = (us.curve.rate_per_s(n + change) - us.curve.rate_per_s(n - change)) / (2 * change)
    marginal = (us.curve.marginal_s(n + change) - us.curve.marginal_s(n - change)) / (2 * change)
    assert us.rate_per_s == pytest.approx(4 * us.curve.rate_per_s(n))
    assert us.sojourn_s == pytest.approx(us.in_flight / us.rate_per_s)
    assert us.a_per_s == pytest.approx(slope, rel=1e-6)
    assert us.sigma_s == pytest.approx(marginal / 4, rel=1e-6)
    assert us.of_capacity == pytest.approx(us.rate_per_s / (4 * us.curve.rate_per_s(256)))
    assert us.utilisation == pytest.approx(us.rate_per_s * us.curve.beta_s / 4)


# theory.md, section 2.9: 3 roots, 4 cells of C = 60, 50, 40, 50 with N0 = C * 0.1 s.
TABLE_29 = """
cells:
  a: {servers: 1, service: {rate_curve: {capacity: 60 /s, half: 6.0}}}
  b: {servers: 1, service: {rate_curve: {capacity: 50 /s, half: 5.0}}}
  c: {servers: 1, service: {rate_curve: {capacity: 40 /s, half: 4.0}}}
  d: {servers: 1, service: {rate_curve: {capacity: 50 /s, half: 5.0}}}
roots:
  x: {traffic: [{class: sand, policy: even, rate: 60 /s}]}
  y: {traffic: [{class: sand, policy: even, rate: 40 /s}]}
  z: {traffic: [{class: sand, policy: even, rate: 50 /s}]}
links: [%s]
"""
ONE_WAY_MS = {"x": (10, 60, 120, 150), "y": (70, 10, 90, 120), "z": (140, 100, 20, 50)}


def table_29() -> Scenario:
    lines = [
        f"{{from: root.{root}, to: cell.{cell}, delay: {delay} ms}}"
        for root, delays in ONE_WAY_MS.items()
        for cell, delay in zip("abcd", delays, strict=True)
    ]
    return scene(TABLE_29 % ", ".join(lines))


def test_distant_cells_get_less_at_the_optimum() -> None:
    """theory.md 2.9, with travel one way: the capacity split costs 1.106 of the optimum, W is 0.433 s."""
    wanted = wanted_of(table_29())

    optimum, split = at_optimum(wanted), at_capacity_split(wanted)

    assert_optimal(wanted, optimum)
    assert split.in_system / optimum.in_system == pytest.approx(1.106, abs=0.002)


def test_forbidden_cells_stay_empty_and_their_share_moves() -> None:
    roots = {
        "west": {"traffic": [{"class": "sand", "rate": "900 /s", "policy": "even"}], "allowed": ["us"]},
        "east": {"traffic": [{"class": "sand", "rate": "600 /s", "policy": "even"}]},
    }
    wanted = wanted_of(herding(roots=roots))

    optimum = at_optimum(wanted)

    assert optimum.shares[0].tolist() == [1.0, 0.0, 0.0]
    assert_optimal(wanted, optimum)
    assert optimum.shares[1, 0] < 0.05


MIX = """
cells:
  near: {servers: 2, profile: llama3-8b_a100_tp1_composed}
  fast: {servers: 1, profile: llama3-8b_h100_tp1_composed}
classes:
  sand: {prompt_tokens: 48, output_tokens: 8}
  boulder: {prompt_tokens: 2000, output_tokens: 200}
roots:
  west: {traffic: [{class: sand, policy: even, rate: 200 /s}]}
  east: {traffic: [{class: boulder, policy: even, rate: 3 /s}]}
links: [{from: root.west, to: cell.fast, delay: 30 ms}]
"""


def test_lines_with_different_tokens_share_the_cells_optimally() -> None:
    wanted = wanted_of(scene(MIX))

    optimum = at_optimum(wanted)

    assert optimum.is_sustained
    assert_optimal(wanted, optimum)


def test_the_optimum_is_no_worse_than_any_of_many_divisions() -> None:
    wanted = wanted_of(scene(MIX))
    optimum = at_optimum(wanted)
    rates, rng = wanted.rates_per_s, np.random.default_rng(3)
    alpha = np.array([[curve.alpha_s for curve in row] for row in wanted.curves])
    beta = np.array([[curve.beta_s for curve in row] for row in wanted.curves])

    for _ in range(200):
        sent = rng.dirichlet(np.ones(2), 2) * rates[:, None]
        busy = (sent * beta).sum(axis=0)
        if (busy < wanted.servers).all():
            in_flight = wanted.servers * (sent * alpha).sum(axis=0) / (wanted.servers - busy)
            assert in_flight.sum() + (sent * wanted.travel_s).sum() >= optimum.in_system * (1 - 1e-9)


def test_too_much_load_is_said_and_not_hidden() -> None:
    roots = {"west": {"traffic": [{"class": "sand", "rate": "5000 /s", "policy": "even"}]}}
    wanted = wanted_of(herding(roots=roots))

    for point in (at_optimum(wanted), at_capacity_split(wanted)):
        assert not point.is_sustained
        assert math.isinf(point.in_system)
        assert all(math.isinf(cell.in_flight) for cell in point.cells)
        assert point.cells[0].of_capacity == pytest.approx(5000 / 2157.8, rel=1e-3)


def test_a_start_that_overloads_a_cell_still_finds_the_optimum() -> None:
    """By capacity `us` would get 900 + 0.44 * 600 of 959 a second; the optimum keeps it below."""
    roots = {
        "east": {"traffic": [{"class": "sand", "rate": "600 /s", "policy": "even"}]},
        "west": {"traffic": [{"class": "sand", "rate": "900 /s", "policy": "even"}], "allowed": ["us"]},
    }
    wanted = wanted_of(herding(roots=roots))

    assert not at_capacity_split(wanted).is_sustained
    assert at_optimum(wanted).is_sustained
    assert_optimal(wanted, at_optimum(wanted))


def test_no_traffic_is_an_operating_point_too() -> None:
    roots = {
        "west": {"traffic": [{"class": "sand", "stages": [{"at": "0 s", "rate": "0 /s"}], "policy": "even"}]}
    }

    optimum = at_optimum(wanted_of(herding(roots=roots)))

    assert optimum.is_sustained
    assert optimum.in_system == 0.0
    assert optimum.shares.sum() == pytest.approx(1.0)
