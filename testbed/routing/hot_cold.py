"""The hot-cold rule: among servers with no unusual number in flight the quickest, or else the one with fewest.

A server is hot when its requests in flight exceed a quantile of those in recent answers of all servers. If all are
hot the one with fewest in flight is best, otherwise the cold one of least expected latency. The worst is the reverse.

Source: Wydrowski, Kleinberg, Rumble and Archer, Prequal (NSDI 2024), section 4.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import deque

from testbed.roles.messages import ProbeReply
from testbed.routing.probe_pool import Answer
from testbed.routing.view import Target

RECENT_ANSWERS = 128  # enough for the quantile to stand still, few enough to follow the load


class HotCold:
    """Ranks answers by the rule, and follows the quantile that it needs."""

    def __init__(self, hot_quantile: float) -> None:
        """With quantile 0 requests in flight alone count, with 1 latency alone."""
        self._hot_quantile = hot_quantile
        self._recent: deque[int] = deque()  # requests in flight in the latest answers, in order of receipt
        self._ranked: list[int] = []  # the same in rising order

    def on_answer(self, target: Target, reply: ProbeReply) -> None:
        """The quantile follows the latest answers of all servers."""
        self._recent.append(reply.in_flight)
        insort(self._ranked, reply.in_flight)
        if len(self._recent) > RECENT_ANSWERS:
            del self._ranked[bisect_left(self._ranked, self._recent.popleft())]

    def on_reply(self, target: Target, sojourn_s: float) -> None:
        """The rule does not look at replies."""

    def hot_above(self) -> float:
        """The quantile of requests in flight in recent answers; at quantile 1 nothing is hot."""
        if self._hot_quantile >= 1 or not self._ranked:
            return math.inf
        return self._ranked[int(self._hot_quantile * (len(self._ranked) - 1))]

    def best(self, answers: list[Answer]) -> Answer:
        """The cold answer of least latency, or else the one with fewest in flight."""
        hot_above = self.hot_above()
        cold = [answer for answer in answers if answer.in_flight <= hot_above]
        if cold:
            return min(cold, key=lambda answer: (answer.latency_s, answer.in_flight))
        return min(answers, key=lambda answer: (answer.in_flight, answer.latency_s))

    def worst(self, answers: list[Answer]) -> Answer:
        """The hot answer with most in flight, or else the cold one of largest latency."""
        hot_above = self.hot_above()
        hot = [answer for answer in answers if answer.in_flight > hot_above]
        if hot:
            return max(hot, key=lambda answer: (answer.in_flight, answer.latency_s))
        return max(answers, key=lambda answer: (answer.latency_s, answer.in_flight))
