"""What `static_optimal` is told: the optimum of the plan, per line, where it is asked for."""

from __future__ import annotations

import pytest

from testbed.analysis.summary import summarize_arm
from testbed.record.split_file import load_split
from testbed.scenario.load import scenario_from_text
from testbed.scenario.topology import build_topology
from testbed.theory.optimal_split import optimal_shares
from tests.laws.virtual_run import run_text

TWO_CURVES = """
name: split
duration: 20 s
warmup: 4 s
cells:
  big:   {servers: 1, service: {rate_curve: {capacity: 200 /s, half: 20}, work: exponential}}
  small: {servers: 1, service: {rate_curve: {capacity: 50 /s, half: 5}, work: exponential}}
roots:
  a: {traffic: [{class: c, rate: 100 /s, policy: best}, {class: c, rate: 25 /s, policy: other}]}
classes: {c: {}}
policies: {best: {kind: static_optimal}, other: {kind: random}}
"""


def test_the_shares_make_all_marginal_costs_equal() -> None:
    """Both curves have the same N0/C, so 1/l' is equal where rho is: 4 to 1, less what the other line brings."""
    scenario = scenario_from_text(TWO_CURVES).arms["main"]

    shares = optimal_shares(scenario, build_topology(scenario))

    assert list(shares) == ["root.a:0"]
    assert sum(shares["root.a:0"]) == pytest.approx(1.0)
    assert shares["root.a:0"] == pytest.approx([0.8, 0.2], abs=1e-6)


def test_a_scenario_without_the_policy_needs_no_optimum() -> None:
    scenario = scenario_from_text(TWO_CURVES.replace("static_optimal", "random")).arms["main"]

    assert optimal_shares(scenario, build_topology(scenario)) == {}


def test_a_run_deals_by_them_and_keeps_them_on_file(tmp_path) -> None:
    run = run_text(
        tmp_path / "main", TWO_CURVES.replace("rate: 25 /s, policy: other", "rate: 1 /s, policy: other")
    )
    cells = summarize_arm(run.scenario, run.tables, run.outcome, ())["cells"]

    (told,) = load_split(run.folder).values()
    assert cells["big"]["share"] == pytest.approx(told[0], abs=4 * (0.16 / 1600) ** 0.5)
