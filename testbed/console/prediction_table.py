"""What `testbed theory` prints: a table for each arm, a line for each thing that the theory says of it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from testbed.theory.statement import Statement


def print_predictions(console: Console, arm: str, statements: Sequence[Statement]) -> None:
    """Print the statements about one arm, those that say the same together; what they assume is numbered below."""
    table = Table(title=f"theory of {arm}", title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for column in ("topic", "what", "of", "value", "assumes"):
        table.add_column(column, overflow="fold")
    numbers: dict[str, int] = {}
    before = ""
    for each in _together(statements):
        assumed = [str(numbers.setdefault(said, len(numbers) + 1)) for said in each.assumes]
        topic = each.topic if each.topic != before else ""
        table.add_row(topic, each.what, each.whose, _value(each), ", ".join(assumed))
        before = each.topic
    console.print(table)
    for said, number in numbers.items():
        console.print(f"{number:>3}  {said}", highlight=False)
    console.print()


def as_data(statements: Sequence[Statement]) -> list[dict[str, Any]]:
    """The statements as plain data; a number that is not finite is None."""
    return [{**each._asdict(), "figures": _finite(each.figures)} for each in statements]


def _finite(figures: dict[str, Any]) -> dict[str, Any]:
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in figures.items()
    }


def _value(statement: Statement) -> Text:
    if statement.refused_because:
        return Text(f"refused: {statement.refused_because}", style="yellow")
    return Text(statement.value)


def _together(statements: Sequence[Statement]) -> Iterator[Statement]:
    """Statements that differ only in whom they are about, as one."""
    groups: dict[tuple[Any, ...], list[Statement]] = {}
    for each in statements:
        key = (each.topic, each.what, each.value, each.assumes, each.refused_because)
        groups.setdefault(key, []).append(each)
    for group in groups.values():
        yield group[0]._replace(whose=", ".join(each.whose for each in group))
