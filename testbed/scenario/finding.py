"""A finding: two places of a scenario that do not agree, and how it becomes a fault with a line."""

from __future__ import annotations

from typing import NamedTuple

from testbed.errors import Fault
from testbed.scenario.yaml_tree import Entry, join_key

Keys = tuple[str | int, ...]


class Finding(NamedTuple):
    """Something that does not fit: the keys that lead to it, and the other place that it does not fit.

    `{other}` in the problem stands for the path of keys to that other place.
    """

    keys: Keys
    problem: str
    accepted: str = ""
    other: Keys = ()


def located(finding: Finding, tree: Entry) -> Fault:
    """The fault of a finding, with the lines and paths of keys in the tree of the file."""
    line, key = _place(tree, finding.keys)
    problem = finding.problem.replace("{other}", _place(tree, finding.other)[1])
    return Fault(line, key, problem, finding.accepted)


def _place(tree: Entry, keys: Keys) -> tuple[int, str]:
    """Line and path of keys; those of a key that the file leaves out belong to what it would be in."""
    entry = tree
    for i, key in enumerate(keys):
        there = entry.child(key)
        if there is None:
            path = entry.key
            for rest in keys[i:]:
                path = join_key(path, rest)
            return entry.line, path
        entry = there
    return entry.line, entry.key


def time_text(seconds: float) -> str:
    """A time with all its digits, as a scenario would say it."""
    return f"{seconds * 1e3:.12g} ms" if 0 < seconds < 1 else f"{seconds:.12g} s"
