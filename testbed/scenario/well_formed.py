"""The well-formed parts of a scenario that has faults, so that what does not fit among them is told at once too.

A part is a cell, a root, a class, a policy, a trace, a line of links or faults, or another key of the file. What stands
in for a broken part is chosen so that nothing follows from it: findings that lead to it are dropped, and it lets
everything else be found that its author may have meant (a broken cell has any server, a broken root every class).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from pydantic import ValidationError

from testbed.scenario.finding import Finding, Keys
from testbed.scenario.schema import Scenario

_DIVIDED = ("cells", "roots", "classes", "policies", "traces", "links", "faults")
_ANY_LINK = {"from": "root.*", "to": "cell.*"}
# What patterns are matched against: where one of these is not to be read at all, nothing can be said of any pattern.
_NAMES = (("cells",), ("roots",), ("groups",))
_SERVERS = 1000  # of a broken cell: more than any line of a file is likely to name


def broken_parts(error: ValidationError) -> frozenset[Keys]:
    """The keys that lead to the parts that are not well formed."""
    return frozenset(_part(each["loc"]) for each in error.errors(include_url=False))


def with_stand_ins(plain: dict[str, Any], broken: Collection[Keys]) -> Scenario | None:
    """The scenario with something well formed in place of what is not; None where that is not enough.

    Args:
        plain: the values of the file.
        broken: see `broken_parts`.
    """
    words = {key: each for key, each in plain.items() if (key,) not in broken}
    for key in [key for (key, *rest) in broken if not rest]:
        if key in _WHOLE:
            words[str(key)] = _WHOLE[str(key)]
    for section in _DIVIDED:
        mine = [keys[1] for keys in broken if keys[0] == section and len(keys) > 1]
        if mine and section in words:
            words[section] = _replaced(words[section], mine, _stand_in(section, words))
    try:
        return Scenario.model_validate(words, by_alias=True, by_name=False)
    except ValidationError:
        return None


def may_be_told(finding: Finding, broken: Collection[Keys]) -> bool:
    """Whether a finding is about well-formed parts alone."""
    return not any(_part(keys) in broken or keys[:1] in broken for keys in (finding.keys, finding.other))


def has_names(broken: Collection[Keys]) -> bool:
    """Whether the names of all nodes and groups can be read."""
    return not any(keys in broken for keys in _NAMES)


def has_effects(broken: Collection[Keys]) -> bool:
    """Whether it is known what every line does to the links."""
    return not any(keys[0] in ("links", "faults") for keys in broken)


def _part(keys: tuple[Any, ...]) -> Keys:
    return keys[:2] if keys[:1] and keys[0] in _DIVIDED else keys[:1]


_WHOLE: dict[str, Any] = {
    "name": "unnamed",
    "duration": "1 us",  # so short that no fault comes too often in it
    "cells": {"cell": {"servers": 1, "profile": "bench"}},
    "roots": {"root": {"traffic": [{"class": "class", "policy": "policy", "rate": "1 /s"}]}},
    "classes": {"class": {}},
}


def _stand_in(section: str, words: dict[str, Any]) -> Any:
    classes = words.get("classes")
    names = list(classes) if isinstance(classes, dict) else ["class"]
    stand_ins: dict[str, Any] = {
        "cells": {"servers": _SERVERS, "profile": "bench"},
        "roots": {"traffic": [{"class": name, "policy": "policy", "rate": "1 /s"} for name in names]},
        "classes": {},
        "policies": {"kind": "random"},
        "traces": {"path": "trace", "format": "azure"},
        "links": _ANY_LINK,
        "faults": {"at": "0 s", "link": _ANY_LINK, "set": {"delay": "x1"}},
    }
    return stand_ins[section]


def _replaced(section: Any, broken: list[Any], stand_in: Any) -> Any:
    if isinstance(section, list):
        return [stand_in if i in broken else each for i, each in enumerate(section)]
    if isinstance(section, dict):
        return {key: stand_in if key in broken else each for key, each in section.items()}
    return section
