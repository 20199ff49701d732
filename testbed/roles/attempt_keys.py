"""A role for which every attempt of a request is a request of its own.

A root may send a request again while its earlier attempt is still somewhere: at the same leaf even, or with a reply on
its way. Roles keep requests by id, so inside a role that stands behind this border an id carries the attempt as well.
Messages that leave it, and the rows of its records, have the plain id again. Roles stand behind it only where the
scenario has retries or hedging, so nobody else pays for it.

A leaf may give an attempt of a root to several servers. The attempts that it makes of it are numbered in steps of
LEAF_ATTEMPT on top of the root's number, so that all sendings of a request have numbers of their own.
"""

from __future__ import annotations

from typing import Any

from testbed.roles.messages import Cancel, FirstToken, Message, Notice, Reply, Request
from testbed.roles.pass_through import PassThroughEnvironment, PassThroughRole

_BITS = 40  # a plan has far fewer than 2**40 requests
_PLAIN = (1 << _BITS) - 1
LEAF_ATTEMPT = 128  # above the most attempts of a root
_KEYED = (Request, Reply, FirstToken, Cancel)
_KEYED_TABLES = frozenset(("dispatches", "holds", "late_replies", "resendings", "visits"))


def attempt_key(request_id: int, attempt: int) -> int:
    """The id under which a role keeps this attempt; that of the first is the request's own."""
    return (request_id & _PLAIN) | attempt << _BITS


def plain_id(key: int) -> int:
    """The request's own id."""
    return key & _PLAIN


def root_key(key: int) -> int:
    """The id under which a leaf has received what it keeps under this one."""
    return attempt_key(key, (key >> _BITS) % LEAF_ATTEMPT)


class PlainWorld(PassThroughEnvironment):
    """The environment of a role behind the border: what goes out has plain ids."""

    def send(self, target: str, message: Message) -> None:
        """Send with the plain id."""
        if isinstance(message, _KEYED) and message[0] > _PLAIN:
            message = message._replace(request_id=message[0] & _PLAIN)
        self._send(target, message)

    def record(self, table: str, row: tuple[Any, ...]) -> None:
        """Record with the plain id; of decisions, which have no attempt, those of first attempts alone."""
        if table in _KEYED_TABLES:
            row = (row[0] & _PLAIN, *row[1:])
        elif table == "decisions" and row[0] > _PLAIN:
            return
        self._record(table, row)


class AttemptKeys(PassThroughRole):
    """Hands messages on to its role, which is to have a `PlainWorld`, under the ids of their attempts."""

    def on_message(self, source: str, message: Message | Notice) -> None:
        """Take a message."""
        if isinstance(message, _KEYED) and message.attempt:
            message = message._replace(request_id=attempt_key(message[0], message.attempt))
        self._hand_on(source, message)
