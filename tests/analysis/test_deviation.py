import math
from dataclasses import replace

import numpy as np
import pytest

from testbed.analysis.deviation import deviation, in_system, model_in_system
from testbed.analysis.records import Window
from testbed.analysis.regimes import regimes_of
from testbed.analysis.routing_shares import StreamShares, stream_shares
from testbed.scenario.topology import build_topology
from testbed.theory.operating_point import at_optimum, demand
from testbed.theory.path_delays import PathDelays
from tests.analysis.made_arms import made_requests, made_scenario, made_updates, steady

CURVE = {"rate_curve": {"capacity": "500 /s", "half": 50}, "work": "exponential"}
WINDOW = Window(5.0, 20.0)


def curved(policy="flow", **changes):
    cells = {
        name: {"servers": servers, "service": CURVE} for name, servers in (("us", 4), ("eu", 3), ("asia", 2))
    }
    return made_scenario(policy, cells=cells, **changes)


def test_requests_are_in_the_system_until_their_reply_or_until_their_client_has_gone():
    """One for 2 s, one that is given up 10 s after its plan, one that never had a target: (2 + 5 + 0) s over 15 s."""
    scenario = curved()
    requests = {
        "class": np.array(["sand"] * 3, object),
        "cell": np.array(["us", "us", ""], object),
        "planned_at_s": np.array([6.0, 0.0, 7.0]),
        "sent_at_s": np.array([6.0, 0.0, 7.0]),
        "replied_at_s": np.array([8.0, np.nan, np.nan]),
    }

    assert in_system(scenario, requests, WINDOW) == pytest.approx(7.0 / 15.0)


def test_the_model_of_the_shares_is_that_of_the_theory():
    """All 900 /s at the two servers of asia: n = 0.1 * 900 / (2 - 0.002 * 900) = 450 at each, and 900 * 40 ms under way."""
    scenario = curved()
    wanted = demand(scenario, PathDelays(build_topology(scenario)))
    point = at_optimum(wanted)
    all_at_asia = np.tile([0.0, 0.0, 1.0], (3, 1))

    found = model_in_system(wanted, np.stack([point.shares, all_at_asia]))

    assert found == pytest.approx([point.in_system, 2 * 450 + 36])
    twice = replace(wanted, rates_per_s=2 * wanted.rates_per_s)
    assert model_in_system(twice, all_at_asia[np.newaxis]).tolist() == [math.inf]


def test_shares_at_the_optimum_deviate_by_nothing_and_all_in_one_cell_by_what_should_be_elsewhere():
    scenario = curved("static")
    requests = made_requests(scenario, steady(0.44, 0.34, 0.22))
    best = regimes_of(scenario, requests, WINDOW)[0].optimum_shares

    def streams(shares):
        return [
            StreamShares(f"root.{root}", "sand", "fixed", 1 / 3, np.array([5.0]), shares[np.newaxis, i])
            for i, root in enumerate(scenario.roots)
        ]

    at_best = deviation(scenario, {"requests": requests}, streams(best), WINDOW)
    astray = np.zeros_like(best)
    astray[:, 0] = 1.0
    all_at_us = deviation(scenario, {"requests": requests}, streams(astray), WINDOW)

    assert at_best.dev_x == pytest.approx(0.0, abs=1e-12)
    assert at_best.dev_f_shares == pytest.approx(0.0, abs=1e-9)
    assert all_at_us.dev_x == pytest.approx(1.0 - best[:, 0].mean(), abs=1e-9)
    assert all_at_us.dev_f_shares > 0.1
    assert at_best.dev_f == pytest.approx(at_best.in_system / at_best.in_system_optimum - 1.0)


def test_the_shares_of_an_update_count_for_as_long_as_they_hold():
    """Two thirds of the window at the optimum, one third all in us."""
    scenario = curved("static", roots={"west": made_scenario("static").roots["west"]})
    requests = made_requests(scenario, steady(0.44, 0.34, 0.22), rate_per_s=300.0)
    best = regimes_of(scenario, requests, WINDOW)[0].optimum_shares[0]
    shares = np.array([best, [1.0, 0.0, 0.0]])
    stream = StreamShares("root.west", "sand", "moved", 1.0, np.array([5.0, 15.0]), shares)

    found = deviation(scenario, {"requests": requests}, [stream], WINDOW)

    assert found.dev_x == pytest.approx((1.0 - best[0]) / 3)


def test_discrete_policies_have_no_bound_and_flow_has_a_conjecture():
    flow, greedy = curved("flow"), curved("greedy")
    shares = steady(0.44, 0.34, 0.22)
    requests = made_requests(flow, shares)
    moved = {"requests": requests, "updates": made_updates(flow, shares)}

    bound = deviation(flow, moved, stream_shares(flow, moved, WINDOW), WINDOW).bound
    refused = deviation(
        greedy, {"requests": requests}, stream_shares(greedy, {"requests": requests}, WINDOW), WINDOW
    )

    assert bound is not None
    assert bound.fraction is not None
    assert bound.from_steps == pytest.approx(0.0, abs=1e-30)  # equal costs have no centred gradient
    assert "depends on requests in flight" in bound.conjecture_because[0]
    assert refused.bound is not None
    assert refused.bound.fraction is None
    assert math.isnan(refused.dev_f_shares)


def test_a_slow_cell_has_an_optimum_of_its_own_from_then_on():
    scenario = curved("flow", faults=[{"at": "12 s", "cell": "eu", "set": {"speed": 0.4}}])
    requests = made_requests(scenario, steady(0.44, 0.34, 0.22))

    before, after = regimes_of(scenario, requests, WINDOW)

    assert (before.window, after.window) == (Window(5.0, 12.0), Window(12.0, 20.0))
    assert after.optimum > before.optimum
    assert after.optimum_shares[:, 1].sum() < 0.6 * before.optimum_shares[:, 1].sum()


def test_where_cells_cannot_carry_the_load_there_is_no_optimum():
    scenario = curved("flow")
    requests = made_requests(scenario, steady(0.44, 0.34, 0.22), rate_per_s=5000.0)

    assert regimes_of(scenario, requests, WINDOW) == []
    assert math.isnan(deviation(scenario, {"requests": requests}, [], WINDOW).dev_f)
