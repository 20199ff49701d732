"""A leaf that gives a request to another server when the first one failed it, or lets it wait for too long.

Theory of operation. What a root has sent is one request here with one answer, however many servers get a copy of it:
a retry after a copy ended badly, a hedge while one is unanswered. Each copy is in flight by itself, has a row of its
own in `visits`, and a number of its own (see `attempt_keys`). The first copy that is completed is the answer: the others
are called back from their servers at once, and their rows say `cancelled`. A copy that ends badly ends nothing while
another one is open, or while the words, the budget and the client's patience (the class's timeout, from the receipt)
allow another one; otherwise it is the answer. A root that calls a request back calls all its copies back.

A retry goes to a server that has not had the request, if there is one that is usable; a hedge to no other. It is the
policy's choice, or the least busy of the others where the policy insists. Where no server is usable there is no
further copy. Between the end of a copy and the end of its backoff the request is in flight nowhere.
"""

from __future__ import annotations

from heapq import heappop, heappush

from testbed.draw import key_base, uniform
from testbed.roles.admission import LimitedLeaf
from testbed.roles.attempt_keys import LEAF_ATTEMPT, attempt_key, root_key
from testbed.roles.budget import Budget
from testbed.roles.environment import Environment
from testbed.roles.hedge_delay import HedgeDelay
from testbed.roles.held import Waiting
from testbed.roles.leaf import _Open
from testbed.roles.leaf_configuration import LeafConfiguration
from testbed.roles.messages import Cancel, FirstToken, Outcome, Reply, Request
from testbed.routing.another_target import another_target
from testbed.routing.view import Target
from testbed.scenario.resilience_words import Hedging, Limit, Retries


class _Family:
    """A request as its root sent it, and its copies."""

    __slots__ = ("at_leaf_s", "has_begun", "hedges", "open", "request", "root", "sendings", "tried")

    def __init__(self, request: Request, root: str, at_leaf_s: float) -> None:
        self.request = request
        self.root = root
        self.at_leaf_s = at_leaf_s
        self.open: list[int] = []  # keys of the copies that are unanswered, in order of sending
        self.tried: list[Target] = []
        self.sendings = 0
        self.hedges = 0
        self.has_begun = False  # its root knows of a first token


class ResendingLeaf(LimitedLeaf):
    """Retries and hedges inside its cell; see the top of this file."""

    def __init__(
        self,
        env: Environment,
        name: str,
        told: LeafConfiguration,
        *,
        cancels: list[bool],
        limit: Limit | None,
        seed: int,
        retries: Retries | None,
        hedging: Hedging | None,
    ) -> None:
        """Args:
        env, name, told, cancels, limit: as of a leaf with a limit.
        seed: of the run.
        retries: of all classes; None: a copy that ended badly is not followed by another.
        hedging: of all classes; None: one copy is out at a time.
        """
        super().__init__(env, name, told, cancels=cancels, limit=limit)
        self._retries = retries
        self._hedging = hedging
        self._again_on = {int(Outcome[word.upper()]) for word in retries.on} if retries else set()
        self._retry_budget = Budget(retries.budget if retries else None)
        self._hedge_budget = Budget(hedging.budget if hedging else None)
        self._hedge_delays = [HedgeDelay(hedging) if hedging else None for _ in self._timeouts_s]
        self._families: dict[int, _Family] = {}  # by the key under which the root sent it
        # Copies have deadlines of their own, not in the order of their receipt: the leaf's own timers stay unused.
        self._armed = [True] * len(self._timeouts_s)
        self._deadlines: list[tuple[float, int, int]] = []  # (at, key of a copy, class)
        self._due: list[tuple[float, int, int]] = []  # the same of hedges to come
        self._backing_off: list[
            tuple[float, int, int, float]
        ] = []  # (until, key of a family, outcome, since)
        self._jitter = key_base(seed, self._name, "backoff")

    def on_timer(self, name: str) -> None:
        """As of a leaf; a copy's time is up, a hedge is due, or a backoff is over."""
        if name == "attempt":
            self._expire_copies()
        elif name == "hedge":
            self._hedge()
        elif name == "again":
            self._end_backoffs()
        else:
            super().on_timer(name)

    def stop(self, *, killed: bool = False) -> None:
        """As of a leaf: what waits to be given again is unfinished, or lost, too."""
        super().stop(killed=killed)
        outcome = Outcome.LOST if killed else Outcome.UNFINISHED
        for _, key, _, since_s in self._backing_off:
            if key in self._families:
                left_at_s = self._env.now_s() if killed else float("nan")
                self._record_unsent(self._copy(self._families[key]), outcome, since_s, left_at_s)

    def is_idle(self) -> bool:
        """Nothing is open, and nothing waits to be given again."""
        return super().is_idle() and not any(key in self._families for _, key, _, _ in self._backing_off)

    def gauges(self) -> tuple[int, int, int]:
        """(requests received, finished, in flight)."""
        arrivals, finished, in_flight = super().gauges()
        return arrivals, finished, in_flight + len(self._backing_off)

    def _give(self, root: str, request: Request, server: Target, at_leaf_s: float, now_s: float) -> None:
        super()._give(root, request, server, at_leaf_s, now_s)
        key, index = request.request_id, request.class_index
        family = self._families.get(root_key(key))
        if family is None:
            family = self._families[key] = _Family(request, root, at_leaf_s)
            self._retry_budget.on_first()
            self._hedge_budget.on_first()
        family.open.append(key)
        family.tried.append(server)
        family.sendings += 1
        sent_at_s, patience_at_s = now_s + self._decision_s, family.at_leaf_s + self._timeouts_s[index]
        words = self._retries
        deadline_s = patience_at_s
        if words is not None and words.attempt_timeout is not None:
            deadline_s = min(deadline_s, sent_at_s + words.attempt_timeout)
        self._push(self._deadlines, "attempt", (deadline_s, key, index))
        delay = self._hedge_delays[index]
        if delay is None or self._hedging is None or family.hedges >= self._hedging.copies:
            return
        if sent_at_s + delay.after_s() < patience_at_s:
            self._push(self._due, "hedge", (sent_at_s + delay.after_s(), key, index))

    def _push(
        self, heap: list[tuple[float, int, int]], timer: str, happening: tuple[float, int, int]
    ) -> None:
        is_next = not heap or happening < heap[0]
        heappush(heap, happening)
        if is_next:
            self._env.set_timer(timer, happening[0])

    def _take(self, heap: list[tuple[float, int, int]], now_s: float) -> int | None:
        """The key of the next open copy that is due; None: there is none now."""
        while heap and (heap[0][0] <= now_s or heap[0][1] not in self._open[heap[0][2]]):
            _, key, index = heappop(heap)
            if key in self._open[index]:
                return key
        return None

    def _expire_copies(self) -> None:
        """End every copy whose time is up, and wait for the next deadline."""
        now_s = self._env.now_s()
        while (key := self._take(self._deadlines, now_s)) is not None:
            self._time_out(key, now_s)
        if self._deadlines:
            self._env.set_timer("attempt", self._deadlines[0][0])

    def _hedge(self) -> None:
        """Give copies of what is unanswered for too long to other servers, and wait for the next."""
        now_s = self._env.now_s()
        while (key := self._take(self._due, now_s)) is not None:
            family, words = self._families[root_key(key)], self._retries
            if (words and family.sendings >= words.attempts) or not self._hedge_budget.allows():
                continue
            server = self._other(family, now_s)
            if server is not None and server not in family.tried:
                self._hedge_budget.take()
                family.hedges += 1
                self._give_copy(family, server, "hedge", now_s)
        if self._due:
            self._env.set_timer("hedge", self._due[0][0])

    def _other(self, family: _Family, now_s: float) -> Target | None:
        """A server for a further copy: one that has not had it, if there is one; None: none is usable."""
        if self._waiting:
            return None
        view = self._view
        view.now_s = now_s
        if now_s > view.turns_at_s:
            view.refresh()
        chosen = self._policy.choose(view, family.request, self._rng)
        return another_target(chosen, view, family.tried) or chosen

    def _copy(self, family: _Family) -> Request:
        """The next copy, under a number of its own."""
        request = family.request
        number = request.attempt + LEAF_ATTEMPT * family.sendings
        return request._replace(request_id=attempt_key(request.request_id, number), attempt=number)

    def _give_copy(self, family: _Family, server: Target, cause: str, now_s: float) -> None:
        copy = self._copy(family)
        self._env.record("resendings", (copy.request_id, copy.attempt, self._name, cause, now_s))
        self._give(family.root, copy, server, now_s, now_s)

    def _answer(self, opened: _Open, outcome: int, now_s: float) -> None:
        """A copy has ended: with the answer, while others are open, or as the last one."""
        key = opened.request.request_id
        family = self._families[root_key(key)]
        family.open.remove(key)
        self._watch(opened, now_s)
        self._record(opened, outcome, now_s)
        if outcome == Outcome.COMPLETED:
            self._call_off_all(family, Outcome.CANCELLED, now_s)
        elif family.open or self._retries_it(family, outcome, now_s):
            return
        self._end(family, outcome, now_s)

    def _retries_it(self, family: _Family, outcome: int, now_s: float) -> bool:
        """Whether a copy that ended so is followed by another one, now or after a backoff."""
        words = self._retries
        if words is None or outcome not in self._again_on or family.sendings >= words.attempts:
            return False
        at_s = now_s + self._backoff_s(words, family)
        if at_s >= family.at_leaf_s + self._timeouts_s[family.request.class_index]:
            return False
        if not self._retry_budget.allows():
            return False
        server = None if words.backoff else self._other(family, now_s)
        if server is None and not words.backoff:
            return False
        self._retry_budget.take()
        if server is not None:
            self._give_copy(family, server, "retry", now_s)
        else:
            heappush(self._backing_off, (at_s, family.request.request_id, outcome, now_s))
            self._env.set_timer("again", self._backing_off[0][0])
        return True

    def _backoff_s(self, words: Retries, family: _Family) -> float:
        if not words.backoff:
            return 0.0
        drawn = uniform(self._jitter, family.request.request_id, family.sendings)
        return words.backoff * 2.0 ** (family.sendings - 1) * (0.5 + 0.5 * drawn)

    def _end_backoffs(self) -> None:
        now_s, waiting = self._env.now_s(), self._backing_off
        while waiting and waiting[0][0] <= now_s:
            _, key, outcome, _ = heappop(waiting)
            family = self._families.get(key)
            if family is None:
                continue  # its root has called it back
            server = self._other(family, now_s)
            if server is None:
                self._end(family, outcome, now_s)
            else:
                self._give_copy(family, server, "retry", now_s)
        if waiting:
            self._env.set_timer("again", waiting[0][0])

    def _end(self, family: _Family, outcome: int, now_s: float) -> None:
        """The request is over here: its root gets the one reply."""
        request = family.request
        del self._families[request.request_id]
        self._finished += 1
        stay_s = now_s - family.at_leaf_s
        reply = Reply(request.request_id, request.attempt, outcome, stay_s, self._queued(), self._in_flight)
        self._env.send(family.root, reply)

    def _return_unsent(self, waiting: Waiting, outcome: Outcome, now_s: float) -> None:
        """A request goes back unserved; of a copy, that ends the request where it is the last one."""
        key = waiting.request.request_id
        family = self._families.get(root_key(key))
        if family is None:
            super()._return_unsent(waiting, outcome, now_s)
            return
        family.open.remove(key)
        self._record_unsent(waiting.request, outcome, waiting.arrived_at_s, now_s)
        if not family.open:
            self._end(family, int(outcome), now_s)

    def _on_cancel(self, cancel: Cancel) -> None:
        family = self._families.pop(cancel.request_id, None)
        if family is None:
            super()._on_cancel(cancel)
            return
        self._finished += 1
        self._call_off_all(family, Outcome(cancel.outcome), self._env.now_s())

    def _call_off_all(self, family: _Family, outcome: Outcome, now_s: float) -> None:
        """Call back every copy that is open."""
        for key in family.open:
            opened = self._close(key)
            assert opened is not None, f"{self._name}: copy {key} is to be called back, but is not open"
            self._watch(opened, now_s)
            self._call_off(opened, outcome, now_s)
        family.open.clear()

    def _watch(self, opened: _Open, now_s: float) -> None:
        delay = self._hedge_delays[opened.request.class_index]
        if delay is not None and opened.request.attempt < LEAF_ATTEMPT:
            delay.on_end(now_s - opened.sent_at_s)

    def _on_first_token(self, news: FirstToken) -> None:
        opened = next((each[news[0]] for each in self._open if news[0] in each), None)
        if opened is None:
            return
        opened.server.on_first_token(news[0], self._env.now_s())
        family = self._families[root_key(news[0])]
        if self._passes_first_tokens and not family.has_begun:
            family.has_begun = True
            self._env.send(family.root, FirstToken(family.request.request_id, family.request.attempt))
