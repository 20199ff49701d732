"""The figures of the benchmark as a table and as plain data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rich.table import Table

from testbed.benchmark.figure import Figure

MOST_DIGITS = 10_000.0  # from here on all digits are written, which four would round


def figure_table(figures: Sequence[Figure]) -> Table:
    """A line for each figure: value, aim, whether it is reached."""
    table = Table(title="benchmark", title_justify="left")
    table.add_column("figure")
    for name in ("value", "aim"):
        table.add_column(name, justify="right")
    table.add_column("")
    table.add_column("note")
    for each in figures:
        table.add_row(each.name, _value(each), _aim(each), _word(each), each.how)
    return table


def figure_data(figures: Sequence[Figure]) -> list[dict[str, Any]]:
    """The same, for JSON: what is not known is null."""
    return [
        {
            "name": each.name,
            "value": _finite(each.value),
            "unit": each.unit,
            "aim": _finite(each.aim),
            "aim_is_least": each.is_least,
            "reached": each.reached,
            "note": each.how,
        }
        for each in figures
    ]


def _value(figure: Figure) -> str:
    value = figure.value
    said = f"{value:,.0f}" if MOST_DIGITS <= abs(value) < math.inf else f"{value:.4g}"
    return f"{said} {figure.unit}".rstrip()


def _aim(figure: Figure) -> str:
    if math.isnan(figure.aim):
        return ""
    return f"{'>=' if figure.is_least else '<='} {figure.aim:g} {figure.unit}".rstrip()


def _word(figure: Figure) -> str:
    if math.isnan(figure.aim):
        return ""
    if figure.reached is None:
        return "unknown"
    return "[green]reached[/]" if figure.reached else "[red]not reached[/]"


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
