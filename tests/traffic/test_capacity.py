"""Rates, loads and capacities as measures.md section 1 defines them."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.traffic.capacity import (
    allowed_cells,
    cell_capacity_per_s,
    cell_curve,
    line_rates,
    peak_rates,
    stage_rates,
    token_means,
    traffic_rates,
)
from tests.traffic.scenes import herding, one_line, scene


def test_a_profile_gives_the_curve_of_one_server() -> None:
    """alpha = O a, beta = (O - 1)(b + c (P + O/2)) + prefill_b P, with the coefficients of the profile."""
    curve = cell_curve(herding(), "us", 48.0, 8.0)

    assert curve.alpha_s == pytest.approx(8 * 11.0503e-3)
    assert curve.beta_s == pytest.approx(7 * (0.046302e-3 + 8.21681e-8 * 52) + 0.0723242e-3 * 48)
    assert curve.n_cap == 256


def test_the_capacity_of_a_cell_is_its_servers_rates_at_the_cap() -> None:
    scenario = herding()
    curve = cell_curve(scenario, "us", 48.0, 8.0)

    assert cell_capacity_per_s(scenario, "us", 48.0, 8.0) == pytest.approx(
        4 * 256 / (curve.alpha_s + 256 * curve.beta_s)
    )


def test_a_cells_own_limits_lower_its_cap() -> None:
    cells = {"us": {"servers": 1, "profile": "llama3-8b_a100_tp1_composed", "max_sequences": 64}}
    tight = {"us": {"servers": 1, "profile": "llama3-8b_a100_tp1_composed", "kv_tokens": 600}}
    roots = {"west": {"traffic": [{"class": "sand", "rate": "1 /s", "policy": "even"}]}}

    assert cell_curve(herding(cells=cells, roots=roots), "us", 48.0, 8.0).n_cap == 64
    assert cell_curve(herding(cells=tight, roots=roots), "us", 48.0, 8.0).n_cap == 10


@pytest.mark.parametrize(
    ("service", "alone_s", "capacity_per_s"),
    [
        ({"slots": 16, "exponential": "2 s"}, 2.0 + 2.0 / 16, 8.0),
        ({"slots": 1, "fixed": "10 ms"}, 0.02, 100.0),
        ({"sharing": {"allocation": 4.0}, "exponential": "2 s"}, 2.0 + 2.0 / 4, 2.0),
        ({"rate_curve": {"capacity": "50 /s", "half": 100.0}}, 101 / 50, 50.0),
    ],
)
def test_service_models_have_a_curve_with_their_capacity(
    service: dict[str, object], alone_s: float, capacity_per_s: float
) -> None:
    scenario = one_line("rate: 1 /s", cells={"home": {"servers": 3, "service": service}})

    assert cell_curve(scenario, "home", 1.0, 1.0).latency_s(1.0) == pytest.approx(alone_s)
    assert cell_capacity_per_s(scenario, "home", 1.0, 1.0) == pytest.approx(3 * capacity_per_s)


def test_a_load_is_a_share_of_the_capacity_of_the_allowed_cells() -> None:
    scenario = herding()

    capacity = sum(cell_capacity_per_s(scenario, cell, 48.0, 8.0) for cell in scenario.cells)

    assert traffic_rates(scenario) == pytest.approx(
        {("west", 0): 350.0, ("north", 0): 350.0, ("south", 0): 0.149 * capacity}
    )


def test_a_line_of_traffic_may_narrow_what_its_root_allows() -> None:
    scenario = scene(
        """
        cells:
          a: {servers: 1, service: {slots: 1, fixed: 10 ms}}
          b: {servers: 2, service: {slots: 1, fixed: 10 ms}}
          c: {servers: 4, service: {slots: 1, fixed: 10 ms}}
        roots:
          west:
            allowed: [b, a]
            traffic:
              - {class: sand, policy: even, load: 0.5}
              - {class: sand, policy: even, load: 0.5, allowed: [b]}
        """
    )

    assert allowed_cells(scenario, "west") == ("a", "b")
    assert allowed_cells(scenario, "west", 1) == ("b",)
    assert traffic_rates(scenario) == pytest.approx({("west", 0): 150.0, ("west", 1): 100.0})


MIXED = """
cells: {us: {servers: 2, profile: llama3-8b_a100_tp1_composed}}
classes:
  sand: {prompt_tokens: 48, output_tokens: 8}
  boulder: {prompt_tokens: 2000, output_tokens: 200}
roots:
  west:
    traffic:
      - {class: sand, policy: even, %s}
      - {class: boulder, policy: even, load: 0.3}
"""


@pytest.mark.parametrize("first", ["load: 0.2", "rate: 100 /s"])
def test_loads_and_the_mix_of_their_root_agree(first: str) -> None:
    """The mix follows the rates, the capacity the mix, and the rates of loads the capacity: all at once."""
    scenario = scene(MIXED % first)

    rates = [line.rate_per_s for line in line_rates(scenario, "west")]
    prompt, output = token_means(scenario, "west")
    capacity = cell_capacity_per_s(scenario, "us", prompt, output)

    total = sum(rates)
    assert prompt == pytest.approx((48 * rates[0] + 2000 * rates[1]) / total)
    assert output == pytest.approx((8 * rates[0] + 200 * rates[1]) / total)
    assert rates[1] == pytest.approx(0.3 * capacity)
    assert rates[0] == pytest.approx(100.0 if "rate" in first else 0.2 * capacity)


def test_stages_have_a_mean_and_a_peak() -> None:
    """Nothing for 2 s, 50/s for 3 s, then 0.8 of 100/s for 5 s."""
    scenario = one_line("stages: [{at: 2 s, rate: 50 /s}, {at: 5 s, load: 0.8}, {at: 30 s, rate: 999 /s}]")

    assert traffic_rates(scenario)["west", 0] == pytest.approx((3 * 50 + 5 * 80) / 10)
    assert stage_rates(scenario, "west", 0) == pytest.approx([50.0, 80.0, 999.0])


def test_the_peak_is_the_busiest_stage_that_the_run_reaches() -> None:
    scenario = one_line("stages: [{at: 2 s, rate: 50 /s}, {at: 5 s, load: 0.8}, {at: 30 s, rate: 999 /s}]")

    assert peak_rates(scenario) == pytest.approx({("west", 0): 80.0})


def test_a_trace_brings_its_own_rate_and_tokens(tmp_path: Path) -> None:
    """One row a second, replayed twice as fast from second 10 for 10 s of the file, three to one."""
    rows = "".join(f"2023-11-16 18:00:{i:02},{100 + i},{10 + i}\n" for i in range(60))
    path = tmp_path / "trace.csv"
    path.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n" + rows)
    scenario = scene(
        f"""
        traces: {{conv: {{path: {path}, format: azure, rate_factor: 2.0, from: 10 s, for: 10 s}}}}
        roots:
          west: {{traffic: [{{class: sand, policy: even, trace: conv, weight: 3.0}}]}}
          east: {{traffic: [{{class: sand, policy: even, trace: conv}}]}}
        """
    )

    assert traffic_rates(scenario) == pytest.approx({("west", 0): 1.5, ("east", 0): 0.5})
    assert token_means(scenario, "west") == pytest.approx((114.5, 24.5))
    doubled = scenario.model_copy(update={"time_scale": 2.0}).scaled()
    assert traffic_rates(doubled) == pytest.approx({("west", 0): 0.75, ("east", 0): 0.25})


def test_rates_halve_to_the_bit_in_run_time_at_time_scale_two() -> None:
    scenario = herding(time_scale=2.0)

    rates, scaled = traffic_rates(scenario), traffic_rates(scenario.scaled())

    assert {line: rate / 2 for line, rate in rates.items()} == scaled
