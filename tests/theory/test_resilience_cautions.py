"""Warnings about guards that are known to make failures worse."""

from __future__ import annotations

import pytest

from testbed.scenario.load import scenario_from_text
from testbed.theory.resilience_cautions import resilience_cautions

TEXT = """
name: guards
duration: 10 s
cells: {{us: {{servers: 4, service: {{slots: 2, exponential: 40 ms}}{cell}}}}}
roots: {{a: {{traffic: [{{class: sand, rate: 100 /s, policy: even}}]}}}}
classes: {{sand: {{timeout: 1 s{sand}}}}}
policies: {{even: {{kind: random}}}}
"""
STORM = "sand's retries have no budget: when many requests fail, the load is multiplied by up to 3"


def warnings(sand="", cell=""):
    scenario = scenario_from_text(TEXT.format(sand=sand, cell=cell)).arms["main"]
    return list(resilience_cautions(scenario))


@pytest.mark.parametrize(
    ("sand", "cell", "expected"),
    [
        ("", "", []),
        (", retries: {}", "", [STORM]),
        (", retries: {budget: 10 %}", "", []),
        ("", ", leaf: {retries: {attempts: 2}}", ["us's leaves' retries have no budget: when many requests fail, the load is multiplied by up to 2"]),
        (", retries: {budget: 10 %}", ", leaf: {retries: {budget: 10 %}}", []),
        ("", ", autoscaler: {in_flight: 2, reaction: 2 s, start_up: 3 s, cooldown: 5 s}", []),
        ("", ", autoscaler: {in_flight: 2, reaction: 500 ms}", []),
        (
            "",
            ", autoscaler: {in_flight: 2, reaction: 2 s, start_up: 3 s, cooldown: 4 s}",
            ["us's autoscaler changes again 4 s after a change that shows only after 5 s (reaction and start-up): it may swing between its bounds"],
        ),
    ],
)  # fmt: skip
def test_a_guard_that_may_make_it_worse_is_warned_of(sand, cell, expected):
    assert warnings(sand, cell) == expected


def test_two_tiers_that_multiply_their_retries_are_warned_of():
    assert "roots and us's leaves both retry sand: up to 9 servers get each request" in warnings(
        ", retries: {}", ", leaf: {retries: {}}"
    )
