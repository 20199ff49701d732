"""What the verdict of each arm rests on: every check with its word, every reason, what the machine did meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from testbed.scenario.quantity import format_s

MOST_LINKS = 8
STYLES = {"valid": "green", "suspect": "yellow", "invalid": "red", "incomplete": "red"}


def print_checks(console: Console, summary: dict[str, Any]) -> None:
    """Print the checks of all arms side by side, then the reasons, and the machine.

    Args:
        console: where to print.
        summary: the content of `summary.json`; arms of runs that did not keep their checks are left out.
    """
    arms = {arm: words for arm, words in summary["arms"].items() if words.get("checks")}
    table = Table(title="checks", title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("check")
    for arm in arms:
        table.add_column(arm, no_wrap=True)
    for check in dict.fromkeys(check for words in arms.values() for check in words["checks"]):
        table.add_row(check, *(_styled(words["checks"].get(check, "unknown")) for words in arms.values()))
    console.print(table)
    for arm, words in arms.items():
        if words.get("delivered_delays_s"):
            console.print(_delays(arm, words["delivered_delays_s"]))
    for arm, words in arms.items():
        advice = [words["verdict_advice"]] if words.get("verdict_advice") else []
        of_host = (*_live(words), *_timers(words.get("timers_s")), *_machine(words.get("host")))
        for said in (*words["verdict_reasons"], *advice, *words["notes"], *of_host):
            console.print(f"{arm}: {said}", highlight=False, markup=False, soft_wrap=True)


def _delays(arm: str, links: Sequence[dict[str, Any]]) -> Table:
    """Delays as asked and as delivered, of the links that differ most."""
    title = f"{arm}: delays asked and delivered, scenario time, the {min(MOST_LINKS, len(links))} links that differ most"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("link")
    for name in ("messages", "mean asked", "delivered", "p50 asked", "delivered", "p99 asked", "delivered"):
        table.add_column(name, justify="right")
    for each in links[:MOST_LINKS]:
        pairs = [
            _seconds(each[side][name]) for name in ("mean", "p50", "p99") for side in ("asked", "delivered")
        ]
        table.add_row(each["link"], str(each["messages"]), *pairs)
    return table


def _styled(word: str) -> str:
    return f"[{STYLES[word]}]{word}[/]" if word in STYLES else word


def _live(words: dict[str, Any]) -> list[str]:
    """What the roles took for now, and how many messages came too late to be held; nothing of a virtual run."""
    if words["engine"] != "live":
        return []
    count = words.get("inversions")
    late = (
        ""
        if count is None
        else f"; {count} inversions (messages that reached their process after their release)"
    )
    return [f"dating {words['dating']}{late}"]


def _timers(latest: dict[str, Any] | None) -> list[str]:
    """The process that was woken latest before the start; nothing of a virtual run."""
    if latest is None or not latest["process"]:
        return []
    p50, p99 = _seconds(latest["p50"]), _seconds(latest["p99"])
    return [f"timers before the start: p50 {p50}, p99 {p99} late at {latest['process']}, the latest process"]


def _machine(host: dict[str, Any] | None) -> list[str]:
    """What the machine did, in one line; nothing of a virtual run."""
    if host is None:
        return []
    if not host["watched"]:
        return ["the machine was not watched"]
    said = [
        f"CPU pressure {_share(host['pressure'])}",
        f"{_number(host['busy_cores'])} cores in use",
        f"steal {_share(host['steal'])}",
        f"throttled for {_seconds(host['throttled_s'])}",
        f"{host['slow_spells']} slow spells of the processors ({_share(host['slow_fraction'])} of the time, at worst at "
        f"1/{_number(host['slowdown'])} of their speed)",
        f"wall clock steps up to {_seconds(host['clock_step_s'])}",
        f"{_number(host['swapped_pages'])} pages swapped",
    ]
    return [f"the machine: {', '.join(said)}"]


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.3g}"


def _share(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.1%}"


def _seconds(value: float | None) -> str:
    return "unknown" if value is None else format_s(value)
