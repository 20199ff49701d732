"""What the schema accepts in each place of a scenario file, and how a message says so."""

from __future__ import annotations

import types
from dataclasses import dataclass
from inspect import get_annotations
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from testbed.scenario.policy_words import POLICY_KINDS, UserPolicy, policy_tag
from testbed.scenario.quantity import PERCENT, Dimension
from testbed.scenario.schema import Tokens
from testbed.scenario.spelling import listed
from testbed.scenario.words import MOST_TOKENS, Words
from testbed.scenario.yaml_tree import Entry

POLICY_CHOICES = (*POLICY_KINDS, "my_module:MyPolicy")
FILE_KEYS = ("arms", "expect")  # keys of a scenario file next to those of a Scenario
_NOUNS = {int: "a whole number", float: "a number", str: "a name", bool: "true or false"}


@dataclass(frozen=True)
class Slot:
    """What the schema says about one place: its type without `None` and `Annotated`, and its constraints."""

    annotation: Any
    marks: tuple[Any, ...] = ()

    @property
    def dimension(self) -> Dimension | None:
        """The dimension of a quantity; None elsewhere."""
        return next((mark for mark in self.marks if isinstance(mark, Dimension)), None)

    @property
    def quantity(self) -> Slot | None:
        """Where a quantity may stand: this slot, or the alternative that is one."""
        if self.dimension is not None:
            return self
        return next((each for each in self.members if each.dimension is not None), None)

    @property
    def members(self) -> tuple[Slot, ...]:
        """The alternatives of a union; the slot itself elsewhere."""
        if get_origin(self.annotation) in (Union, types.UnionType):
            return tuple(_slot(member) for member in get_args(self.annotation))
        return (self,)

    @property
    def words(self) -> type[Words] | None:
        """The model, where one is due."""
        is_model = isinstance(self.annotation, type) and issubclass(self.annotation, Words)
        return self.annotation if is_model else None

    @property
    def choices(self) -> tuple[str, ...]:
        """The words that may stand here, where only certain ones may."""
        return tuple(
            word
            for each in self.members
            if get_origin(each.annotation) is Literal
            for word in get_args(each.annotation)
        )

    @property
    def is_policy(self) -> bool:
        """Whether this is the place of a policy, whose `kind` says which keys it has."""
        return any(each.words is UserPolicy for each in self.members) and len(self.members) > 1

    def bound(self, name: str) -> Any:
        """A constraint such as `ge` or `min_length`; None if there is none."""
        return next((getattr(mark, name) for mark in self.marks if hasattr(mark, name)), None)

    def inner(self, step: str | int, entry: Entry | None) -> Slot | None:
        """The slot of a key or position; None where the schema has none."""
        for member in self.fitting(entry):
            origin, parts = get_origin(member.annotation), get_args(member.annotation)
            if member.words is not None and isinstance(step, str):
                field = _fields(member.words).get(step)
                return None if field is None else _slot(field.annotation, tuple(field.metadata))
            if origin is dict and isinstance(step, str):
                return _slot(parts[1])
            if origin is tuple and isinstance(step, int):
                index = 0 if parts[-1] is ... else step
                return _slot(parts[index]) if index < len(parts) else None
        return None

    def fitting(self, entry: Entry | None) -> tuple[Slot, ...]:
        """The alternatives that a value may belong to."""
        if not self.is_policy:
            return self.members
        tag = policy_tag(entry.plain()) if entry is not None else None
        words = UserPolicy if tag == "user" else POLICY_KINDS.get(tag or "")
        return tuple(member for member in self.members if member.words is words)


def keys_of(words: type[Words]) -> tuple[str, ...]:
    """The keys of a group, as written in a file: its own first, then those it shares with others."""
    return tuple(_fields(words))


def _fields(words: type[Words]) -> dict[str, FieldInfo]:
    names = [name for each in words.__mro__ for name in get_annotations(each) if name in words.model_fields]
    return {words.model_fields[name].alias or name: words.model_fields[name] for name in dict.fromkeys(names)}


def _slot(annotation: Any, marks: tuple[Any, ...] = ()) -> Slot:
    """An annotation without its `Annotated` and `| None` wrappings, whose constraints become marks."""
    while True:
        if get_origin(annotation) is Annotated:
            annotation, *found = get_args(annotation)
            for mark in found:
                marks += tuple(mark.metadata) if isinstance(mark, FieldInfo) else (mark,)
            continue
        if get_origin(annotation) in (Union, types.UnionType):
            members = tuple(member for member in get_args(annotation) if member is not type(None))
            if len(members) == 1:
                annotation = members[0]
                continue
            annotation = Union[members]  # noqa: UP007 - the members are known at run time only
        return Slot(annotation, marks)


def describe(slot: Slot, *, with_range: bool = False, with_units: bool = False) -> str:
    """What a scenario may write in a slot."""
    if slot.dimension is not None:
        return _describe_quantity(slot, slot.dimension, with_range=with_range, with_units=with_units)
    if slot.is_policy:
        return f"a mapping with kind: {listed(POLICY_CHOICES)}"
    if len(slot.members) > 1 or slot.choices:
        others = [
            describe(each, with_range=with_range, with_units=with_units)
            for each in slot.members
            if not each.choices
        ]
        return " or ".join((listed(slot.choices), *others))
    if slot.words is not None:
        number = f"a whole number from 1 to {MOST_TOKENS} or " if slot.words is Tokens else ""
        return f"{number}a mapping with the keys {listed(keys_of(slot.words))}"
    if get_origin(slot.annotation) is dict:
        return f"a mapping from each name to {describe(_slot(get_args(slot.annotation)[1])) or 'a value'}"
    if get_origin(slot.annotation) is tuple:
        return _describe_list(slot)
    return f"{noun(slot)}{_range(slot)}"


def _describe_quantity(slot: Slot, dimension: Dimension, *, with_range: bool, with_units: bool) -> str:
    units = f" ({', '.join(unit for unit, _ in dimension.units)})" if with_units else ""
    bounds = _range(slot, 100 if dimension is PERCENT else 1) if with_range else ""
    return f"{dimension.accepted}{units}{',' if bounds else ''}{bounds}"


def _describe_list(slot: Slot) -> str:
    parts = get_args(slot.annotation)
    if parts[-1] is not ...:
        return f"a list of {len(parts)}: {', '.join(describe(_slot(part)) for part in parts)}"
    least = slot.bound("min_length")
    size = f" of at least {least}" if least else ""
    return f"a list{size}, each item {describe(_slot(parts[0]))}"


def _range(slot: Slot, scale: int = 1) -> str:
    above, least, most = slot.bound("gt"), slot.bound("ge"), slot.bound("le")
    low = (
        f" above {above * scale}"
        if above is not None
        else f" from {least * scale}"
        if least is not None
        else ""
    )
    below = slot.bound("lt")
    if below is not None:
        return f"{low} and below {below * scale}"
    return f"{low} to {most * scale}" if most is not None else low


def noun(slot: Slot) -> str:
    """The kind of value that is due in a slot."""
    if slot.dimension is not None:
        return slot.dimension.name
    if slot.choices:
        quantity = "" if slot.quantity is None else f"{noun(slot.quantity)}, "
        return f"{quantity}a word or a mapping" if len(slot.members) > 1 else "a word"
    if slot.words is Tokens:
        return "a whole number or a mapping"
    if get_origin(slot.annotation) is tuple:
        return "a list"
    return _NOUNS.get(slot.annotation, "a mapping")
