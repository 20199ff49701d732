"""The JSON Schema accepts what the loader accepts, and refuses what only a typing slip would give."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from testbed.scenario.json_schema import DIALECT, json_schema
from testbed.scenario.load import dump_scenario, load_scenario, scenario_from_text
from tests.scenario.test_load import EVERYTHING, HERDING

SCENARIOS = sorted((Path(__file__).parents[2] / "scenarios").glob("**/*.yaml"))
VALIDATOR = jsonschema.Draft202012Validator(json_schema())


def errors(text: str) -> list[str]:
    return [error.message for error in VALIDATOR.iter_errors(yaml.safe_load(text))]


def test_the_schema_is_a_schema_of_its_dialect() -> None:
    jsonschema.Draft202012Validator.check_schema(json_schema())

    assert json_schema()["$schema"] == DIALECT


@pytest.mark.parametrize("path", SCENARIOS, ids=[path.stem for path in SCENARIOS])
def test_every_shipped_scenario_is_valid(path: Path) -> None:
    assert errors(path.read_text()) == []


@pytest.mark.parametrize("text", [HERDING, EVERYTHING], ids=["herding", "everything"])
def test_scenarios_that_load_are_valid_and_so_is_what_is_written_of_them(text: str) -> None:
    assert errors(text) == []
    for scenario in scenario_from_text(text).arms.values():
        assert errors(dump_scenario(scenario)) == []


@pytest.mark.parametrize("path", SCENARIOS, ids=[path.stem for path in SCENARIOS])
def test_what_is_written_of_a_shipped_scenario_is_valid(path: Path) -> None:
    for scenario in load_scenario(path).arms.values():
        assert errors(dump_scenario(scenario)) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("delay: 20 ms", "delay: 20"),
        ("delay: 20 ms", "delay: 20 sec"),
        ("delay: 20 ms", "dealy: 20 ms"),
        ("servers: 4", "servers: 0"),
        ("servers: 4", "servers: 4.5"),
        ("servers: 4, ", ""),
        ("path: request", "path: requests"),
        ("kind: random", "kind: randm"),
        ("step: 0.12 /s^2", "step: 0.12"),
        ("geometric: {mean: 8}", "geometric: {mean: 0.5}"),
        ("loss: 1 %", "loss: 0.01"),
        ("- greedy: oscillation", "- 3\n  - greedy: oscillation"),
        ("seed: 1", "seed:"),
        ("seed: 1", "sede: 1"),
    ],
)
def test_slips_are_refused(old: str, new: str) -> None:
    assert old in HERDING

    assert errors(HERDING.replace(old, new, 1)) != []


def test_tokens_may_be_a_whole_number() -> None:
    tokens: dict[str, Any] = json_schema()["$defs"]["Tokens"]

    assert {"type": "integer", "minimum": 1} in tokens["anyOf"]
