"""A scenario file with what the command line changes: keys by path, another seed, fewer arms."""

from __future__ import annotations

from pathlib import Path

from testbed.errors import UsageError
from testbed.scenario.load import ScenarioFile, load_scenario


def load_file(
    scenario: Path, overrides: list[str] | None, seed: int | None, arms: list[str] | None
) -> ScenarioFile:
    """A scenario file with what the command line changes.

    Raises:
        ScenarioError: the file is wrong; UsageError: an override is none.
    """
    return load_scenario(scenario, pairs_of(overrides, seed), tuple(arms or ()))


def pairs_of(overrides: list[str] | None, seed: int | None) -> tuple[tuple[str, str], ...]:
    """The keys that a command line changes, by path, with their text; a seed among them.

    Raises:
        UsageError: an override is not PATH=VALUE.
    """
    pairs = []
    for text in overrides or ():
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"--set {text!r}: accepted: PATH=VALUE, such as reports.every='200 ms'")
        pairs.append((key.strip(), value))
    if seed is not None:
        pairs.append(("seed", str(seed)))
    return tuple(pairs)
