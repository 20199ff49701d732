"""The table of what was done against failure and overload, one row an arm; printed where something was done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

# Heading -> path into the arm's summary.
COUNTS = {
    "root retries": "resendings.root_retries",
    "leaf retries": "resendings.leaf_retries",
    "root hedges": "resendings.root_hedges",
    "leaf hedges": "resendings.leaf_hedges",
    "hedges won": "resendings.hedges_won",
    "shed by root": "sheds.root",
    "by leaf": "sheds.leaf",
    "by server": "sheds.server",
    "ejections": "left_out.breaker",
    "failed checks": "left_out.health",
}


def print_guards(console: Console, summary: Mapping[str, Any]) -> None:
    """Print the table, with the columns that hold something other than 0 in some arm.

    Args:
        console: where to print.
        summary: the content of `summary.json`.
    """
    arms: Mapping[str, Mapping[str, Any]] = summary["arms"]
    found = {heading: [_count(words, path) for words in arms.values()] for heading, path in COUNTS.items()}
    columns: dict[str, list[str]] = {
        heading: [f"{count:,}" for count in counts] for heading, counts in found.items() if any(counts)
    }
    if any(words.get("resendings", {}).get("servings_per_request", 1.0) != 1.0 for words in arms.values()):
        columns["servings per request"] = [
            _decimal(words.get("resendings", {}).get("servings_per_request")) for words in arms.values()
        ]
    columns |= _servers(arms)
    if not columns:
        return
    table = Table(
        title="against failure and overload",
        title_justify="left",
        box=SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    table.add_column("arm", no_wrap=True)
    for heading in columns:
        table.add_column(heading, justify="right")
    for i, arm in enumerate(arms):
        table.add_row(arm, *(column[i] for column in columns.values()))
    console.print(table)


def _servers(arms: Mapping[str, Mapping[str, Any]]) -> dict[str, list[str]]:
    """Mean number of servers in use and their range, of each cell that an arm scales."""
    cells = dict.fromkeys(
        cell for words in arms.values() for cell, figures in words["cells"].items() if "scaling" in figures
    )
    return {
        f"servers of {cell}": [_range(words["cells"].get(cell, {}).get("scaling")) for words in arms.values()]
        for cell in cells
    }


def _range(scaling: Mapping[str, Any] | None) -> str:
    if scaling is None:
        return "-"
    return f"{scaling['mean']:.1f} ({scaling['min']} to {scaling['max']}, {scaling['turns']} turns)"


def _count(words: Mapping[str, Any], path: str) -> int:
    section, key = path.split(".")
    return int(words.get(section, {}).get(key, 0))


def _decimal(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"
