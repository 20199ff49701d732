"""A root that sends a second copy of a request while the first one is unanswered.

Theory of operation. Each sending of a request arms a hedge: if it is unanswered after the delay of the class's words,
and the budget and the number of copies allow it, the policy is asked for a cell, and another copy goes there, unless
that one has a copy already; then the least busy of the others, and where there is none, no copy is made. A copy is an
attempt like any other, with a row and a key of its own. The first copy that is completed is the answer: the others are
called back from their leaves, and their rows say `cancelled`. A copy that ends badly ends nothing while another one is
open. When the last one has ended badly the request may be sent again, as `retry` has it; the attempts that its words
allow count every sending. A reply that crosses the call on its way is late.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any

from testbed.roles.attempt_keys import attempt_key, plain_id
from testbed.roles.budget import Budget
from testbed.roles.hedge_delay import HedgeDelay
from testbed.roles.messages import Cancel, Outcome, Request
from testbed.roles.retry import RetryingRoot
from testbed.roles.root import NAN, _Open
from testbed.routing.another_target import another_target
from testbed.routing.view import Target
from testbed.scenario.resilience_words import Hedging


class _Copies:
    """The copies of one request."""

    __slots__ = ("hedges", "next", "open", "tried")

    def __init__(self) -> None:
        self.open: list[int] = []  # keys of those that are unanswered, in order of sending
        self.tried: list[Target] = []
        self.next = 0  # number of the next attempt
        self.hedges = 0


class HedgingRoot(RetryingRoot):
    """Sends second copies; see the top of this file."""

    def __init__(self, *args: Any, hedging: list[Hedging | None], **words: Any) -> None:
        """Args:
        args, words: those of a root that sends again.
        hedging: of each stream; None: one copy of its requests is out at a time.
        """
        super().__init__(*args, **words)
        self._hedging = hedging
        self._hedge_delays = [HedgeDelay(each) if each else None for each in hedging]
        self._hedge_budgets = [Budget(each.budget if each else None) for each in hedging]
        self._copies: dict[int, _Copies] = {}  # by the id of the request
        self._due: list[tuple[float, int, int]] = []  # (at, key of the copy, stream): hedges to come

    def on_timer(self, name: str) -> None:
        """As of a root that sends again; `hedge` sends copies of what is unanswered for too long."""
        if name == "hedge":
            self._hedge()
        else:
            super().on_timer(name)

    def _dispatch(
        self, request: Request, index: int, target: Target, planned_at_s: float, now_s: float
    ) -> None:
        super()._dispatch(request, index, target, planned_at_s, now_s)
        words, delay = self._hedging[index], self._hedge_delays[index]
        if words is None or delay is None:
            return
        key = request.request_id
        if request.attempt == 0:
            self._hedge_budgets[index].on_first()
        copies = self._copies.setdefault(plain_id(key), _Copies())
        copies.open.append(key)
        copies.tried.append(target)
        copies.next = max(copies.next, request.attempt + 1)
        at_s = now_s + self._streams[index].decision_s + delay.after_s()
        if copies.hedges < words.copies and at_s < planned_at_s + self._streams[index].timeout_s:
            heappush(self._due, (at_s, key, index))
            if self._due[0][1] == key:
                self._env.set_timer("hedge", at_s)

    def _hedge(self) -> None:
        """Send the copies that are due, and wait for the next one."""
        now_s, due = self._env.now_s(), self._due
        while due and (due[0][0] <= now_s or due[0][1] not in self._open[due[0][2]]):
            _, key, index = heappop(due)
            if key in self._open[index]:
                self._send_copy(index, key, now_s)
        if due:
            self._env.set_timer("hedge", due[0][0])

    def _send_copy(self, index: int, key: int, now_s: float) -> None:
        """Another copy of a request, if the budget and the cells have room for one."""
        copies, retries, stream = self._copies[plain_id(key)], self._retries[index], self._streams[index]
        if (retries and copies.next >= retries.attempts) or not self._hedge_budgets[index].allows():
            return
        if self._waiting and self._held[index]:
            return  # no cell is usable
        stream.view.now_s = now_s
        stream.view.refresh()
        chosen = stream.policy.choose(stream.view, self._requests[key], self._rngs[index])
        target = another_target(chosen, stream.view, copies.tried)
        if target is None:
            return
        self._hedge_budgets[index].take()
        copies.hedges += 1
        number = copies.next
        copy = self._requests[key]._replace(request_id=attempt_key(key, number), attempt=number)
        self._env.record("resendings", (copy.request_id, number, self._name, "hedge", now_s))
        self._dispatch(copy, index, target, self._open[index][key].planned_at_s, now_s)

    def _time_out(self, index: int, request_id: int) -> None:
        undecided = self._requests[request_id] in self._deciding[index]
        super()._time_out(index, request_id)
        copies = self._copies.get(plain_id(request_id))
        if undecided and copies is not None:
            self._close_copy(copies, request_id)

    def _send_again(
        self, index: int, request: Request, opened: _Open, outcome: int, attempt: int | None = None
    ) -> None:
        """A copy has ended: with the answer, while others are open, or as the last one."""
        copies = self._copies.get(plain_id(request.request_id))
        if copies is None:
            super()._send_again(index, request, opened, outcome)
            return
        self._watch(index, opened)
        if outcome == Outcome.COMPLETED:
            del self._copies[plain_id(request.request_id)]
            for key in copies.open:
                if key != request.request_id:
                    self._call_off(index, key)
        elif not self._close_copy(copies, request.request_id):
            super()._send_again(index, request, opened, outcome, copies.next)

    def _close_copy(self, copies: _Copies, key: int) -> bool:
        """A copy has ended badly; whether that ends nothing, since another one is open."""
        copies.open.remove(key)
        if copies.open:
            self._finished -= 1
            return True
        del self._copies[plain_id(key)]
        return False

    def _call_off(self, index: int, key: int) -> None:
        """Another copy has answered: this one is called back, and frees its place."""
        opened, request = self._open[index].pop(key), self._requests.pop(key)
        del self._stream_of[key]
        if self._drop_undecided(index, key, opened, Outcome.CANCELLED):
            return
        self._watch(index, opened)
        self._timed_out.add(key)
        if not self._miscount.takes(key, request.attempt):
            opened.target.on_answered(key)
        self._record(key, opened, Outcome.CANCELLED, NAN, NAN)
        self._env.send(opened.leaf, Cancel(key, request.attempt, int(Outcome.CANCELLED)))

    def _watch(self, index: int, opened: _Open) -> None:
        delay = self._hedge_delays[index]
        if opened.attempt == 0 and delay is not None:
            delay.on_end(self._env.now_s() - opened.sent_at_s)
