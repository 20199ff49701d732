"""What pydantic has to say about a scenario, in the words of its author: place, problem, what is accepted.

A validation error names a place by keys and by marks of unions. Its keys are followed through the tree of
the file (for line and path) and through the annotations of the schema (for what is accepted) side by side; the
marks are in neither and drop out.
"""

from __future__ import annotations

import math
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from testbed.errors import Fault
from testbed.scenario.accepted import FILE_KEYS, POLICY_CHOICES, Slot, describe, keys_of, noun
from testbed.scenario.schema import Scenario
from testbed.scenario.spelling import listed, nearest, nearest_word
from testbed.scenario.yaml_tree import Entry, shortened

_RANGE_ERRORS = frozenset(
    ("greater_than", "greater_than_equal", "less_than", "less_than_equal", "finite_number")
)


def validation_faults(error: ValidationError, tree: Entry) -> list[Fault]:
    """The faults behind a validation error of a scenario whose values are in the tree."""
    details = error.errors(include_url=False)
    misspelt = {_meant(each, tree) for each in details if each["type"] == "extra_forbidden"}
    faults = (_fault(each, tree) for each in details if _missing_key(each, tree) not in misspelt)
    return [fault for fault in faults if fault is not None]


def null_faults(entry: Entry, slot: Slot | None = None) -> list[Fault]:
    """Keys without a value: a schema takes them for left out, but their author has forgotten something.

    An override without a value takes its key away, so that none of these is left by an arm.
    """
    slot = slot or Slot(Scenario)
    if entry.content is None and not entry.broken:
        return [wrong_value(entry, slot)]
    faults: list[Fault] = []
    steps = range(len(entry.content)) if isinstance(entry.content, list) else entry.mapping()
    for step in steps:
        there, inner = entry.child(step), slot.inner(step, entry)
        if there is not None and inner is not None and inner.annotation is not Any:
            faults += null_faults(there, inner)
    return faults


def _missing_key(error: ErrorDetails, tree: Entry) -> tuple[str, str]:
    """The group and the key that an error says is missing; empty for other errors."""
    if error["type"] != "missing":
        return "", ""
    entry, _, key = _follow(error, tree)
    return entry.key, str(key)


def _meant(error: ErrorDetails, tree: Entry) -> tuple[str, str | None]:
    """The group and the known key that an unknown key comes nearest to."""
    entry, known = _known_keys(error, tree)
    return entry.key, nearest_word(str(error["loc"][-1]), known)


def _known_keys(error: ErrorDetails, tree: Entry) -> tuple[Entry, tuple[str, ...]]:
    """The group that has an unknown key, and the keys it may have."""
    entry, slot, _ = _follow({**error, "loc": error["loc"][:-1]}, tree)
    words = next((each.words for each in slot.fitting(entry) if each.words is not None), Scenario)
    return entry, keys_of(words) + (FILE_KEYS if words is Scenario else ())


def _fault(error: ErrorDetails, tree: Entry) -> Fault | None:
    """One error in words; None if it repeats what another fault already tells."""
    entry, slot, last = _follow(error, tree)
    kind = error["type"]
    if entry.broken or last == "[key]":
        return None
    if kind == "missing":
        return _missing(entry, slot, last)
    if kind == "extra_forbidden":
        return _unknown_key(error, tree)
    if kind == "union_tag_not_found":
        return _policy_fault(entry, slot)
    if kind in _RANGE_ERRORS:
        return entry.fault(f"{shown(entry)} is out of range", describe(slot, with_range=True))
    if kind in ("too_short", "too_long", "string_too_short"):
        return _length_fault(entry, slot, error)
    if kind == "value_error":
        return _own_check(entry, slot, *error["ctx"]["error"].args)
    if kind == "string_pattern_mismatch":
        return entry.fault(f"{shown(entry)} is not an import path", POLICY_CHOICES[-1])
    if kind == "literal_error" and isinstance(entry.content, dict) and len(slot.members) > 1:
        return None  # a mapping is judged as the other member of the union
    if slot.quantity not in (None, slot):
        return None  # judged as the quantity that it may be
    return wrong_value(entry, slot)


def _follow(error: ErrorDetails, tree: Entry) -> tuple[Entry, Slot, str | int]:
    """The innermost entry and slot that an error leads to, and its last key."""
    entry, slot = tree, Slot(Scenario)
    steps = _without_policy_tag(error["loc"])
    for step in steps:
        there, inner = entry.child(step), slot.inner(step, entry)
        if there is not None and inner is not None:
            entry, slot = there, inner
    return entry, slot, steps[-1] if steps else ""


def _without_policy_tag(steps: tuple[int | str, ...]) -> tuple[int | str, ...]:
    """A policy's tag could pass for one of its keys, so it is cut out by its position."""
    return steps[:2] + steps[3:] if steps[:1] == ("policies",) else steps


def _missing(entry: Entry, slot: Slot, key: str | int) -> Fault:
    due = slot.inner(key, entry)
    if isinstance(key, int):
        return entry.fault(f"{len(entry.items())} given, {key + 1} due", describe(slot))
    return entry.fault(f"{key} is missing", describe(due) if due is not None else "")


def _unknown_key(error: ErrorDetails, tree: Entry) -> Fault:
    entry, known = _known_keys(error, tree)
    key = str(error["loc"][-1])
    wrong = entry.child(key) or entry
    return wrong.fault(f"unknown key{nearest(key, known)}", listed(known))


def _policy_fault(entry: Entry, slot: Slot) -> Fault | None:
    if not isinstance(entry.content, dict):
        return wrong_value(entry, slot)
    kind = entry.child("kind")
    accepted = listed(POLICY_CHOICES)
    if kind is None:
        return entry.fault("kind is missing", accepted)
    if kind.broken:
        return None
    return kind.fault(_unknown_choice(kind, POLICY_CHOICES), accepted)


def _length_fault(entry: Entry, slot: Slot, error: ErrorDetails) -> Fault | None:
    count = len(entry.content) if isinstance(entry.content, dict | list | str) else 0
    if count == 0:
        return entry.fault(
            f"{shown(entry).replace('a ', 'the ', 1)} is empty", describe(slot, with_range=True)
        )
    if error["type"] == "too_long":
        return entry.fault(f"{count} given, {error['ctx']['max_length']} due", describe(slot))
    if count >= error["ctx"]["min_length"]:
        return None  # pydantic counts only items without faults, and those have theirs told
    return entry.fault(
        f"{count} given, at least {error['ctx']['min_length']} due", describe(slot, with_range=True)
    )


def _own_check(entry: Entry, slot: Slot, problem: str, accepted: str = "") -> Fault | None:
    """A ValueError of the schema's own: a quantity, or a check over the keys of one group, which may say what it accepts."""
    if slot.quantity not in (None, slot) and isinstance(entry.content, dict):
        return None  # judged as the mapping that it may be
    if slot.quantity is None:
        if any(each.broken for each in entry.items().values()):
            return None  # what is broken could be what the check misses
        line, key = entry.changed_at or (entry.line, entry.key)
        return Fault(line, key, problem, accepted)
    if isinstance(entry.content, bool | dict | list | None):
        return wrong_value(entry, slot)
    is_out_of_range = problem.endswith("out of range")
    return entry.fault(
        shortened(problem, 160), describe(slot, with_range=is_out_of_range, with_units="unknown" in problem)
    )


def wrong_value(entry: Entry, slot: Slot) -> Fault:
    """A value of the wrong kind, or none of the accepted ones."""
    content = entry.content
    if content is None:
        return entry.fault("nothing is given", describe(slot))
    if slot.choices and not isinstance(content, dict | list):
        return entry.fault(_unknown_choice(entry, slot.choices), describe(slot))
    problem = f"{_reading(entry, noun(slot))}, not {noun(slot)}"
    return entry.fault(problem, f"{describe(slot)}{_such_as(entry, slot)}")


def shown(entry: Entry) -> str:
    """A value as it is quoted in a message."""
    if isinstance(entry.content, dict | list):
        return "a mapping" if isinstance(entry.content, dict) else "a list"
    if entry.content is None:
        return "nothing"
    return shortened(repr(entry.content) if isinstance(entry.content, str) else entry.text)


def _reading(entry: Entry, due: str) -> str:
    """How YAML takes a value, where that may surprise; else that it is given."""
    content = entry.content
    if isinstance(content, bool):
        return f"{entry.text} is read as {str(content).lower()}"
    if isinstance(content, str) and "number" in due and _number(content) is not None:
        return f"{shortened(content)} is read as text"
    if isinstance(content, int | float) and due == "a name":
        return f"{shortened(entry.text)} is read as a number"
    return f"{shown(entry)} is given"


def _unknown_choice(entry: Entry, choices: tuple[str, ...]) -> str:
    if isinstance(entry.content, bool):
        return f"{entry.text} is read as {str(entry.content).lower()}"
    if entry.content is None or isinstance(entry.content, dict | list):
        return f"{shown(entry)} is given"
    return f"{shown(entry)} is unknown{nearest(entry.text, choices)}"


def _such_as(entry: Entry, slot: Slot) -> str:
    """How to write a number that YAML reads as text."""
    number = _number(entry.content) if slot.annotation in (int, float) else None
    if number is None:
        return ""
    return f", such as {int(number) if number.is_integer() and abs(number) < 1e15 else number}"


def _number(content: object) -> float | None:
    """The finite number that a text would be without the rules of YAML."""
    try:
        number = float(content) if isinstance(content, str) else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) else None
