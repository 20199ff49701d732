"""Checks as a table and as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.table import Table

from testbed.fitness.check import Check

STYLES = {"fits": "green", "unknown": "", "warning": "yellow", "does not fit": "red"}


def check_table(title: str, checks: Sequence[Check]) -> Table:
    """A line for each check."""
    table = Table(title=title, title_justify="left")
    table.add_column("what")
    table.add_column("here")
    if any(each.needs for each in checks):
        table.add_column("needed")
    table.add_column("")
    table.add_column("what to try")
    for each in checks:
        style = STYLES[each.word]
        word = f"[{style}]{each.word}[/]" if style else each.word
        needs = [each.needs] if any(one.needs for one in checks) else []
        table.add_row(each.name, each.has, *needs, word, each.advice)
    return table


def check_data(checks: Sequence[Check]) -> list[dict[str, Any]]:
    """The same, for JSON."""
    return [each._asdict() for each in checks]


def all_fit(checks: Sequence[Check]) -> bool:
    """Whether none says that it does not."""
    return all(each.word != "does not fit" for each in checks)
