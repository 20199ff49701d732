"""A pool of probe answers: what goes in, what is chosen, and the four ways out. The rule that ranks them is another's.

An answer leaves the pool when it is too old, used up, crowded out by a newer one, or removed: after each request the
oldest and the worst go in turn. Two things differ from the paper, both for pools that are not small against the
number of servers. The pool holds one answer a server, and answers of a quarter of the servers at most, but of four if
there are as many: leaves that all know all servers all choose the same one, until the next answers come. And the limit
of reuse

    b = max(1, (1 + delta) / ((1 - m/n) r_probe - r_remove)),   pool m, servers n

holds only where m < n/2 and the denominator is above 0: elsewhere it means nothing, and age and removal do alone.

Source: Wydrowski, Kleinberg, Rumble and Archer, Load is not what you should balance: Introducing Prequal (NSDI
2024, arXiv 2312.10172), section 4.
"""

from __future__ import annotations

import math
from typing import Protocol

from testbed.draw import key_base, uniform
from testbed.roles.messages import ProbeReply
from testbed.routing.view import Target
from testbed.scenario.policy_words import ProbingPolicy

LEAST_POOL = 4  # answers that there is room for in a small cell too


class Answer:
    """A probe answer in the pool."""

    __slots__ = ("in_flight", "latency_s", "measured_at_s", "received_at_s", "target", "uses_left")

    def __init__(
        self,
        target: Target,
        in_flight: int,
        latency_s: float,
        *,
        measured_at_s: float = 0.0,
        received_at_s: float = 0.0,
        uses_left: float = math.inf,
    ) -> None:
        """As received; `latency_s` may have been raised for errors."""
        self.target = target
        self.in_flight = in_flight
        self.latency_s = latency_s
        self.measured_at_s = measured_at_s
        self.received_at_s = received_at_s
        self.uses_left = uses_left


class Ranking(Protocol):
    """A rule that says which of some answers is the best and which the worst, neither of them empty."""

    def on_answer(self, target: Target, reply: ProbeReply) -> None:
        """A probe was answered, whether or not the answer goes into the pool."""

    def on_reply(self, target: Target, sojourn_s: float) -> None:
        """A request was served by this server; the sojourn as the leaf saw it."""

    def best(self, answers: list[Answer]) -> Answer:
        """The one to send a request to."""

    def worst(self, answers: list[Answer]) -> Answer:
        """The one to remove."""


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


class ProbePool:
    """The pool of one leaf."""

    def __init__(self, spec: ProbingPolicy, servers: int, seed: int, node: str, ranking: Ranking) -> None:
        """An empty pool for so many servers."""
        self._capacity = min(spec.pool, servers, max(LEAST_POOL, servers // 4))
        self._max_age_s = spec.max_age
        self._reuse = reuse_limit(
            self._capacity, servers, spec.probes_per_request, spec.removals_per_request, spec.delta
        )
        self._removals = Paced(spec.removals_per_request)
        self._remove_oldest = True
        self._rounding = key_base(seed, node, "prequal reuse")
        self._ranking = ranking
        self._answers: dict[int, Answer] = {}  # by index of the server, in order of receipt

    def __len__(self) -> int:
        """Answers in the pool, those not counted that `drop_old` has not seen to yet."""
        return len(self._answers)

    def put(self, target: Target, reply: ProbeReply, latency_s: float, now_s: float) -> None:
        """An answer has come, unless it was overtaken; if the pool is full the oldest makes room."""
        known = self._answers.get(target.index)
        if known is not None and reply.measured_at_s < known.measured_at_s:
            return
        self._answers.pop(target.index, None)
        if len(self._answers) >= self._capacity:
            del self._answers[next(iter(self._answers))]
        self._answers[target.index] = Answer(
            target,
            reply.in_flight,
            latency_s,
            measured_at_s=reply.measured_at_s,
            received_at_s=now_s,
            uses_left=self._uses(reply.probe_id),
        )

    def best(self) -> Target:
        """The server to send a request to; the pool must not be empty."""
        return self._ranking.best(list(self._answers.values())).target

    def use(self, target: Target) -> None:
        """A request was sent there: it counts at once in the server's answer, and uses it up by one."""
        answer = self._answers.get(target.index)
        if answer is None:
            return
        answer.in_flight += 1
        answer.uses_left -= 1
        if answer.uses_left <= 0:
            del self._answers[target.index]

    def remove(self) -> None:
        """Take out as many as are due after a request: the oldest and the worst in turn."""
        for _ in range(self._removals.next()):
            if not self._answers:
                return
            if self._remove_oldest:
                del self._answers[next(iter(self._answers))]
            else:
                del self._answers[self._ranking.worst(list(self._answers.values())).target.index]
            self._remove_oldest = not self._remove_oldest

    def drop_old(self, now_s: float) -> None:
        """Take out those that are older than the limit of age."""
        answers = self._answers
        while answers:
            index = next(iter(answers))
            if now_s - answers[index].received_at_s <= self._max_age_s:
                return
            del answers[index]

    def restrict(self, allowed: tuple[Target, ...]) -> None:
        """Other servers are allowed now: forget the answers of those that no longer are."""
        indices = {target.index for target in allowed}
        self._answers = {index: answer for index, answer in self._answers.items() if index in indices}

    def _uses(self, probe_id: int) -> float:
        """The limit of reuse, rounded up or down by chance so that its mean is kept."""
        if math.isinf(self._reuse):
            return math.inf
        whole = math.floor(self._reuse)
        return whole + (whole < self._reuse and uniform(self._rounding, probe_id) < self._reuse - whole)


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
