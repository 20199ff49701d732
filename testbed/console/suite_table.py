"""Tables over several runs: the scenarios of a folder, and one scenario at two time scales."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from testbed.analysis.compare import Difference
from testbed.analysis.scale import ScaleFinding

MOST_KEYS = 10
PASSED = 0  # the exit status of a scenario whose runs were valid and met every expectation


class SuiteLine(NamedTuple):
    """What came of one scenario of a folder."""

    path: Path
    status: int
    summaries: list[dict[str, Any]]
    said: str = ""  # why it could not be run


def print_suite(console: Console, lines: Sequence[SuiteLine]) -> None:
    """A line for each scenario: passed or failed, verdicts, expectations met."""
    table = Table(title="scenarios", title_justify="left")
    for name in ("scenario", "result", "verdicts", "expectations met"):
        table.add_column(name)
    for line in lines:
        result = "[green]passed[/]" if line.status == PASSED else f"[red]failed[/] (status {line.status})"
        table.add_row(line.path.name, result, line.said or _verdicts(line.summaries), _met(line.summaries))
    console.print(table)
    passed = sum(line.status == PASSED for line in lines)
    console.print(f"{passed} of {len(lines)} passed", highlight=False)


def print_scales(
    console: Console, findings: Sequence[ScaleFinding], unequal: Sequence[Difference] = ()
) -> None:
    """A line for each figure at the two scales, then the keys of the summary that differ though they may not."""
    table = Table(title="the same at twice the time scale, in scenario time", title_justify="left")
    for name in ("arm", "figure", "once", "doubled", "difference", "accepted", ""):
        table.add_column(name)
    for each in findings:
        word = "[green]agrees[/]" if each.agrees else "[red]does not agree[/]"
        values = (
            f"{each.once:.4g}",
            f"{each.doubled:.4g}",
            f"{each.difference:.2%}",
            f"{each.tolerance:.2g}",
        )
        table.add_row(each.arm, each.measure, *values, word)
    console.print(table)
    for key in unequal[:MOST_KEYS]:
        text = f"{key.key} is {key.left} and then {key.right}: under virtual time nothing may differ"
        console.print(text, style="red", highlight=False, markup=False, soft_wrap=True)
    if len(unequal) > MOST_KEYS:
        console.print(f"and {len(unequal) - MOST_KEYS} more keys", style="red", highlight=False)


def _verdicts(summaries: Sequence[dict[str, Any]]) -> str:
    counts: dict[str, int] = {}
    for summary in summaries:
        for words in summary["arms"].values():
            counts[words["verdict"]] = counts.get(words["verdict"], 0) + 1
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.items())


def _met(summaries: Sequence[dict[str, Any]]) -> str:
    outcomes = [line["met"] for summary in summaries for line in summary.get("expectations", [])]
    return f"{sum(map(bool, outcomes))} of {len(outcomes)}" if outcomes else "-"
