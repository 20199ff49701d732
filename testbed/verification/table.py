"""The table of findings: for the terminal, as JSON, and as a page of the documentation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from testbed.errors import RunError
from testbed.verification.finding import Finding, Illustration

COLUMNS = ("target", "what", "source", "engine", "expected", "measured", "tolerance", "met")


def as_table(findings: Sequence[Finding]) -> RenderableType:
    """A rich table, a row per finding."""
    table = Table(title=summary_line(findings), title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for column in COLUMNS:
        table.add_column(column, overflow="fold")
    for finding in findings:
        table.add_row(*finding[:-1], Text("met") if finding.met else Text("not met", style="bold red"))
    return table


def as_json(findings: Sequence[Finding]) -> dict[str, Any]:
    """Plain data: `findings`, a list of objects with the columns as keys, and `met`, whether all are."""
    return {"met": all_met(findings), "findings": [finding._asdict() for finding in findings]}


def write_page(
    path: Path, findings: Sequence[Finding], illustrations: Sequence[Illustration], *, quick: bool
) -> list[Path]:
    """Write the table as a page of Markdown, its figures in `figures` beside it; the paths of all files.

    Raises:
        RunError: the page cannot be written.
    """
    figures = path.parent / "figures"
    written = [path]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        for each in illustrations:
            figures.mkdir(exist_ok=True)
            written.append(figures / f"{each.stem}.png")
            each.figure.savefig(written[-1])
        path.write_text(_page(findings, illustrations, quick))
    except OSError as error:
        raise RunError(f"writing {path}: {error.strerror}") from error
    return written


def all_met(findings: Sequence[Finding]) -> bool:
    """Whether every finding is within its tolerance."""
    return all(finding.met for finding in findings)


def summary_line(findings: Sequence[Finding]) -> str:
    """How many findings there are, how many are met, and the targets of those that are not."""
    missed = list(dict.fromkeys(finding.target for finding in findings if not finding.met))
    met = sum(finding.met for finding in findings)
    said = f"{met} of {len(findings)} findings met"
    return f"{said}; not met: {', '.join(missed)}" if missed else said


def _page(findings: Sequence[Finding], illustrations: Sequence[Illustration], quick: bool) -> str:
    command = "testbed verify " + ("--quick" if quick else "--full")
    rows = [
        "| "
        + " | ".join(_cell(word) for word in (*finding[:-1], "met" if finding.met else "**not met**"))
        + " |"
        for finding in findings
    ]
    pictures = [f"![{each.caption}](figures/{each.stem}.png)\n\n{each.caption}\n" for each in illustrations]
    return "\n".join(
        [
            "# Verification",
            "",
            f"What theory and publications say, held against what this testbed gives: written by `{command} --out`.",
            f"{summary_line(findings)}.",
            "",
            "| " + " | ".join(COLUMNS) + " |",
            "|" + "---|" * len(COLUMNS),
            *rows,
            "",
            *pictures,
        ]
    )


def _cell(word: str) -> str:
    return word.replace("|", "\\|").replace("\n", " ")
