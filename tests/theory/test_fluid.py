"""The fluid: against another solver, and against what is known of its cycles and rest points."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from testbed.theory.fluid import Fluid, Reports, Streams, _all_at_once, _one_by_one, solve, steady_in_flight
from testbed.theory.fluid_rule import BetterOfTwo, CostOf, Gradient, Greedy, Periodic, Rule, Static
from testbed.theory.rate_family import ClippedServers, ExponentialSaturation, RateFamily, hyperbolic

TRAVEL = np.array([[0.10, 0.16, 0.22], [0.25, 0.12, 0.18]])
NEWS = np.array([[0.20, 0.16, 0.31], [0.15, 0.23, 0.12]])
RATES = np.array([40.0, 55.0])
CAPACITY = np.array([60.0, 40.0, 50.0])
FAMILIES = {
    "hyperbolic": hyperbolic(CAPACITY, np.array([30.0, 10.0, 20.0])),
    "exponential": ExponentialSaturation(CAPACITY, np.array([30.0, 10.0, 20.0])),
}


def fluid(cells: RateFamily, rule: Rule, start: np.ndarray, cost: CostOf | None = None, **changes) -> Fluid:
    """Two lines and three cells, delays of every pair different, unless `changes` say otherwise."""
    words = {"rates_per_s": RATES, "travel_s": TRAVEL, "observation_s": NEWS}
    reports = changes.pop("reports", None)
    words |= {"allowed": np.ones(start.shape, dtype=bool), "cost": cost or cells.marginal_s} | changes
    return Fluid(cells, (Streams(start=start, rule=rule, **words),), reports)


def every(period_s: float, lines: int) -> Periodic:
    return Periodic(np.full(lines, period_s), np.zeros((lines, 1)), np.full((lines, 1), period_s))


def by_method_of_steps(
    cells: RateFamily,
    steps: np.ndarray,
    network_s: np.ndarray,
    start: np.ndarray,
    in_flight: np.ndarray,
    until_s: float,
) -> Callable[[float], np.ndarray]:
    """N(t) of continuous flow in the interior by Runge-Kutta of order 5(4), one shortest delay after another."""
    pieces: list[tuple[float, Callable[[float], np.ndarray]]] = []
    first = np.concatenate((in_flight, start.ravel()))
    width_s = float(min(TRAVEL.min(), NEWS.min()))

    def state(at_s: float) -> np.ndarray:
        return first if at_s <= 0.0 else pieces[min(int(at_s / width_s), len(pieces) - 1)][1](at_s)

    def slope(at_s: float, now: np.ndarray) -> np.ndarray:
        sent = np.array([[state(at_s - TRAVEL[i, j])[3 + 3 * i + j] for j in range(3)] for i in range(2)])
        seen = np.array([[state(at_s - NEWS[i, j])[j] for j in range(3)] for i in range(2)])
        costs = cells.marginal_s(seen) + network_s
        moves = -steps[:, None] * (costs - costs.mean(axis=1, keepdims=True))
        return np.concatenate((RATES @ sent - cells.rate_per_s(now[:3]), moves.ravel()))

    now = first
    for k in range(int(np.ceil(until_s / width_s))):
        span = (k * width_s, (k + 1) * width_s)
        found = solve_ivp(slope, span, now, dense_output=True, rtol=1e-7, atol=1e-9)
        pieces.append((span[0], found.sol))
        now = found.y[:, -1]
    return lambda at_s: state(at_s)[:3]


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_another_solver_finds_the_same_on_stable_steps(family: RateFamily) -> None:
    """To 1e-4 of the mean, from a start well off the optimum, every pair of root and cell with delays of its own."""
    start = np.array([[0.50, 0.15, 0.35], [0.40, 0.30, 0.30]])
    steps = np.array([0.004, 0.003])
    model = fluid(family, Gradient(steps), start, lambda seen: family.marginal_s(seen) + 2 * TRAVEL)
    in_flight = steady_in_flight(model)
    until_s = 9.0

    ours = solve(model, until_s)
    other = by_method_of_steps(family, steps, 2 * TRAVEL, start, in_flight, until_s)

    theirs = np.array([other(at_s) for at_s in ours.at_s])
    assert np.abs(ours.in_flight - in_flight).max() > 0.05 * in_flight.mean()  # it has moved
    assert np.abs(ours.in_flight - theirs).max() < 1e-4 * theirs.mean()


def test_steps_together_and_one_by_one_are_the_same_scheme() -> None:
    family = FAMILIES["hyperbolic"]
    start, arriving = np.array([80.0, 2.0, 30.0]), np.random.default_rng(3).uniform(0.0, 60.0, (16, 3))

    together = _all_at_once(family, start, arriving, 0.05)

    assert together is not None
    assert together == pytest.approx(_one_by_one(family, start, arriving, 0.05), rel=1e-8)


def test_shares_stay_probabilities_and_forbidden_cells_stay_at_0() -> None:
    """A step far beyond the critical one, so that cells drop out and come back."""
    family = FAMILIES["hyperbolic"]
    allowed = np.array([[True, True, False], [True, True, True]])
    start = np.array([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5]])

    shares = solve(fluid(family, Gradient(np.full(2, 2.0)), start, allowed=allowed), 30.0).shares

    assert np.abs(shares.sum(axis=2) - 1.0).max() < 1e-12
    assert shares.min() == 0.0
    assert (shares[:, 0, 2] == 0.0).all()
    assert (shares[:, 1] == 0.0).any(axis=0).any()


def test_flow_leaves_a_cell_whose_travel_costs_more_than_it_spares() -> None:
    """And the others go on to equal marginal costs: the rest point of a constrained optimum."""
    family = FAMILIES["hyperbolic"]
    far_s = np.array([[0.0, 0.0, 30.0], [0.0, 0.0, 30.0]])
    model = fluid(
        family,
        Gradient(np.full(2, 0.01)),
        np.full((2, 3), 1 / 3),
        lambda seen: family.marginal_s(seen) + far_s,
        rates_per_s=np.array([25.0, 30.0]),
    )

    end = solve(model, 300.0)

    costs_s = family.marginal_s(end.in_flight[-1])
    assert (end.shares[-1, :, 2] == 0.0).all()
    assert costs_s[0] == pytest.approx(costs_s[1], rel=1e-3)


# Linear cells, l = a N: the relay is solved exactly by equation (11) of theory.md.
@pytest.mark.parametrize("relaxations", [0.1, 1.0, 5.0])
def test_greedy_on_two_linear_cells_has_the_limit_cycle_of_the_relay(relaxations: float) -> None:
    delay_s, rate = 0.4, 30.0
    a = relaxations / delay_s
    cells = ClippedServers(np.full(2, a), np.full(2, 1e9))
    half = np.full((1, 2), delay_s / 2)
    model = fluid(
        cells, Greedy(), np.array([[1.0, 0.0]]), lambda seen: seen,
        rates_per_s=np.array([rate]), travel_s=half, observation_s=half,
    )  # fmt: skip

    cycle = solve(model, 60 * delay_s, in_flight=np.array([5.0, 4.0]), spacing_s=delay_s / 100).after(
        30 * delay_s
    )

    difference = cycle.in_flight[:, 0] - cycle.in_flight[:, 1]
    crossings = np.flatnonzero((difference[:-1] < 0) & (difference[1:] >= 0)) * cycle.spacing_s
    assert np.diff(crossings).mean() == pytest.approx(
        2 * delay_s + 2 / a * np.log(2 - np.exp(-relaxations)), rel=0.02
    )
    assert difference.max() == pytest.approx(rate / a * (1 - np.exp(-relaxations)), rel=0.03)


def test_better_of_two_gives_each_rank_its_share() -> None:
    """Of three cells, the cheapest is in two of three pairs, the second wins one, the dearest none; forbidden: nothing."""
    rule = BetterOfTwo()
    costs = np.array([[[3.0, 1.0, 2.0, 0.0], [1.0, 1.0, 2.0, 5.0], [9.0, 0.0, 9.0, 9.0]]])
    allowed = np.array([[True, True, True, False], [True, True, True, False], [False, True, False, False]])

    shares = rule.shares(costs, np.ones((1, 1)), np.zeros((3, 4)), allowed)

    assert shares[0, 0] == pytest.approx([0, 2 / 3, 1 / 3, 0])
    assert shares[0, 1] == pytest.approx([1 / 2, 1 / 2, 0, 0])
    assert shares[0, 2] == pytest.approx([0, 1, 0, 0])


def test_short_intervals_are_the_continuous_form() -> None:
    start = np.array([[0.5, 0.2, 0.3], [0.3, 0.4, 0.3]])
    family = FAMILIES["hyperbolic"]
    steps = np.full(2, 0.002)

    smooth = solve(fluid(family, Gradient(steps), start), 20.0, spacing_s=0.01)
    stepped = solve(fluid(family, Gradient(steps, every(0.02, 2)), start), 20.0, spacing_s=0.01)

    assert np.abs(stepped.in_flight - smooth.in_flight).max() < 2e-3 * smooth.in_flight.mean()


def test_all_looks_of_a_period_stand_for_its_whole_length() -> None:
    looks = Periodic(np.array([0.5]), np.array([[0.0, 0.2]]), np.array([[0.3, 0.2]]))

    looks_s, weights_s = looks.looks_s(np.arange(1, 101) * 0.1, 0.1)

    assert weights_s.sum() == pytest.approx(10.0)
    assert set(np.round(weights_s[:, 0], 9).tolist()) == {0.0, 0.2, 0.3}
    assert looks_s[:5, 0] == pytest.approx([0.0, 0.2, 0.2, 0.2, 0.5])


def test_reports_add_half_their_period_to_the_age_of_what_is_seen() -> None:
    reports = Reports(np.array([0.4, 0.4]), np.array([0.0, 0.1]))
    at_s = np.arange(1000)[:, None] * 0.0137 + np.zeros(2)

    ages_s = at_s - reports.measured_s(at_s)

    assert ages_s.min() >= -1e-9
    assert ages_s.max() < 0.4
    assert ages_s.mean(axis=0) == pytest.approx([0.2, 0.2], abs=0.01)


def test_rare_reports_make_greedy_routing_swing_more() -> None:
    family = FAMILIES["hyperbolic"]
    swings = []
    for reports in (None, Reports(np.full(3, 1.0), np.array([0.0, 0.3, 0.6]))):
        model = fluid(family, Greedy(), np.full((2, 3), 1 / 3), lambda seen: seen, reports=reports)
        swings.append(solve(model, 40.0).after(20.0).in_flight.std(axis=0).max())

    assert swings[1] > 1.5 * swings[0]


def test_an_unprimed_start_lets_nothing_arrive_before_it_has_travelled() -> None:
    model = fluid(FAMILIES["hyperbolic"], Static(), np.full((2, 3), 1 / 3))

    path = solve(model, 1.0, in_flight=np.zeros(3), primed=False)

    for cell, first_s in enumerate(TRAVEL.min(axis=0)):
        assert (path.in_flight[path.at_s < first_s - path.spacing_s, cell] == 0.0).all()
        assert path.in_flight[path.at_s > first_s + path.spacing_s, cell].min() > 0.0


def test_what_is_sent_has_arrived_or_is_under_way() -> None:
    """Nobody is served for ever: in flight grows by exactly what was sent a travel ago."""
    model = fluid(ClippedServers(np.full(3, 1e-12), np.ones(3)), Static(), np.full((2, 3), 1 / 3))

    path = solve(model, 5.0, in_flight=np.zeros(3))

    assert path.in_flight[-1] == pytest.approx(np.full(3, RATES.sum() / 3 * path.at_s[-1]), rel=1e-9)


def test_without_any_delay_a_spacing_is_due() -> None:
    none = np.zeros((2, 3))
    model = fluid(FAMILIES["hyperbolic"], Static(), np.full((2, 3), 1 / 3), travel_s=none, observation_s=none)

    with pytest.raises(ValueError, match="spacing"):
        solve(model, 1.0)
    assert len(solve(model, 1.0, spacing_s=0.1).in_flight) == 11
