"""One table of the plan that `testbed check` prints, in plain text; arms that agree on it share it."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

Row = tuple[str, ...]


@dataclass(frozen=True)
class Section:
    """One table of the plan: a title, the heads of its columns, its rows, and a note below."""

    title: str
    columns: Row
    rows: tuple[Row, ...]
    note: str = ""


def as_table(section: Section) -> RenderableType:
    """A section as a rich table; warnings as plain lines that wrap."""
    if not section.columns:
        return Text("\n".join((section.title, *(f"  {row[0]}" for row in section.rows), "")))
    table = Table(
        title=section.title, title_justify="left", caption=section.note or None, caption_justify="left"
    )
    for column in section.columns:
        table.add_column(column, overflow="fold")
    for row in section.rows:
        table.add_row(*row)
    return table


def shared(by_arm: dict[str, Section]) -> list[Section]:
    """Each distinct section once, its title naming its arms where not all agree."""
    arms_of: dict[Section, list[str]] = {}
    for name, section in by_arm.items():
        arms_of.setdefault(section, []).append(name)
    if len(arms_of) == 1:
        return list(arms_of)
    return [
        Section(f"{section.title} ({_arms(names)})", section.columns, section.rows, section.note)
        for section, names in arms_of.items()
    ]


def _arms(names: list[str]) -> str:
    return f"{'arm' if len(names) == 1 else 'arms'} {', '.join(names)}"
