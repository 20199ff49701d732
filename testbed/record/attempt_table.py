"""A row per sending of the requests that were sent more than once, by their roots or by their leaves.

What a root sent to a leaf, what the leaf gave to a server, and what the server did are joined by request and attempt.
A sending that never reached a leaf has empty names and NaN from there on.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from testbed.record.gather import Rows, Texts, taken
from testbed.roles.attempt_keys import LEAF_ATTEMPT
from testbed.roles.messages import Outcome

Ints = NDArray[np.int64]
CAUSES = ("first", "retry", "hedge")
_ATTEMPTS = LEAF_ATTEMPT * LEAF_ATTEMPT  # above the number of any attempt
_OUTCOMES = ("", *(each.name.lower() for each in Outcome))


def attempts_table(logged: dict[str, Rows]) -> Rows:
    """The sendings in order of request, and of attempt; the logs are in scenario time."""
    again = np.unique(logged["resendings"]["request_id"])
    parts = {name: _of(logged[name], again) for name in ("dispatches", "visits", "services", "resendings")}
    dispatches, visits = parts["dispatches"], parts["visits"]
    given, sent = _keys(visits), _keys(dispatches)
    # What a leaf has seen; and what was sent to one that saw nothing of it.
    keys = np.union1d(given, np.setdiff1d(sent, _of_root(given)))
    request, number = keys // _ATTEMPTS, keys % _ATTEMPTS
    at_root, at_leaf = _places(sent, _of_root(keys)), _places(given, keys)
    at_server = _places(_keys(parts["services"]), keys)
    cause = _causes(parts["resendings"], keys)
    return {
        "request_id": request,
        "attempt": number % LEAF_ATTEMPT,
        "leaf_attempt": number // LEAF_ATTEMPT,
        "cause": Texts(CAUSES, cause.astype(np.int32)),
        "root": _text(dispatches["root"], at_root),
        "leaf": _text(dispatches["leaf"], at_root),
        "server": _text(visits["server"], at_leaf),
        "outcome": _outcome(dispatches, at_root),
        "leaf_outcome": _outcome(visits, at_leaf),
        "sent_at_s": _column(dispatches["sent_at_s"], at_root),
        "at_leaf_s": _column(visits["at_leaf_s"], at_leaf),
        "at_server_s": _column(parts["services"]["at_server_s"], at_server),
        "finished_at_s": _column(parts["services"]["finished_at_s"], at_server),
        "left_leaf_s": _column(visits["left_leaf_s"], at_leaf),
        "replied_at_s": _column(dispatches["replied_at_s"], at_root),
    }


def _of(table: Rows, requests: Ints) -> Rows:
    """The rows of these requests; where there are none, which is so in most runs, without a look at the rows."""
    found = np.flatnonzero(np.isin(table["request_id"], requests)) if len(requests) else requests
    return taken(table, found)


def _keys(table: Rows) -> Ints:
    keys: Ints = table["request_id"] * _ATTEMPTS + table["attempt"]
    return keys


def _of_root(keys: Ints) -> Ints:
    """The root's sendings behind these."""
    return keys - keys % _ATTEMPTS + keys % LEAF_ATTEMPT


def _places(keys: Ints, wanted: Ints) -> Ints:
    """The position of each wanted key; -1: it is not there. Of several the last one."""
    if not len(keys):
        return np.full(len(wanted), -1)
    order = np.argsort(keys, kind="stable")
    places = np.searchsorted(keys[order], wanted, side="right") - 1
    found = order[np.maximum(places, 0)]
    return np.where((places >= 0) & (keys[found] == wanted), found, -1)


def _causes(resendings: Rows, keys: Ints) -> Ints:
    """By position in CAUSES; a leaf's first sending has that of its root's."""
    known = np.maximum(resendings["cause"].places(CAUSES), 0)
    own, of_root = _places(_keys(resendings), keys), _places(_keys(resendings), _of_root(keys))
    found = np.where(keys % _ATTEMPTS >= LEAF_ATTEMPT, own, of_root)
    return np.where(found >= 0, known[found] if len(known) else 0, 0).astype(np.int64)


def _column(column: NDArray[Any], places: Ints) -> NDArray[np.float64]:
    if not len(column):
        return np.full(len(places), np.nan)
    return np.where(places >= 0, column[places], np.nan)


def _text(column: Texts, places: Ints) -> Texts:
    words = tuple(dict.fromkeys(("", *column.words)))
    numbers = column.places(words)
    if not len(numbers):
        return Texts(words, np.zeros(len(places), np.int32))
    return Texts(words, np.where(places >= 0, numbers[places], 0).astype(np.int32))


def _outcome(table: Rows, places: Ints) -> Texts:
    outcome = table["outcome"]
    if not len(outcome):
        return Texts(_OUTCOMES, np.zeros(len(places), np.int32))
    return Texts(_OUTCOMES, np.where(places >= 0, outcome[places] + 1, 0).astype(np.int32))
