"""A scenario file to its arms: read, overridden, checked, with all faults of the file told at once.

file -> tree of values with their lines -> `--set` -> one tree per arm -> checked `Scenario` per arm, and the
expectations. Only faults of the YAML itself (no mapping at all) end the reading early.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import yaml
from pydantic import ValidationError

from testbed.errors import Fault, ScenarioError, UsageError
from testbed.scenario.accepted import FILE_KEYS, keys_of
from testbed.scenario.arms import override, override_from_text
from testbed.scenario.expectation import ACCEPTED, Expectation, ExpectationError, parse_expectation
from testbed.scenario.references import bad_names, cross_faults, cross_faults_of_parts, name_faults
from testbed.scenario.schema import Scenario
from testbed.scenario.spelling import listed, nearest
from testbed.scenario.wording import null_faults, shown, validation_faults
from testbed.scenario.yaml_tree import Entry, Tree, read_yaml

MAIN_ARM = "main"  # the name of the one arm of a file that names none
MAX_BYTES = 4_000_000  # a hundred times the longest scenario; what is larger is some other kind of file


@dataclass(frozen=True)
class ScenarioFile:
    """A scenario file with its faults ruled out.

    Attributes:
        path: the file.
        name: the scenario's name.
        comment: the comment that opens the file, without its marks: its question, and what to expect.
        arms: the scenario of every selected arm, in the order of the file.
        expectations: those that the selected arms suffice for.
    """

    path: Path
    name: str
    comment: str
    arms: dict[str, Scenario]
    expectations: tuple[Expectation, ...]


def load_scenario(
    path: str | Path, overrides: Sequence[tuple[str, str]] = (), arms: Sequence[str] = ()
) -> ScenarioFile:
    """Read a scenario file.

    Args:
        path: the file.
        overrides: (path of keys, YAML text of the value) from the command line, made before those of the arms.
        arms: the arms to select; all, unless given. All are checked.

    Raises:
        ScenarioError: all faults of the file.
        UsageError: an arm that the file does not have is selected.
    """
    return scenario_from_text(_read(path), str(path), overrides, arms)


def scenario_from_text(
    text: str, file: str = "scenario", overrides: Sequence[tuple[str, str]] = (), arms: Sequence[str] = ()
) -> ScenarioFile:
    """The same as `load_scenario` for text; `file` is its name in messages."""
    root, faults = _overridden(read_yaml(text), overrides)
    if not isinstance(root.content, dict):
        raise ScenarioError(file, faults or [_no_mapping(root)])
    trees, arm_faults = _arm_trees(root)
    scenarios, scenario_faults = _checked(trees)
    expectations, expectation_faults = _expectations(root, list(trees), scenarios)
    faults += arm_faults + scenario_faults + expectation_faults
    if faults:
        raise ScenarioError(file, list(dict.fromkeys(faults)))
    selected = _selected(scenarios, arms)
    return ScenarioFile(
        path=Path(file),
        name=next(iter(scenarios.values())).name,
        comment=_opening_comment(text),
        arms=selected,
        expectations=tuple(each for each in expectations if set(each.arms) <= selected.keys()),
    )


def dump_scenario(scenario: Scenario) -> str:
    """YAML text that loads to an equal scenario: every default written out, every quantity exact."""
    words = scenario.model_dump(by_alias=True, exclude_none=True, mode="json")
    return yaml.safe_dump(words, sort_keys=False, allow_unicode=True, width=110)


def _read(path: str | Path) -> str:
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        problem = f"cannot be read: {error.strerror or error}"
        raise ScenarioError(str(path), [Fault(0, "", problem)]) from error
    except ValueError as error:  # a null character in the name
        raise ScenarioError(repr(str(path)), [Fault(0, "", f"cannot be read: {error}")]) from error
    if len(data) > MAX_BYTES:
        raise ScenarioError(str(path), [Fault(0, "", "too large", f"up to {MAX_BYTES} bytes")])
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        fault = Fault(line, "", f"byte {data[error.start]:#04x} is not UTF-8", "UTF-8 text")
        raise ScenarioError(str(path), [fault]) from error


def _overridden(tree: Tree, overrides: Sequence[tuple[str, str]]) -> Tree:
    root, faults = tree
    if isinstance(root.content, dict):
        for path, text in overrides:
            root, more = override_from_text(root, path, text)
            faults += more
    return Tree(root, faults)


def _no_mapping(root: Entry) -> Fault:
    said = "the file is empty" if root.content is None else f"{shown(root)} is given, not a mapping"
    return Fault(root.line, "", said, f"a mapping with the keys {listed((*keys_of(Scenario), *FILE_KEYS))}")


def _arm_trees(root: Entry) -> tuple[dict[str, Entry], list[Fault]]:
    """The scenario of each arm, its overrides made but nothing checked."""
    parts = root.mapping()
    base = replace(root, content={key: each for key, each in parts.items() if key not in ("arms", "expect")})
    arms = parts.get("arms")
    if arms is None or arms.content in (None, {}):
        return {MAIN_ARM: base}, []
    if not isinstance(arms.content, dict):
        problem = f"{shown(arms)} is given, not a mapping"
        return {MAIN_ARM: base}, [arms.fault(problem, "a mapping from each arm to its overrides")]
    trees, faults = {}, bad_names(root, "arms")
    for name, changes in arms.content.items():
        trees[name], more = override(base, changes)
        faults += more
        if not isinstance(changes.content, dict | None) and not changes.broken:
            problem = f"{shown(changes)} is given, not a mapping"
            faults.append(changes.fault(problem, "a mapping from paths of keys to values"))
    return trees, faults


def _checked(trees: dict[str, Entry]) -> tuple[dict[str, Scenario], list[Fault]]:
    """The scenario of every arm that has no fault; a fault of some arms only says of which."""
    scenarios: dict[str, Scenario] = {}
    found: dict[Fault, list[str]] = {}
    for arm, tree in trees.items():
        scenario, faults = _check(tree)
        if scenario is not None:
            scenarios[arm] = scenario
        for fault in dict.fromkeys(faults):
            found.setdefault(fault, []).append(arm)
    return scenarios, [_with_arms(fault, arms, trees) for fault, arms in found.items()]


def _with_arms(fault: Fault, arms: list[str], trees: Collection[str]) -> Fault:
    if len(arms) == len(trees) or fault.key.startswith("arms."):
        return fault
    return replace(fault, problem=f"{fault.problem} (in arm {listed(arms)})")


def _check(tree: Entry) -> tuple[Scenario | None, list[Fault]]:
    faults = name_faults(tree) + null_faults(tree)
    try:
        scenario = Scenario.model_validate(tree.plain(), by_alias=True, by_name=False)
    except ValidationError as error:
        return None, validation_faults(error, tree) + faults + cross_faults_of_parts(error, tree)
    return scenario, faults + cross_faults(scenario, tree)


def _expectations(
    root: Entry, arms: list[str], scenarios: dict[str, Scenario]
) -> tuple[list[Expectation], list[Fault]]:
    expect = root.child("expect")
    if expect is None or expect.content is None:
        return [], []
    if not isinstance(expect.content, list):
        return [], [
            expect.fault(f"{shown(expect)} is given, not a list", f"a list, each item arm: {ACCEPTED}")
        ]
    expectations: list[Expectation] = []
    faults: list[Fault] = []
    for item in expect.content:
        entries = list(item.mapping().items())
        if len(entries) != 1:
            faults += _no_expectation(item, len(entries))
            continue
        arm, entry = entries[0]
        try:
            expectation = parse_expectation(arm, _text(entry), arms=arms, line=entry.line)
            _check_names(expectation, scenarios)
        except ExpectationError as error:
            faults += [] if entry.broken else [entry.fault(str(error), error.accepted)]
        else:
            expectations.append(expectation)
    return expectations, faults


def _no_expectation(item: Entry, keys: int) -> list[Fault]:
    said = f"{keys} keys given, 1 due" if keys else f"{shown(item)} is given, not a mapping"
    return [] if item.broken else [item.fault(said, f"arm: {ACCEPTED}")]


def _text(entry: Entry) -> str:
    if not isinstance(entry.content, str):
        raise ExpectationError(f"{shown(entry)} is given, not an expectation", ACCEPTED)
    return entry.content


def _check_names(expectation: Expectation, scenarios: dict[str, Scenario]) -> None:
    """A metric of one cell or class has to name one that its arm has."""
    sides = ((expectation.arm, expectation.metric), (expectation.other_arm, expectation.other_metric))
    for arm, metric in sides:
        words = (metric or "").split(".")
        scenario = scenarios.get(arm or "")
        if scenario is None or len(words) < 2 or words[0] not in ("cells", "classes"):
            continue
        known = list(scenario.cells if words[0] == "cells" else scenario.classes)
        if words[1] not in known:
            raise ExpectationError(
                f"{words[1]!r} is not in {words[0]}{nearest(words[1], known)}", listed(known)
            )


def _selected(scenarios: dict[str, Scenario], arms: Sequence[str]) -> dict[str, Scenario]:
    for arm in arms:
        if arm not in scenarios:
            raise UsageError(f"{arm!r} is not an arm{nearest(arm, scenarios)}; accepted: {listed(scenarios)}")
    return {name: each for name, each in scenarios.items() if not arms or name in arms}


def _opening_comment(text: str) -> str:
    lines = []
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.removeprefix("#").removeprefix(" ").rstrip())
    return "\n".join(lines).strip()
