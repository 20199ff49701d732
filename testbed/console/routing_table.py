"""The table of how requests were routed, one row an arm: herds, movement, deviation, regret, imbalance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from testbed.scenario.quantity import format_s

# Heading -> path into the arm's summary, and how the value is written.
COLUMNS = {
    "herd": ("herd.size", "{:.2f}"),
    "migration /min": ("migration_per_minute", "{:.3g}"),
    "bounces /min": ("bounces_per_minute", "{:.3g}"),
    "dev_F": ("deviation.dev_F", "{:.3g}"),
    "of shares": ("deviation.dev_F_shares", "{:.3g}"),
    "bound": ("deviation.bound", "{:.3g}"),
    "dev_x": ("deviation.dev_x", "{:.3g}"),
    "stale regret": ("regret_s.staleness", "s"),
    "transit": ("regret_s.transit", "s"),
    "rule": ("regret_s.rule", "s"),
    "wrong choice": ("wrong_choice_fraction", "{:.2f}"),
}


def print_routing(console: Console, summary: dict[str, Any]) -> None:
    """Print the table, and what its bound is worth.

    Args:
        console: where to print.
        summary: the content of `summary.json`.
    """
    table = Table(
        title="routing", title_justify="left", box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0)
    )
    table.add_column("arm", no_wrap=True)
    for heading in COLUMNS:
        table.add_column(heading, justify="right")
    for arm, words in summary["arms"].items():
        table.add_row(arm, *(_written(_at(words, path), how) for path, how in COLUMNS.values()))
    console.print(table)
    for reason in _conjectures(summary):
        console.print(f"the bound is a conjecture: {reason}", highlight=False, soft_wrap=True)


def _conjectures(summary: dict[str, Any]) -> list[str]:
    """Why bounds are not proven, each reason once."""
    deviations = [words.get("deviation") or {} for words in summary["arms"].values()]
    return list(dict.fromkeys("; ".join(each["bound_conjecture_because"]) for each in deviations
                              if each.get("bound_conjecture_because")))  # fmt: skip


def _at(words: Mapping[str, Any], path: str) -> Any:
    value: Any = words
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _written(value: float | None, how: str) -> str:
    if value is None:
        return "-"
    if how == "s":
        return format_s(value) if value >= 0 else f"-{format_s(-value)}"
    return how.format(value)
