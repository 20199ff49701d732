"""The table that a run prints: one row an arm, then verdicts and expectations in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from testbed.analysis.compare import estimate, figure_at
from testbed.console.guard_table import print_guards
from testbed.scenario.expectation import Expectation
from testbed.scenario.quantity import format_s

OTHER_OUTCOMES = ("failed", "timed_out", "shed", "no_target", "lost", "unfinished")
VERDICT_STYLES = {"valid": "green", "suspect": "yellow", "invalid": "red", "incomplete": "red"}
MOST_REASONS = 3  # the gravest; the others mostly tell of the same
MOST_CELLS = 8  # more shares than that do not fit on a line; they stand in summary.json


def print_summary(console: Console, summary: dict[str, Any]) -> None:
    """Print a run's summary: requests, sojourns, oscillation and verdict of each arm; then what was expected.

    Args:
        console: where to print.
        summary: the content of `summary.json`.
    """
    console.print(_requests_table(summary))
    console.print(_routing_table(summary))
    print_guards(console, summary)
    _print_dating(console, summary)
    _print_reasons(console, summary)
    _print_expectations(console, summary)


def print_repeats(
    console: Console, summaries: Sequence[dict[str, Any]], expectations: Sequence[Expectation]
) -> None:
    """Print the main figures over several seeds, and whether the expectations hold over them."""
    table = _table(f"{len(summaries)} seeds: mean ± half of its 95 % interval")
    for name in ("arm", "p50", "p90", "p99", "amplitude", "verdicts"):
        table.add_column(name, justify="left" if name in ("arm", "verdicts") else "right")
    for arm in summaries[0]["arms"]:
        runs = [summary["arms"][arm] for summary in summaries if arm in summary["arms"]]
        verdicts = Counter(run["verdict"] for run in runs)
        keys = ("sojourn_s.p50", "sojourn_s.p90", "sojourn_s.p99", "oscillation.amplitude")
        figures = [estimate([figure_at(run, key) for run in runs]) for key in keys]
        table.add_row(
            arm,
            *(f"{each.mean:.3g} ± {each.half_width:.1g}" for each in figures),
            ", ".join(f"{count} {word}" for word, count in verdicts.items()),
        )
    console.print(table)
    for expectation in expectations:
        outcome = expectation.check_repeats(summaries)
        _print_outcome(console, outcome.met, outcome.text + _margin(expectation, summaries))


def _margin(expectation: Expectation, summaries: Sequence[dict[str, Any]]) -> str:
    """The two sides' difference and half of its 95 % interval, seed by seed: all arms of a seed have the same requests."""
    outcomes = [expectation.check(summary) for summary in summaries]
    pairs = [(each.observed, each.limit) for each in outcomes]
    margin = estimate([left - right for left, right in pairs if left is not None and right is not None])
    return f"; difference {margin.mean:.3g} ± {margin.half_width:.1g}" if margin.runs > 1 else ""


def _requests_table(summary: dict[str, Any]) -> Table:
    table = _table(f"{summary['name']}: requests, sojourns, requests in flight")
    table.add_column("arm", no_wrap=True)
    for name in ("planned", "completed", "other", "p50", "p90", "p99", "amplitude", "period"):
        table.add_column(name, justify="right")
    table.add_column("verdict", no_wrap=True)
    for arm, words in summary["arms"].items():
        requests, sojourn, swing, verdict = (
            words["requests"],
            words["sojourn_s"],
            words["oscillation"],
            words["verdict"],
        )
        other = {key: requests[key] for key in OTHER_OUTCOMES if requests.get(key)}
        table.add_row(
            arm,
            str(requests["planned"]),
            str(requests["completed"]),
            ", ".join(f"{count} {key}" for key, count in other.items()) or "-",
            *(_seconds(sojourn[key]) for key in ("p50", "p90", "p99")),
            _number(swing["amplitude"]),
            _seconds(swing["period_s"]) if swing["significant"] else "-",
            f"[{VERDICT_STYLES[verdict]}]{verdict}[/]",
        )
    return table


def _routing_table(summary: dict[str, Any]) -> Table:
    table = _table("observations, settling, shares")
    table.add_column("arm", no_wrap=True)
    cells = list(dict.fromkeys(cell for words in summary["arms"].values() for cell in words["cells"]))
    if len(cells) > MOST_CELLS:
        cells = []
    settling = any(words["settled"]["change_at_s"] is not None for words in summary["arms"].values())
    columns = ["first token p99", "age p50", "age p99", "loop delay", "late p99"]
    for name in (*columns, *(["shares settled", "sojourn settled"] if settling else []), *cells):
        table.add_column(name, justify="right")
    for arm, words in summary["arms"].items():
        age, settled, lateness = words["staleness_s"], words["settled"], words["release_lateness_s"]
        table.add_row(
            arm,
            _seconds(words["first_token_s"]["p99"]),
            _seconds(age["p50"]),
            _seconds(age["p99"]),
            _seconds(words["policy"].get("loop_delay_s")),
            _seconds(lateness["p99"] if lateness else None),  # older summaries have null for virtual runs
            *(
                [_seconds(settled[key]) for key in ("shares_settled_s", "sojourn_settled_s")]
                if settling
                else []
            ),
            *(_share(words["cells"].get(cell, {}).get("share")) for cell in cells),
        )
    return table


def _table(title: str) -> Table:
    return Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))


def _print_dating(console: Console, summary: dict[str, Any]) -> None:
    """What the roles of live runs took for now, where it is not the clock."""
    due = [
        arm for arm, words in summary["arms"].items() if (words["engine"], words["dating"]) == ("live", "due")
    ]
    if due:
        said = f"dating due, not actual: {', '.join(due)}"
        console.print(said, highlight=False, markup=False, soft_wrap=True)


def _print_reasons(console: Console, summary: dict[str, Any]) -> None:
    for arm, words in summary["arms"].items():
        style, reasons = VERDICT_STYLES[words["verdict"]], words["verdict_reasons"]
        for reason in reasons[:MOST_REASONS]:
            said = Text.assemble((f"{arm} is {words['verdict']}:", style), f" {reason}")
            console.print(said, highlight=False, soft_wrap=True)
        if len(reasons) > MOST_REASONS:
            more = f"{arm}: {len(reasons) - MOST_REASONS} more reasons, see testbed show --checks"
            console.print(more, highlight=False, markup=False, soft_wrap=True)
        if words.get("verdict_advice"):
            console.print(f"{arm}: {words['verdict_advice']}", highlight=False, markup=False, soft_wrap=True)


def _print_expectations(console: Console, summary: dict[str, Any]) -> None:
    for line in summary.get("expectations", []):
        met = "met" if line["met"] else "not met"
        _print_outcome(console, line["met"], f"{line['text']}: {met}, {line['said']}")


def _print_outcome(console: Console, met: bool, text: str) -> None:
    console.print(text, style="green" if met else "red", highlight=False, soft_wrap=True, markup=False)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _seconds(value: float | None) -> str:
    return "-" if value is None else format_s(value)
