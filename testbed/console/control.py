"""The words of `testbed control`: from the command line to a line of the timeline, checked before it is ordered."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from testbed.errors import ScenarioError, UsageError
from testbed.record.run_folder import ArmFolder, RunFolder
from testbed.runtime.hand import NOTE, ask
from testbed.scenario.fault_plan import ordered_fault
from testbed.scenario.load import scenario_from_text
from testbed.scenario.topology import build_topology

TARGETS = ("cell", "server", "leaf", "root")
SHORTHANDS: dict[str, dict[str, Any]] = {
    "pause": {"pause": True},
    "kill": {"kill": True},
    "freeze": {"telemetry": "frozen"},
}
ACTIONS = ("set", "pause", "resume", "kill", "restart", "freeze", "speed", "spike", "heal", "status")


def running_arm(path: Path) -> ArmFolder:
    """The arm that runs now in a folder of a run, or that folder itself.

    Raises:
        UsageError: none does.
    """
    folders = [ArmFolder(path)]
    if RunFolder(path).manifest.exists():
        folders += RunFolder(path).arms()
    for folder in folders:
        if (folder.path / NOTE).exists():
            return folder
    raise UsageError(f"{path}: no live run goes on there")


def order(
    path: Path, action: str, words: Sequence[str], target: dict[str, str | None], lasts: str | None
) -> tuple[bool, list[str]]:
    """Order something of the run in this folder; whether it was done, and what the run says.

    Args:
        path: folder of the run.
        action: one of `ACTIONS`.
        words: `key=value` of `set`, the factor of `speed` and of `spike`, the numbers of `heal`.
        target: of `TARGETS`, and `from`, `to`, `path` of links; None: not given.
        lasts: for how long; None: until it is healed.

    Raises:
        UsageError: the words are wrong; nothing has changed.
        RunError: no run goes on there, or it does not answer.
    """
    if action not in ACTIONS:
        raise UsageError(f"control: unknown action {action!r}; accepted: {', '.join(ACTIONS)}")
    folder = running_arm(path)
    if action == "status":
        return ask(folder, {"action": "status"})
    if action == "heal":
        return ask(folder, {"action": "heal", "numbers": [_number(word) for word in words]})
    setting = _setting(action, words)
    line = {**_whom(target), "set": setting}
    nodes = _checked(folder, line, lasts)
    if action == "resume":
        return ask(folder, {"action": "heal", "key": "pause", "nodes": nodes})
    if action == "restart":
        return ask(folder, {"action": "restart", "nodes": nodes, "line": line})
    return ask(folder, {"action": "set", "line": {**line, **({"for": lasts} if lasts else {})}})


def _setting(action: str, words: Sequence[str]) -> dict[str, Any]:
    if action == "speed":
        if len(words) != 1:
            raise UsageError("control speed: accepted: one factor, such as 0.5")
        return {"speed": _value(words[0])}
    if action == "spike":
        if len(words) != 1:
            raise UsageError("control spike: accepted: one factor on the arrivals, such as x3")
        return {"demand": words[0]}
    if action in ("resume", "restart"):
        action = {"resume": "pause", "restart": "kill"}[action]
    if action in SHORTHANDS:
        if words:
            raise UsageError(
                f"control {action}: {words[0]!r} is too much; accepted: whom, such as --server us/server-1"
            )
        return SHORTHANDS[action]
    setting = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key:
            raise UsageError(f"control set: {word!r}; accepted: KEY=VALUE, such as delay=2s")
        setting[key] = _value(value)
    return setting


def _value(text: str) -> Any:
    """A number, a flag, a text, or a mapping such as {normal: 2 ms}."""
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise UsageError(
            f"control: {text!r} is not a value; accepted: such as 2s, 0.5, {{normal: 2 ms}}"
        ) from error


def _whom(target: dict[str, str | None]) -> dict[str, Any]:
    link = {key: target[key] for key in ("from", "to", "path") if target.get(key) is not None}
    nodes = {key: target[key] for key in TARGETS if target.get(key) is not None}
    return {**nodes, **({"link": link} if link else {})}


def _number(word: str) -> int:
    if not word.isdecimal():
        raise UsageError(
            f"control heal: {word!r}; accepted: numbers of faults, as `control RUN status` has them"
        )
    return int(word)


def _checked(folder: ArmFolder, line: dict[str, Any], lasts: str | None) -> list[str]:
    """The nodes that a line touches, by the rules of scenario files.

    Raises:
        UsageError: what is wrong with it, in the words of `check`.
    """
    words = yaml.safe_load(folder.scenario.read_text())
    place = len(words.get("faults", []))
    words["faults"] = [*words.get("faults", []), {"at": "0 s", **({"for": lasts} if lasts else {}), **line}]
    try:
        (scenario,) = scenario_from_text(json.dumps(words)).arms.values()
    except ScenarioError as error:
        found = [_without_place(fault.text(""), f"faults[{place}]") for fault in error.faults]
        raise UsageError("control: " + "; ".join(found)) from error
    topology = build_topology(scenario)
    fault = ordered_fault(scenario, topology, 0, scenario.faults[-1], 0.0, math.inf)
    return list(fault.nodes)


def _without_place(text: str, place: str) -> str:
    """What is wrong with an order, without the line and the place that it would have in the scenario."""
    return re.sub(r"^:\d+: ", "", text).replace(f"{place}: ", "").replace(f"{place}.", "")
