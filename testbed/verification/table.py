"""The table of findings: for the terminal and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from testbed.verification.finding import Finding

COLUMNS = ("target", "what", "source", "engine", "expected", "measured", "tolerance", "met")


def as_table(findings: Sequence[Finding]) -> RenderableType:
    """A rich table, a row per finding."""
    table = Table(title=summary_line(findings), title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for column in COLUMNS:
        table.add_column(column, overflow="fold")
    for finding in findings:
        style = "" if finding.met else "bold red"
        table.add_row(*words(finding), Text(verdict(finding), style=style))
    return table


def words(finding: Finding) -> tuple[str, ...]:
    """The cells of its row before the last, in the order of `COLUMNS`."""
    return (
        finding.target, finding.what, finding.source, finding.engine,
        finding.expected, finding.measured, finding.tolerance,
    )  # fmt: skip


def as_json(findings: Sequence[Finding]) -> dict[str, Any]:
    """Plain data: `findings`, a list of objects with the columns as keys, and `met`, whether all are."""
    return {"met": all_met(findings), "findings": [finding._asdict() for finding in findings]}


def all_met(findings: Sequence[Finding]) -> bool:
    """Whether every finding is within its tolerance."""
    return all(finding.met for finding in findings)


def summary_line(findings: Sequence[Finding]) -> str:
    """How many findings there are, how many are met, and the targets of those that are not."""
    missed = list(dict.fromkeys(finding.target for finding in findings if not finding.met))
    met = sum(finding.met for finding in findings)
    said = f"{met} of {len(findings)} findings met"
    return f"{said}; not met: {', '.join(missed)}" if missed else said


def verdict(finding: Finding) -> str:
    """In words."""
    return "met" if finding.met else "not met"


def as_line(finding: Finding, at_s: float) -> str:
    """A finding in one line, for somebody who waits.

    Args:
        finding: that has just come.
        at_s: since the beginning, seconds.
    """
    return (
        f"{at_s:6.0f} s  {finding.target}: {finding.what}: {finding.measured}"
        f" (expected {finding.expected}): {verdict(finding)}"
    )
