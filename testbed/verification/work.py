"""Work the catalogue through: results come as they are found, and one that fails does not take the others along."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from io import BytesIO
from multiprocessing import get_context
from typing import NamedTuple

from testbed.errors import InterruptError
from testbed.verification.catalogue import chosen, entries
from testbed.verification.finding import Finding, Illustration


class Picture(NamedTuple):
    """A figure as drawn: the stem of its file, what one sees in it, and the PNG."""

    stem: str
    caption: str
    png: bytes


Result = Finding | Picture


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

    An entry that raises gives a finding that is not met and says why, and its traceback goes to stderr; unless the user
    stopped it.

    Args:
        order: what is wanted.
        workers: with more than one, so many processes work entries out, each of which comes when it is complete.

    Raises:
        UsageError: a target in `order.only` stands nowhere in the catalogue.
        InterruptError: the user stopped a run.
    """
    places = chosen(order.only, order.live)
    if workers == 1:
        for place in places:
            yield from results_of(order, place)
        return
    # Children begin afresh: this process may have threads, which a forked one would not survive.
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
    try:
        parts = {pool.submit(_gathered, order, place): place for place in places}
        for part in as_completed(parts):
            error = part.exception()
            if isinstance(error, (InterruptError, KeyboardInterrupt)):
                raise error
            yield from [_failure(order, parts[part], error)] if error else part.result()
    finally:
        pool.shutdown(cancel_futures=True)


def results_of(order: Order, place: int) -> Iterator[Result]:
    """The results of one entry, by its place in the catalogue.

    Raises:
        InterruptError: the user stopped a run.
    """
    entry = entries(order.live)[place]
    try:
        for finding in entry.findings(order.quick):
            if not order.only or finding.target in order.only:
                yield finding._replace(form=_form(order))
        if order.drawn and entry.illustrations is not None:
            for illustration in entry.illustrations(order.quick):
                yield _drawn(illustration)
    except InterruptError:
        raise
    except Exception as error:  # whatever it is, the other entries have nothing to do with it
        yield _failure(order, place, error)


def _failure(order: Order, place: int, error: BaseException) -> Finding:
    traceback.print_exception(error)
    target = entries(order.live)[place].targets[0]
    said = f"{type(error).__name__}: {error}"
    engine = "live" if order.live else ""
    return Finding(target, "could not be worked out", "", engine, "a result", said, "", False, _form(order))


def _drawn(illustration: Illustration) -> Picture:
    png = BytesIO()
    illustration.figure.savefig(png)
    return Picture(illustration.stem, illustration.caption, png.getvalue())


def _form(order: Order) -> str:
    return "quick" if order.quick else "full"


def _gathered(order: Order, place: int) -> list[Result]:
    return list(results_of(order, place))
