"""What `testbed show` prints below the tables: five questions, and each arm's answer to them."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table

from testbed.analysis.questions import QUESTIONS, Question

OLDEST_SCHEMA = 2  # of summaries that hold what the answers need


def print_questions(console: Console, summary: dict[str, Any]) -> None:
    """Print every question with a line for each arm.

    Args:
        console: where to print.
        summary: the content of `summary.json`.
    """
    if summary["schema_version"] < OLDEST_SCHEMA:
        console.print("This run was summarised by an older version, without what the five questions need.")
        return
    for question in QUESTIONS:
        console.print(question.text, style="bold", highlight=False)
        answers = Table.grid(padding=(0, 2, 0, 0))
        answers.add_column(no_wrap=True)
        answers.add_column()
        for answer, arms in _by_answer(question, summary["arms"]).items():
            answers.add_row(", ".join(arms), answer)
        console.print(Padding(answers, (0, 0, 0, 2)), highlight=False)


def _by_answer(question: Question, arms: dict[str, Any]) -> dict[str, list[str]]:
    """The arms that have the same answer, by that answer."""
    found: dict[str, list[str]] = {}
    for arm, words in arms.items():
        found.setdefault(question.answer(words), []).append(arm)
    return found
