"""C3: rank servers by the latency that a cubic penalty on their queue foretells.

    score = (R - 1/mu) + q^3 / mu,   q = 1 + own n + q_bar,   least is best

with R the response time that this leaf saw, 1/mu the one that the server states in its answers, `own` this leaf's
requests there, n the number of leaves (each is taken to have as many there) and q_bar the server's count in flight;
R, 1/mu and q_bar are exponential averages. While the leaf has seen no reply of a server its R counts as 1/mu, and while
the server has stated no latency 1/mu is that of a request alone: a cube of nothing would hide any queue.

Source: Suresh, Canini, Schmid and Feldmann, C3: Cutting tail latency in cloud data stores via adaptive replica
selection (NSDI 2015), on the probes of Wydrowski et al., Prequal (NSDI 2024), section 5.2.
"""

from __future__ import annotations

from testbed.roles.messages import ProbeReply
from testbed.routing.probe_pool import Answer
from testbed.routing.view import Target
from testbed.scenario.policy_words import C3Policy


class C3:
    """Ranks answers by the score of their servers."""

    def __init__(self, spec: C3Policy, leaves: int) -> None:
        """For one of so many leaves that use the servers."""
        self._weight = spec.newest_weight
        self._leaves = leaves
        self._response_s: dict[int, float] = {}  # by index of the server, as all of these
        self._stated_s: dict[int, float] = {}
        self._in_flight: dict[int, float] = {}

    def on_answer(self, target: Target, reply: ProbeReply) -> None:
        """Follow what the server says of itself; a latency of 0 says nothing."""
        if reply.latency_s > 0:
            self._follow(self._stated_s, target, reply.latency_s)
        self._follow(self._in_flight, target, reply.in_flight)

    def on_reply(self, target: Target, sojourn_s: float) -> None:
        """Follow the response times that this leaf sees."""
        self._follow(self._response_s, target, sojourn_s)

    def best(self, answers: list[Answer]) -> Answer:
        """The least score."""
        return min(answers, key=self._score_s)

    def worst(self, answers: list[Answer]) -> Answer:
        """The largest score."""
        return max(answers, key=self._score_s)

    def _follow(self, averages: dict[int, float], target: Target, newest: float) -> None:
        known = averages.get(target.index, newest)
        averages[target.index] = known + self._weight * (newest - known)

    def _score_s(self, answer: Answer) -> float:
        index = answer.target.index
        stated_s = self._stated_s.get(index, answer.target.alpha_s)
        queue = 1.0 + answer.target.own_in_flight * self._leaves + self._in_flight[index]
        return self._response_s.get(index, stated_s) - stated_s + queue**3 * stated_s
