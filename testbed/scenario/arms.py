"""Overrides: an arm, or `--set` on the command line, changes parts of a scenario file before it is checked.

A key of an override is a path from the top of the file: `duration`, `roots.*.traffic.*.policy`,
`links[0].delay` (or `links.0.delay`), with globs for any key or position. Its last key may be new; the rest has
to exist, but for groups of keys that have defaults (`reports`, `leaf`, ...). A path with dots sets its place
whole. A key without dots whose value is a mapping is merged into what is there, so that
`policies: {flow: {step: 0.1 /s^2}}` changes the step and nothing else. A key without a value is taken away.
"""

from __future__ import annotations

import re
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import NamedTuple

from testbed.errors import Fault
from testbed.scenario import schema
from testbed.scenario.link_words import Jitter
from testbed.scenario.spelling import listed, nearest
from testbed.scenario.yaml_tree import Entry, read_yaml, shortened

# A mapping of alternatives is replaced, not merged: `fixed` next to an older `geometric` is never meant.
_ALTERNATIVES = tuple(frozenset(words.model_fields) for words in (schema.Tokens, Jitter))

# Groups of keys that a file may leave out, so that a path may lead through them all the same.
GROUPS = frozenset(
    (
        "reports",
        "server_reports",
        "leaf",
        "records",
        "live",
        "windows",
        "processes",
        "named",
        "jitter",
        "slo",
        "policies",
        "traces",
        "groups",
    )
)


class _Change(NamedTuple):
    """One override under way: the value, whether it merges, and the places where its path came to an end."""

    value: Entry
    merges: bool
    dead_ends: list[tuple[Entry, str]]
    faults: list[Fault]


def override(tree: Entry, changes: Entry) -> tuple[Entry, list[Fault]]:
    """The tree with all changes of an arm (a mapping of paths to values), and the paths that fit nowhere."""
    faults: list[Fault] = []
    for path, value in changes.mapping().items():
        tree = _changed(tree, path, value, faults)
    return tree, faults


def override_from_text(tree: Entry, path: str, text: str) -> tuple[Entry, list[Fault]]:
    """The tree with one change from the command line, whose value is YAML; its faults have line 0."""
    value, faults = read_yaml(text, key=path, line=0)
    return (tree if faults else _changed(tree, path, value, faults)), faults


def find(tree: Entry, path: str) -> list[Entry]:
    """All entries that a path with globs leads to."""
    found = [tree]
    for segment in split_path(path):
        found = [entry.items()[key] for entry in found for key in _matching(entry, segment)]
    return found


def split_path(path: str) -> list[str]:
    """The keys of a path; `links[0].delay` is `links.0.delay`."""
    return re.sub(r"\[(\d+|\*)\]", r".\1", path).split(".")


def _changed(tree: Entry, path: str, value: Entry, faults: list[Fault]) -> Entry:
    if value.broken:
        return tree
    segments = split_path(path)
    change = _Change(value, len(segments) == 1, [], faults)
    changed = _set(tree, segments, change)
    if changed is not None:
        return changed
    faults.append(_leads_nowhere(value, *change.dead_ends[0]))
    return tree


def _set(entry: Entry, path: list[str], change: _Change) -> Entry | None:
    """The entry with the value at all places the path leads to; None if it leads nowhere."""
    first, rest = path[0], path[1:]
    changed: dict[str, Entry] = {}
    for key in _matching(entry, first) or _new_keys(entry, first, is_last=not rest):
        there = entry.items().get(key)
        new = _set(there or Entry({}, *_place(change.value)), rest, change) if rest else _put(there, change)
        if new is not None:
            changed[key] = new
    if not changed:
        change.dead_ends.append((entry, first))
        return None
    return _with(entry, changed, change.value)


def _put(there: Entry | None, change: _Change) -> Entry:
    value = change.value
    if not change.merges or there is None or not isinstance(value.content, dict):
        return value
    if not isinstance(there.content, dict | list) or _replaces(value, there):
        return value
    for path, each in value.mapping().items():
        there = _changed(there, path, each, change.faults)
    return there


def _replaces(value: Entry, there: Entry) -> bool:
    """Whether a mapping is an alternative to what is there: another kind of policy, jitter or token count."""
    new, old = value.mapping(), there.mapping()
    if "kind" in new and "kind" in old:
        return new["kind"].content != old["kind"].content
    return any(new.keys() | old.keys() <= keys for keys in _ALTERNATIVES)


def _with(entry: Entry, changed: dict[str, Entry], value: Entry) -> Entry:
    """The entry with some of its own changed; those of a mapping that have no value are left out."""
    place = _place(value)
    if isinstance(entry.content, list):
        items = [changed.get(str(i), each) for i, each in enumerate(entry.content)]
        return replace(entry, content=items, changed_at=place)
    merged = entry.mapping() | changed
    kept = {key: each for key, each in merged.items() if key not in changed or each.content is not None}
    return replace(entry, content=kept, changed_at=place)


def _place(entry: Entry) -> tuple[int, str]:
    return entry.line, entry.key


def _matching(entry: Entry, segment: str) -> list[str]:
    """The keys (or positions) of an entry that a part of a path means."""
    items = entry.items()
    return [segment] if segment in items else [key for key in items if fnmatchcase(key, segment)]


def _new_keys(entry: Entry, segment: str, *, is_last: bool) -> list[str]:
    """The key that an override may create here, if any."""
    takes_keys = isinstance(entry.content, dict)
    is_name = segment != "" and not set(segment) & set("*?[]")
    return [segment] if takes_keys and is_name and (is_last or segment in GROUPS) else []


def _leads_nowhere(value: Entry, there: Entry, segment: str) -> Fault:
    known = list(there.items())
    where = there.key or "the file"
    if not known:
        return value.fault(f"leads nowhere: {where} has no keys")
    problem = f"leads nowhere: no {shortened(repr(segment))} in {where}{nearest(segment, known)}"
    return value.fault(problem, listed(known))
