"""Scenarios for tests, as the words of a scenario file."""

from __future__ import annotations

from typing import Any

import yaml

from testbed.scenario.schema import Scenario

# The scenario `herding` with one arm.
HERDING = """
name: herding
duration: 20 s
warmup: 5 s
seed: 1
cells:
  us:   {servers: 4, profile: llama3-8b_a100_tp1_composed}
  eu:   {servers: 3, profile: llama3-8b_a100_tp1_composed}
  asia: {servers: 2, profile: llama3-8b_a100_tp1_composed}
roots:
  west:  {traffic: [{class: sand, rate: 350 /s, policy: flow}], allowed: [us, eu, asia]}
  north: {traffic: [{class: sand, rate: 350 /s, policy: flow}]}
  south: {traffic: [{class: sand, load: 0.149, policy: flow}]}
reports: {every: 100 ms, phase: staggered}
classes:
  sand: {prompt_tokens: {lognormal: {mean: 48, cv: 1}}, output_tokens: {geometric: {mean: 8}}, timeout: 10 s}
policies:
  flow:   {kind: flow, cost: marginal, model: scaled, step: 0.12 /s^2, interval: 100 ms}
  greedy: {kind: least_cost, cost: in_flight_per_capacity}
  even:   {kind: random}
links:
  - {from: root.*, to: cell.*, path: request,     delay: 20 ms, jitter: {normal: 2 ms}}
  - {from: cell.*, to: root.*, path: reply,       delay: 20 ms}
  - {from: cell.*, to: root.*, path: observation, delay: 500 ms, loss: 1 %}
"""


def herding(**changes: Any) -> Scenario:
    """The scenario `herding`, with top-level keys replaced."""
    return Scenario.model_validate(yaml.safe_load(HERDING) | changes)


def scene(text: str, **changes: Any) -> Scenario:
    """A short scenario: one rate-curve cell `home` and a root `west` unless the text says otherwise."""
    words = {
        "name": "scene",
        "duration": "10 s",
        "cells": {"home": {"servers": 1, "service": {"rate_curve": {"capacity": "100 /s", "half": 10.0}}}},
        "classes": {"sand": {}},
        "policies": {"even": {"kind": "random"}},
    }
    return Scenario.model_validate(words | yaml.safe_load(text) | changes)


def one_line(line: str, **changes: Any) -> Scenario:
    """A scene with one root `west` and one line of traffic; `line` leaves out class and policy."""
    return scene(f"roots: {{west: {{traffic: [{{class: sand, policy: even, {line}}}]}}}}", **changes)
