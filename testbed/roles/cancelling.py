"""A leaf that calls requests back from their servers, so that a slot is free when nobody waits for it any more.

A request is called back when its time is up here, or when its root says so (`Cancel`); a root that called is owed no
reply. A server that has finished meanwhile answers as ever, and the reply is late. A call that overtakes its request
finds nothing and changes nothing: the request is served.
"""

from __future__ import annotations

from testbed.roles.environment import Environment
from testbed.roles.leaf import Leaf, _Open
from testbed.roles.leaf_configuration import LeafConfiguration
from testbed.roles.messages import Cancel, Message, Notice, Outcome, Request


class CancellingLeaf(Leaf):
    """Frees the places of requests that nobody waits for; see the top of this file."""

    def __init__(self, env: Environment, name: str, told: LeafConfiguration, *, cancels: list[bool]) -> None:
        """Args:
        env, name, told: as of a leaf.
        cancels: whether requests of each class are called back, in the scenario's order.
        """
        super().__init__(env, name, told)
        self._cancels = cancels

    def on_message(self, source: str, message: Message | Notice) -> None:
        """As of a leaf; and a root's call."""
        if isinstance(message, Cancel):
            self._on_cancel(message)
        else:
            super().on_message(source, message)

    def _time_out(self, request_id: int, now_s: float) -> None:
        opened = next(each[request_id] for each in self._open if request_id in each)
        was_sent = opened.request not in self._deciding
        super()._time_out(request_id, now_s)
        if was_sent and self._cancels[opened.request.class_index]:
            self._call_back(opened)

    def _on_cancel(self, cancel: Cancel) -> None:
        now_s = self._env.now_s()
        opened = self._close(cancel.request_id)
        if opened is None:
            self._cancel_waiting(cancel, now_s)
            return
        self._finished += 1
        self._call_off(opened, Outcome(cancel.outcome), now_s)

    def _call_off(self, opened: _Open, outcome: Outcome, now_s: float) -> None:
        """What was open is nobody's any more, since the client's time is up or another copy has answered."""
        request = opened.request
        if self._is_undecided(request):
            self._record_unsent(request, outcome, opened.at_leaf_s, now_s)
            return
        self._area(opened.server, now_s)
        if not self._miscount.takes(request.request_id, request.attempt):
            opened.server.on_answered(request.request_id)
        self._count_waiting(opened.server)
        self._timed_out.add(request.request_id)
        if (
            self._hooks.on_reply is not None and outcome != Outcome.CANCELLED
        ):  # which tells nothing of the server
            self._hooks.on_reply(opened.server, now_s - opened.sent_at_s, outcome)
        self._record(opened, outcome, now_s)
        self._call_back(opened)

    def _cancel_waiting(self, cancel: Cancel, now_s: float) -> None:
        """Forget a request that is held, or waits for answers to its probes; harmless where there is none."""
        waiting, outcome = self._held.drop(cancel.request_id), Outcome(cancel.outcome)
        if waiting is not None:
            self._count_held(waiting.request, -1)
            self._end_unsent(waiting.request, outcome, waiting.arrived_at_s, now_s)
        inquiry = self._inquiries.drop(cancel.request_id)
        if inquiry is not None:
            self._count_unsent(inquiry.request, -1)
            self._end_unsent(inquiry.request, outcome, inquiry.at_leaf_s, now_s)

    def _end_unsent(self, request: Request, outcome: Outcome, at_leaf_s: float, now_s: float) -> None:
        self._finished += 1
        self._record_unsent(request, outcome, at_leaf_s, now_s)

    def _call_back(self, opened: _Open) -> None:
        self._env.send(opened.server.name, Cancel(opened.request.request_id, opened.request.attempt))
