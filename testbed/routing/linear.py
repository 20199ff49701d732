"""A linear combination of latency and requests in flight, as a ranking of probe answers.

    score = (1 - w) latency + w service_time in_flight,   least is best

`service_time` turns a count into seconds. Source: the rule `Linear` of Wydrowski et al., Prequal (NSDI 2024), section
5.2, with w = 0.5 and the median service time of a request alone, 75 ms there.
"""

from __future__ import annotations

from testbed.roles.messages import ProbeReply
from testbed.routing.probe_pool import Answer
from testbed.routing.view import Target
from testbed.scenario.policy_words import LinearPolicy


class Linear:
    """Ranks answers by the combination."""

    def __init__(self, spec: LinearPolicy) -> None:
        """Without a service time in the scenario a request counts as its server's latency alone."""
        self._weight = spec.in_flight_weight
        self._service_s = spec.service_time

    def on_answer(self, target: Target, reply: ProbeReply) -> None:
        """The rule keeps no memory."""

    def on_reply(self, target: Target, sojourn_s: float) -> None:
        """The rule does not look at replies."""

    def best(self, answers: list[Answer]) -> Answer:
        """The least combination."""
        return min(answers, key=self._score_s)

    def worst(self, answers: list[Answer]) -> Answer:
        """The largest combination."""
        return max(answers, key=self._score_s)

    def _score_s(self, answer: Answer) -> float:
        service_s = self._service_s if self._service_s is not None else answer.target.alpha_s
        return (1.0 - self._weight) * answer.latency_s + self._weight * service_s * answer.in_flight
