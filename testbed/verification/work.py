"""Work the catalogue through: results come as they are found, and one that fails does not take the others along."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import NamedTuple

from testbed.verification.catalogue import chosen, entries
from testbed.verification.finding import Finding, Illustration

Result = Finding | Illustration


class Order(NamedTuple):
    """What is wanted.

    Attributes:
        quick: the short form.
        live: with real processes.
        only: targets; all unless given.
        drawn: also the figures.
    """

    quick: bool
    live: bool = False
    only: tuple[str, ...] = ()
    drawn: bool = False


def all_results(order: Order, workers: int = 1) -> Iterator[Result]:
    """The findings of each entry of the catalogue, then its figures if they are wanted.

    An entry that raises gives a finding that is not met and says why, and its traceback goes to stderr.

    Args:
        order: what is wanted.
        workers: with more than one, so many processes work entries out, each of which comes when it is complete.

    Raises:
        UsageError: a target in `order.only` stands nowhere in the catalogue.
    """
    places = chosen(order.only, order.live)
    if workers == 1:
        for place in places:
            yield from results_of(order, place)
        return
    # Children begin afresh: this process may have threads, which a forked one would not survive.
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        parts = [pool.submit(_gathered, order, place) for place in places]
        for part in as_completed(parts):
            yield from part.result()


def results_of(order: Order, place: int) -> Iterator[Result]:
    """The results of one entry, by its place in the catalogue."""
    entry = entries(order.live)[place]
    form = "quick" if order.quick else "full"
    try:
        for finding in entry.findings(order.quick):
            if not order.only or finding.target in order.only:
                yield finding._replace(form=form)
        if order.drawn and entry.illustrations is not None:
            yield from entry.illustrations(order.quick)
    except Exception as error:  # whatever it is, the other entries have nothing to do with it
        traceback.print_exception(error)
        said = f"{type(error).__name__}: {error}"
        yield Finding(entry.targets[0], "could not be worked out", "", "", "a result", said, "", False, form)


def _gathered(order: Order, place: int) -> list[Result]:
    return list(results_of(order, place))
