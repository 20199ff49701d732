"""A root that sends requests again, and calls back those whose time is up.

Theory of operation. An attempt that ended in one of the outcomes that the class's words name is followed by another
one, chosen anew by the policy, at once or after a backoff, as long as there are attempts left, the client still waits
(the class's timeout, from the planned arrival) and the budget allows it. Each attempt has a row and a key of its own,
see `attempt_keys`, so a reply to an earlier attempt is late and no more. Where a request finds no usable cell at the
root it is held or refused as ever, and that ends it.

With `cancels` an attempt that has timed out here is called back from its leaf.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any

from testbed.draw import key_base, uniform
from testbed.roles.attempt_keys import attempt_key
from testbed.roles.budget import Budget
from testbed.roles.messages import Cancel, Outcome, Reply, Request
from testbed.roles.root import Root, _Open
from testbed.routing.view import Target
from testbed.scenario.resilience_words import Retries


class RetryingRoot(Root):
    """Sends again what ended badly; see the top of this file."""

    def __init__(
        self, *args: Any, seed: int, retries: list[Retries | None], cancels: list[bool], **words: Any
    ) -> None:
        """Args:
        args, words: those of a root.
        seed: of the run.
        retries: of each stream; None: its requests are sent once.
        cancels: whether attempts of each stream are called back when their time is up.
        """
        super().__init__(*args, **words)
        self._retries = retries
        self._cancels = cancels
        self._again_on = [
            {int(Outcome[word.upper()]) for word in each.on} if each else set() for each in retries
        ]
        self._budgets = [Budget(each.budget if each else None) for each in retries]
        self._requests: dict[int, Request] = {}  # those that are open
        # Attempts have deadlines of their own, not in the order of their plan: the root's own timer stays unused.
        self._armed = [True] * len(retries)
        self._deadlines: list[list[tuple[float, int]]] = [[] for _ in retries]
        self._backing_off: list[tuple[float, int, int, Request, float]] = []
        self._jitter = key_base(seed, self._name, "backoff")

    def on_timer(self, name: str) -> None:
        """As of a root; `again` sends what has waited for its backoff."""
        if name == "again":
            self._end_backoffs()
        else:
            super().on_timer(name)

    def is_idle(self) -> bool:
        """As of a root, and nothing waits to be sent again."""
        return not self._backing_off and super().is_idle()

    def gauges(self) -> tuple[int, int, int]:
        """(requests sent, finished, open)."""
        sent, finished, still_open = super().gauges()
        return sent, finished, still_open + len(self._backing_off)

    def stop(self, *, killed: bool = False) -> None:
        """As of a root: what waits to be sent again is unfinished, or lost, too."""
        super().stop(killed=killed)
        outcome = Outcome.LOST if killed else Outcome.UNFINISHED
        for *_, request, planned_at_s in self._backing_off:
            self._record_unsent(request, outcome, planned_at_s, float("nan"))

    def _dispatch(
        self, request: Request, index: int, target: Target, planned_at_s: float, now_s: float
    ) -> None:
        super()._dispatch(request, index, target, planned_at_s, now_s)
        key, stream, words = request.request_id, self._streams[index], self._retries[index]
        self._requests[key] = request
        if request.attempt == 0:
            self._budgets[index].on_first()
        deadline_s = planned_at_s + stream.timeout_s
        if words is not None and words.attempt_timeout is not None:
            deadline_s = min(deadline_s, now_s + stream.decision_s + words.attempt_timeout)
        deadlines = self._deadlines[index]
        heappush(deadlines, (deadline_s, key))
        if deadlines[0][1] == key:
            self._env.set_timer(f"timeout:{index}", deadline_s)

    def _expire(self, index: int) -> None:
        """End every attempt of a stream whose time is up, and wait for the next deadline."""
        now_s, deadlines, open_ = self._env.now_s(), self._deadlines[index], self._open[index]
        while deadlines and (deadlines[0][0] <= now_s or deadlines[0][1] not in open_):
            _, key = heappop(deadlines)
            if key in open_:
                self._time_out(index, key)
        if deadlines:
            self._env.set_timer(f"timeout:{index}", deadlines[0][0])

    def _time_out(self, index: int, request_id: int) -> None:
        opened, request = self._open[index][request_id], self._requests.pop(request_id)
        was_sent = request not in self._deciding[index]
        super()._time_out(index, request_id)
        if not was_sent:
            return
        if self._cancels[index]:
            self._env.send(opened.leaf, Cancel(request_id, opened.attempt))
        self._send_again(index, request, opened, Outcome.TIMED_OUT)

    def _on_reply(self, source: str, reply: Reply) -> None:
        index = self._stream_of.get(reply.request_id)
        if index is None:
            super()._on_reply(source, reply)
            return
        opened = self._open[index][reply.request_id]
        request = self._requests.pop(reply.request_id)
        super()._on_reply(source, reply)
        self._send_again(index, request, opened, reply.outcome)

    def _send_again(
        self, index: int, request: Request, opened: _Open, outcome: int, attempt: int | None = None
    ) -> None:
        """Another attempt, if the words, the client's patience and the budget have room for one; it has the next number."""
        words, now_s = self._retries[index], self._env.now_s()
        if attempt is None:
            attempt = request.attempt + 1
        if words is None or outcome not in self._again_on[index] or attempt >= words.attempts:
            return
        key = attempt_key(request.request_id, attempt)
        at_s = now_s + self._backoff_s(words, key, attempt)
        if at_s >= opened.planned_at_s + self._streams[index].timeout_s or not self._budgets[index].take():
            return
        self._finished -= 1
        again = request._replace(request_id=key, attempt=attempt)
        if words.backoff:
            heappush(self._backing_off, (at_s, key, index, again, opened.planned_at_s))
            self._env.set_timer("again", self._backing_off[0][0])
        else:
            self._place_again(again, index, opened.planned_at_s, now_s)

    def _backoff_s(self, words: Retries, key: int, attempt: int) -> float:
        if not words.backoff:
            return 0.0
        return words.backoff * 2.0 ** (attempt - 1) * (0.5 + 0.5 * uniform(self._jitter, key, attempt))

    def _end_backoffs(self) -> None:
        now_s, waiting = self._env.now_s(), self._backing_off
        while waiting and waiting[0][0] <= now_s:
            _, _, index, request, planned_at_s = heappop(waiting)
            self._place_again(request, index, planned_at_s, now_s)
        if waiting:
            self._env.set_timer("again", waiting[0][0])

    def _place_again(self, request: Request, index: int, planned_at_s: float, now_s: float) -> None:
        """Choose anew, by what is believed now."""
        self._env.record("resendings", (request.request_id, request.attempt, self._name, "retry", now_s))
        stream = self._streams[index]
        stream.view.now_s = now_s
        stream.view.refresh()
        queues = self._waiting and self._held[index]  # behind those that are held
        target = None if queues else stream.policy.choose(stream.view, request, self._rngs[index])
        if target is None:
            self._keep_or_refuse(request, index, planned_at_s, now_s)
        else:
            self._dispatch(request, index, target, planned_at_s, now_s)
