"""Prequal: a pool of probe answers and the hot-cold rule, for a leaf that spreads requests over its servers.

Each request sends some probes; the answers go to a pool and are used by later requests. An answer counts as hot
when its requests in flight exceed a quantile of those in recent answers. If all in the pool are hot the one with
fewest in flight is chosen, otherwise the cold one with the least expected latency. An answer leaves the pool when
it is too old, used up, crowded out, replaced by a newer one of the same server, or removed: after each request the
oldest and the worst go in turn.

Two things differ from the paper, both for pools that are not small against the number of servers. The pool holds
one answer a server, and no more answers than there are servers. And the limit of reuse

    b = max(1, (1 + delta) / ((1 - m/n) r_probe - r_remove)),   pool m, servers n

holds only where m < n/2 and the denominator is above 0: elsewhere it means nothing, and age and removal do alone.

Source: Wydrowski, Kleinberg, Rumble and Archer, Load is not what you should balance: Introducing Prequal (NSDI
2024, arXiv 2312.10172).
"""

from __future__ import annotations

import math
import random
from bisect import bisect_left, insort
from collections import deque

from testbed.draw import key_base, uniform
from testbed.roles.messages import ProbeReply, Request
from testbed.routing.view import Target, View
from testbed.scenario.policy_words import PrequalPolicy

RECENT_ANSWERS = 128  # enough for the quantile to stand still, few enough to follow the load
LEAST_OCCUPANCY = 2  # below it the pool is no choice, and a random server is better than the only one known


class Answer:
    """A probe answer in the pool."""

    __slots__ = ("in_flight", "latency_s", "measured_at_s", "received_at_s", "target", "uses_left")

    def __init__(self, target: Target, reply: ProbeReply, received_at_s: float, uses_left: float) -> None:
        """As received."""
        self.target = target
        self.in_flight = reply.in_flight
        self.latency_s = reply.latency_s
        self.measured_at_s = reply.measured_at_s
        self.received_at_s = received_at_s
        self.uses_left = uses_left


class Paced:
    """Whole numbers whose running sum is that of a fractional rate, rounded down."""

    __slots__ = ("_owed", "_rate")

    def __init__(self, rate: float) -> None:
        """Per call of `next`, in the mean and in the long run exactly."""
        self._rate = rate
        self._owed = 0.0

    def next(self) -> int:
        """How many this time: the rate rounded down or up."""
        owed = self._owed + self._rate
        whole = int(owed + 1e-9)  # ten tenths are to make one, whatever rounding says
        self._owed = owed - whole
        return whole


class Prequal:
    """The probe pool of one leaf."""

    def __init__(self, spec: PrequalPolicy, servers: int, seed: int, node: str) -> None:
        """An empty pool for so many servers."""
        self._capacity = min(spec.pool, servers)
        self._max_age_s = spec.max_age
        self._hot_quantile = spec.hot_quantile
        self._reuse = reuse_limit(
            self._capacity, servers, spec.probes_per_request, spec.removals_per_request, spec.delta
        )
        self._probes = Paced(spec.probes_per_request)
        self._removals = Paced(spec.removals_per_request)
        self._remove_oldest = True
        self._rounding = key_base(seed, node, "prequal reuse")
        self._pool: dict[int, Answer] = {}  # by index of the server, in order of receipt
        self._allowed: tuple[Target, ...] | None = None
        self._recent: deque[int] = deque()  # requests in flight in the latest answers, in order of receipt
        self._ranked: list[int] = []  # the same in rising order

    def choose(self, view: View, request: Request, rng: random.Random) -> Target | None:
        """By the hot-cold rule from the pool; by chance while the pool has fewer than two usable answers."""
        allowed = view.allowed
        if len(allowed) < 2:
            return allowed[0] if allowed else None
        if allowed is not self._allowed:
            self._restrict(allowed)
        self._drop_old(view.now_s)
        if len(self._pool) < LEAST_OCCUPANCY:
            chosen = allowed[int(rng.random() * len(allowed))]
        else:
            chosen = best(list(self._pool.values()), self._hot_above()).target
        self._use(chosen)
        for _ in range(self._removals.next()):
            self._remove_one()
        return chosen

    def probes(self, view: View, rng: random.Random) -> list[Target]:
        """The servers to probe after a choice: distinct allowed ones, at the rate of the scenario."""
        count = self._probes.next()
        return rng.sample(view.allowed, min(count, len(view.allowed)))

    def on_probe_reply(self, view: View, target: Target, reply: ProbeReply) -> None:
        """An answer goes to the pool; if that is full the oldest makes room."""
        self._remember(reply.in_flight)
        known = self._pool.get(target.index)
        overtaken = known is not None and reply.measured_at_s < known.measured_at_s
        if overtaken or target not in view.allowed:
            return
        self._pool.pop(target.index, None)
        if len(self._pool) >= self._capacity:
            del self._pool[next(iter(self._pool))]
        whole = math.floor(self._reuse) if math.isfinite(self._reuse) else math.inf
        extra = whole < self._reuse and uniform(self._rounding, reply.probe_id) < self._reuse - whole
        self._pool[target.index] = Answer(target, reply, view.now_s, whole + extra)

    def _remember(self, in_flight: int) -> None:
        self._recent.append(in_flight)
        insort(self._ranked, in_flight)
        if len(self._recent) > RECENT_ANSWERS:
            del self._ranked[bisect_left(self._ranked, self._recent.popleft())]

    def _hot_above(self) -> float:
        """The quantile of requests in flight in recent answers; at quantile 1 nothing is hot."""
        if self._hot_quantile >= 1:
            return math.inf
        return self._ranked[int(self._hot_quantile * (len(self._ranked) - 1))]

    def _restrict(self, allowed: tuple[Target, ...]) -> None:
        """Other servers are allowed now: forget the answers of those that no longer are."""
        self._allowed = allowed
        indices = {target.index for target in allowed}
        self._pool = {index: answer for index, answer in self._pool.items() if index in indices}

    def _drop_old(self, now_s: float) -> None:
        pool = self._pool
        while pool:
            index = next(iter(pool))
            if now_s - pool[index].received_at_s <= self._max_age_s:
                return
            del pool[index]

    def _use(self, target: Target) -> None:
        """The request just sent counts at once in the answer of its server, and uses it up by one."""
        answer = self._pool.get(target.index)
        if answer is None:
            return
        answer.in_flight += 1
        answer.uses_left -= 1
        if answer.uses_left <= 0:
            del self._pool[target.index]

    def _remove_one(self) -> None:
        if not self._pool:
            return
        if self._remove_oldest:
            del self._pool[next(iter(self._pool))]
        else:
            del self._pool[worst(list(self._pool.values()), self._hot_above()).target.index]
        self._remove_oldest = not self._remove_oldest


def best(answers: list[Answer], hot_above: float) -> Answer:
    """The choice of the hot-cold rule: the cold answer of least latency, or else the one with fewest in flight."""
    cold = [answer for answer in answers if answer.in_flight <= hot_above]
    if cold:
        return min(cold, key=lambda answer: (answer.latency_s, answer.in_flight))
    return min(answers, key=lambda answer: (answer.in_flight, answer.latency_s))


def worst(answers: list[Answer], hot_above: float) -> Answer:
    """The reverse: the hot answer with most in flight, or else the cold one of largest latency."""
    hot = [answer for answer in answers if answer.in_flight > hot_above]
    if hot:
        return max(hot, key=lambda answer: (answer.in_flight, answer.latency_s))
    return max(answers, key=lambda answer: (answer.latency_s, answer.in_flight))


def reuse_limit(pool: int, servers: int, probe_rate: float, removal_rate: float, delta: float) -> float:
    """How often an answer may be used in the mean; infinite where the formula does not hold (see above).

    Args:
        pool: the most answers in the pool.
        servers: how many servers there are.
        probe_rate, removal_rate: per request.
        delta: how fast answers may gather in the pool, per request.
    """
    surplus = (1.0 - pool / servers) * probe_rate - removal_rate
    if 2 * pool >= servers or surplus <= 0:
        return math.inf
    return max(1.0, (1.0 + delta) / surplus)
