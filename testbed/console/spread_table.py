"""What `testbed run --check-spread` prints: each figure's A/A spread, and which differences between arms exceed it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from testbed.analysis.spread import Spread, spreads, unequal_keys

STYLES = {"differs": "bold", "noise": "dim", "equal": "dim"}
MOST_KEYS = 10


def print_spread(console: Console, summaries: Sequence[dict[str, Any]], engine: str) -> bool:
    """Print the spread over runs of one plan; returns whether it is as it has to be: of any size live, else none.

    Args:
        console: where to print.
        summaries: the content of `summary.json` of each run.
        engine: 'live' or 'virtual'.
    """
    console.print(_table(spreads(summaries), len(summaries)))
    if engine == "live":
        return True
    unequal = unequal_keys(summaries)
    if not unequal:
        console.print("A/A: no figure differs, as it has to be under virtual time", style="green")
        return True
    for each in unequal[:MOST_KEYS]:
        text = f"A/A: {each.key} is {each.left} and then {each.right}: under virtual time nothing may differ"
        console.print(text, style="red", highlight=False, markup=False, soft_wrap=True)
    return False


def _table(found: Sequence[Spread], runs: int) -> Table:
    first = found[0].arm if found else ""
    several = any(each.arm != first for each in found)
    table = Table(
        title=f"A/A spread: {runs} runs of the same plan (difference ± half of its 95 % interval)",
        title_justify="left",
        box=SIMPLE_HEAD,
        pad_edge=False,
    )
    columns = ("mean", "spread", "relative", *((f"less {first}", "") if several else ()))
    for name in ("arm", "figure", *columns):
        table.add_column(name, justify="left" if name in ("arm", "figure", "") else "right")
    last = None
    for each in found:
        relative = "-" if math.isnan(each.relative) else f"{each.relative:.1%}"
        numbers = (f"{each.mean:.4g}", _number(each.spread), relative)
        word = f"[{STYLES[each.word]}]{each.word}[/]" if each.word else ""
        against = (_difference(each), word) if several else ()
        table.add_row(each.arm if each.arm != last else "", each.figure, *numbers, *against)
        last = each.arm
    return table


def _difference(each: Spread) -> str:
    if math.isnan(each.difference):
        return "-"
    return f"{each.difference:+.3g} ± {_number(each.half_width)}"


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.2g}"
