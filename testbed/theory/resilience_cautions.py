"""Warnings about what is meant to help against failure and overload, and known to make them worse."""

from __future__ import annotations

from collections.abc import Iterator

from testbed.scenario.quantity import format_s
from testbed.scenario.resilience_words import AutoscalerWords, Retries
from testbed.scenario.schema import Scenario

MOST_ATTEMPTS = 4  # of a request by both tiers together: beyond, a failure multiplies the load by more


def resilience_cautions(scenario: Scenario) -> Iterator[str]:
    """Retries without a bound on their number, tiers that multiply them, and autoscalers that act on their own past."""
    for name, words in scenario.classes.items():
        yield from _of_retries(f"{name}'s", words.retries)
    for name, cell in scenario.cells.items():
        yield from _of_retries(f"{name}'s leaves'", cell.leaf.retries)
        yield from _of_both(scenario, name)
        if cell.autoscaler is not None:
            yield from _of_autoscaler(name, cell.autoscaler)


def _of_retries(whose: str, words: Retries | None) -> Iterator[str]:
    if words is not None and words.budget is None:
        yield (
            f"{whose} retries have no budget: when many requests fail, the load is multiplied by up to"
            f" {words.attempts}"
        )


def _of_both(scenario: Scenario, cell: str) -> Iterator[str]:
    """A request that is sent again by its root and each time by its leaf, where no budget bounds both."""
    leaf = scenario.cells[cell].leaf.retries
    if leaf is None or leaf.budget is not None:
        return
    for name, words in scenario.classes.items():
        retries = words.retries
        if (
            retries is not None
            and retries.budget is None
            and retries.attempts * leaf.attempts > MOST_ATTEMPTS
        ):
            total = retries.attempts * leaf.attempts
            yield f"roots and {cell}'s leaves both retry {name}: up to {total} servers get each request"


def _of_autoscaler(cell: str, words: AutoscalerWords) -> Iterator[str]:
    """No rest after a change, while the change shows in the measurements only later."""
    blind_s = words.reaction + words.start_up
    if blind_s > words.every and words.cooldown < blind_s:
        yield (
            f"{cell}'s autoscaler changes again {format_s(max(words.cooldown, words.every))} after a change that shows"
            f" only after {format_s(blind_s)} (reaction and start-up): it may swing between its bounds"
        )
