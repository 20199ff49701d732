"""The five questions that whoever deploys a balancer asks, answered from the summary of an arm, each with its numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from testbed.scenario.quantity import format_s

HIDDEN = 1.25  # work this many times as uneven as the counts is hidden by them
EVEN = 0.2  # an imbalance below it is nothing to speak of

Summary = Mapping[str, Any]


class Question(NamedTuple):
    """A question, and how an arm's summary answers it in a sentence."""

    text: str
    answer: Callable[[Summary], str]


def ages(arm: Summary) -> str:
    """How old the observations were when received, and when used."""
    used, received = arm["staleness_s"], arm["transit_s"]
    if used["p50"] is None:
        return "no observation was ever used."
    at_use = f"{_s(used['p50'])} old when used (p99 {_s(used['p99'])})"
    if received["p50"] is None:
        return f"{at_use}."
    return f"{_s(received['p50'])} old when received (p99 {_s(received['p99'])}), {at_use}."


def together(arm: Summary) -> str:
    """Whether the roots moved together, against chance."""
    found = arm.get("synchrony") or {}
    if found.get("correlation") is None or arm["migration_per_minute"] is None:
        return "not known: fewer than two roots moved."
    said = "yes" if found["above_chance"] else "no more than by chance"
    return (
        f"{said}: correlation {found['correlation']:.2f} at the same report, where chance stays below "
        f"{found['chance_high']:.2f}; migration {arm['migration_per_minute']:.3g}, bounces {arm['bounces_per_minute']:.3g} per minute."
    )


def hidden_work(arm: Summary) -> str:
    """Whether equal counts hid unequal work, between cells and inside them."""
    found = arm.get("imbalance") or {}
    if found.get("requests") is None:
        return "not known: nothing was in flight, or no samples were taken."
    within = found["within_cells"]
    pairs = [("between cells", found), *([("inside them", within)] if within["requests"] is not None else [])]
    hides = [name for name, pair in pairs if _hides(pair)]
    said = f"yes, {' and '.join(hides)}" if hides else "no"
    numbers = "; ".join(
        f"{name} {_percent(pair['requests'])} in requests, {_percent(pair['work'])} in work"
        for name, pair in pairs
    )
    return f"{said}: the fullest above the mean, {numbers}."


def constraints(arm: Summary) -> str:
    """Whether requests and probabilities kept to the allowed cells."""
    found = arm["constraints"]
    if found["violations"] == 0:
        return f"yes: no violation in {arm['requests']['planned']} requests, none in any probability."
    return (
        f"no: {found['violations']} violations, largest probability of a forbidden cell "
        f"{found['forbidden_probability_max']:.3g}."
    )


def recovery(arm: Summary) -> str:
    """Whether shares and response times both recovered after the last change."""
    found = arm["settled"]
    if found["change_at_s"] is None:
        return "nothing changed: no fault, no step of the load."
    times = {"shares": found["shares_settled_s"], "response times": found["sojourn_settled_s"]}
    settled = [name for name, seconds in times.items() if seconds is not None]
    said = (
        "both settled"
        if len(settled) == 2
        else f"only the {settled[0]} settled"
        if settled
        else "neither settled"
    )
    numbers = ", ".join(
        f"{name} {'never' if seconds is None else f'within {_s(seconds)}'}" for name, seconds in times.items()
    )
    return f"{said} after the change at {_s(found['change_at_s'])}: {numbers}{_levels(arm)}."


def _levels(arm: Summary) -> str:
    """The mean sojourn before the first change and at the end, where both are known: settled is not recovered."""
    means = [arm["windows"].get(name, {}).get("sojourn_s", {}).get("mean") for name in ("before", "last")]
    return "" if None in means else f"; mean sojourn {_s(means[0])} before, {_s(means[1])} at the end"


QUESTIONS = (
    Question("How old were the observations?", ages),
    Question("Did the roots move together?", together),
    Question("Did equal counts hide unequal work?", hidden_work),
    Question("Were constraints kept?", constraints),
    Question("Did shares and response times both recover?", recovery),
)


def _hides(pair: Mapping[str, Any]) -> bool:
    return bool(pair["work"] > EVEN and pair["work"] > HIDDEN * pair["requests"])


def _s(seconds: float) -> str:
    return format_s(seconds)


def _percent(part: float) -> str:
    return f"{part * 100:.0f} %"
