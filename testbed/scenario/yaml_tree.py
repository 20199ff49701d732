"""YAML text to a tree that remembers where each of its values was written.

PyYAML composes the nodes; what they mean is decided here, node by node, since YAML itself takes the second of
two equal keys in silence, reads `no` as false, `010` as 8 and `1:30` as 90. Whatever can surprise its author is
a fault with a line. No tag ever constructs an object.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import yaml

from testbed.errors import Fault

Scalar = None | bool | int | float | str

MAX_DEPTH = 40  # three times what the deepest scenario needs; also ends an alias that holds itself
MAX_ENTRIES = 200_000  # aliases of aliases expand without end; no real scenario comes near
_TAGS = "tag:yaml.org,2002:"
_WHOLE = re.compile(r"[-+]?(0|[1-9][0-9_]{0,17})")
_DECIMAL = re.compile(r"[-+]?(\d[\d_]*)?\.?\d*([eE][-+]?\d+)?")
_TRUE = ("yes", "true", "on")


@dataclass(frozen=True)
class Entry:
    """One value of a scenario file.

    Attributes:
        content: a scalar, the entries of a mapping by key, or those of a list.
        line: where it was written, from 1; 0 for the command line.
        key: the path of keys to it, as its author wrote them: `links[0].delay`.
        text: a scalar as it stands in the file.
        broken: its fault is already told, so nobody need look at it again.
        changed_at: line and key of the override that changed something inside it, if one did.
    """

    content: Scalar | dict[str, Entry] | list[Entry]
    line: int
    key: str
    text: str = ""
    broken: bool = False
    changed_at: tuple[int, str] | None = None

    def plain(self) -> Any:
        """The value without its places: dicts, lists and scalars."""
        if isinstance(self.content, dict):
            return {key: entry.plain() for key, entry in self.content.items()}
        if isinstance(self.content, list):
            return [entry.plain() for entry in self.content]
        return self.content

    def mapping(self) -> dict[str, Entry]:
        """Its entries if it is a mapping, else none."""
        return self.content if isinstance(self.content, dict) else {}

    def items(self) -> dict[str, Entry]:
        """Its entries by key or by position; none for a scalar."""
        if isinstance(self.content, list):
            return {str(i): entry for i, entry in enumerate(self.content)}
        return self.mapping()

    def child(self, step: str | int) -> Entry | None:
        """The entry at a key of a mapping or at a position of a list, if there is one."""
        if isinstance(self.content, list):
            return self.content[step] if isinstance(step, int) and 0 <= step < len(self.content) else None
        return self.mapping().get(step) if isinstance(step, str) else None

    def inside(self, step: str | int) -> str:
        """The path of keys to something in it, whether it is there or not."""
        return join_key(self.key, step)

    def fault(self, problem: str, accepted: str = "") -> Fault:
        """A fault of this entry."""
        return Fault(self.line, self.key, problem, accepted)


class Tree(NamedTuple):
    """A file as read: its outermost value, and what is wrong with the YAML."""

    root: Entry
    faults: list[Fault]


def read_yaml(text: str, *, key: str = "", line: int | None = None) -> Tree:
    """The values of a YAML document, with all faults that can be told from the YAML alone.

    Args:
        text: the document.
        key: the path that leads to it (empty for a whole file).
        line: the line of everything in it, where its own lines mean nothing (the command line).
    """
    try:
        node = _compose(text)
    except yaml.YAMLError as error:
        at, problem, accepted = _syntax_problem(text, error)
        fault = Fault(at if line is None else line, key, problem, accepted)
        return Tree(Entry(None, fault.line, key, broken=True), [fault])
    if node is None:
        return Tree(Entry(None, 1 if line is None else line, key), [])
    reader = _Reader(line)
    return Tree(reader.read(node, key, reader.line_of(node), 0), reader.faults)


def join_key(key: str, step: str | int) -> str:
    """The path of keys one step further in."""
    if isinstance(step, int):
        return f"{key}[{step}]"
    return f"{key}.{shortened(step)}" if key else shortened(step)


def shortened(text: str, length: int = 80) -> str:
    """The text on one line, cut where it is longer than anyone would read."""
    text = text if len(text) <= length else f"{text[:length]}..."
    return text if text.isprintable() else repr(text)[1:-1]


def _compose(text: str) -> yaml.Node | None:
    loader = yaml.SafeLoader(text)
    try:
        return loader.get_single_node()
    except RecursionError as error:
        raise yaml.MarkedYAMLError(problem=_too_deep(), problem_mark=loader.get_mark()) from error
    except (ValueError, OverflowError) as error:  # PyYAML leaves these to `chr` and `int`
        problem = "an escape beyond Unicode, or a number beyond reason"
        raise yaml.MarkedYAMLError(problem=problem, problem_mark=loader.get_mark()) from error
    finally:
        loader.dispose()


def _syntax_problem(text: str, error: yaml.YAMLError) -> tuple[int, str, str]:
    """Line, problem and what is accepted instead, for text that is not YAML."""
    if isinstance(error, yaml.reader.ReaderError):
        at = text.count("\n", 0, int(error.position)) + 1
        return at, f"the character {chr(int(error.character))!r} does not belong in a text file", ""
    if not isinstance(error, yaml.MarkedYAMLError):
        return 1, f"not YAML: {shortened(str(error))}", ""
    mark = error.problem_mark or error.context_mark
    at = mark.line + 1 if mark is not None else 1
    problem = str(error.problem or error.context)
    if "'\\t'" in problem:
        return at, "a tab where YAML allows none", "spaces"
    if error.context == "expected a single document in the stream":
        return at, "a second document begins", "one document a file"
    return at, f"not YAML: {shortened(problem, 120)}", ""


def _too_deep() -> str:
    return f"nested deeper than {MAX_DEPTH} levels"


class _Reader:
    """Turns nodes into entries and collects the faults on the way."""

    def __init__(self, line: int | None) -> None:
        self.faults: list[Fault] = []
        self._line = line
        self._entries = 0

    def line_of(self, node: yaml.Node) -> int:
        return node.start_mark.line + 1 if self._line is None else self._line

    def read(self, node: yaml.Node, key: str, line: int, depth: int) -> Entry:
        self._entries += 1
        if self._entries > MAX_ENTRIES:
            return self._too_large(line)
        if depth > MAX_DEPTH:
            return self._broken(line, shortened(key), _too_deep())
        if isinstance(node, yaml.MappingNode) and node.tag == f"{_TAGS}map":
            return Entry(self._mapping(node, key, depth), line, key)
        if isinstance(node, yaml.SequenceNode) and node.tag == f"{_TAGS}seq":
            entries = [
                self.read(each, join_key(key, i), self.line_of(each), depth + 1)
                for i, each in enumerate(node.value)
            ]
            return Entry(entries, line, key)
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, key, line)
        return self._broken(line, key, f"the tag {_short_tag(node.tag)} is not read", "plain YAML")

    def _mapping(self, node: yaml.MappingNode, key: str, depth: int) -> dict[str, Entry]:
        entries: dict[str, Entry] = {}
        for key_node, value_node in node.value:
            line = self.line_of(key_node)
            name = self._name(key_node, key, line)
            if name is None:
                continue
            entry = self.read(value_node, join_key(key, name), line, depth + 1)
            if name in entries:
                where = f"; the first is in line {entries[name].line}" if self._line is None else ""
                self.faults.append(entry.fault(f"duplicate key{where}", "each key once"))
            else:
                entries[name] = entry
        return entries

    def _name(self, node: yaml.Node, key: str, line: int) -> str | None:
        """The text of a key; a key that YAML reads as something else is a fault, and its text is used."""
        if not isinstance(node, yaml.ScalarNode):
            self.faults.append(Fault(line, key, "a list or a mapping stands where a key is due", "a name"))
            return None
        if node.tag == f"{_TAGS}merge":
            self.faults.append(
                Fault(line, key, "merge keys (<<) are not read", "the keys themselves, or arms")
            )
            return None
        if node.tag == f"{_TAGS}null":
            self.faults.append(Fault(line, key, "a key is empty", "a name"))
            return None
        if not _is_text(node.value):
            self.faults.append(Fault(line, key, f"the key {shortened(node.value)} is not text", "a name"))
            return None
        if node.tag != f"{_TAGS}str":
            meant = _meaning(node)
            problem = f"the key {shortened(node.value)} is read as {meant}"
            self.faults.append(Fault(line, key, problem, f"quotes around it: {node.value!r}"))
        return str(node.value)

    def _scalar(self, node: yaml.ScalarNode, key: str, line: int) -> Entry:
        kind, text = node.tag.removeprefix(_TAGS), node.value
        read = _SCALARS.get(kind)
        if read is None:
            if kind == "timestamp":
                return self._broken(
                    line, key, f"{shortened(text)} is read as a date", f"quotes around it: {text!r}"
                )
            return self._broken(line, key, f"the tag {_short_tag(node.tag)} is not read", "plain YAML")
        if not _is_text(text):
            return self._broken(line, key, f"{shortened(text)} is not text", "plain letters")
        try:
            return Entry(read(text), line, key, text)
        except ValueError as error:
            return self._broken(line, key, str(error), "a plain decimal number, or quotes around it")

    def _too_large(self, line: int) -> Entry:
        if self._entries == MAX_ENTRIES + 1:
            self.faults.append(Fault(line, "", f"the file expands to more than {MAX_ENTRIES} values"))
        return Entry(None, line, "", broken=True)

    def _broken(self, line: int, key: str, problem: str, accepted: str = "") -> Entry:
        entry = Entry(None, line, key, broken=True)
        self.faults.append(entry.fault(problem, accepted))
        return entry


def _is_text(text: str) -> bool:
    """Whether it can be written at all: an escape such as "\\ud800" is half of a character."""
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def _null(text: str) -> Scalar:
    if text.lower() not in ("", "~", "null"):
        raise ValueError(f"{text!r} is not null")
    return None


def _truth(text: str) -> Scalar:
    if text.lower() not in (*_TRUE, "no", "false", "off"):
        raise ValueError(f"{text!r} is not true or false")
    return text.lower() in _TRUE


def _whole(text: str) -> Scalar:
    if _WHOLE.fullmatch(text):
        return int(text.replace("_", ""))
    if re.fullmatch(r"[-+]?[1-9][0-9_]*", text):
        raise ValueError(f"{shortened(text, 30)} is out of range")
    raise ValueError(
        f"{shortened(text, 30)} is not read as it stands (octal, hexadecimal, binary or base 60)"
    )


def _decimal(text: str) -> Scalar:
    digits = text.replace("_", "")
    if _DECIMAL.fullmatch(text) is None or not any(map(str.isdigit, digits)):
        raise ValueError(f"{shortened(text, 30)} is not a finite decimal number")
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{shortened(text, 30)} is out of range")
    return number


_SCALARS: dict[str, Callable[[str], Scalar]] = {
    "null": _null,
    "bool": _truth,
    "int": _whole,
    "float": _decimal,
    "str": str,
    "value": str,
}


def _meaning(node: yaml.ScalarNode) -> str:
    kind = node.tag.removeprefix(_TAGS)
    if kind == "bool":
        return "true" if node.value.lower() in _TRUE else "false"
    return {"int": "a number", "float": "a number", "timestamp": "a date"}.get(kind, _short_tag(node.tag))


def _short_tag(tag: str) -> str:
    return shortened(tag.replace(_TAGS, "!!"), 40)
