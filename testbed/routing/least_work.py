"""Discrete placement of heavy requests: to the target where the work that is there will soonest be done.

Counts of requests mislead where one request is a hundred times another. So the cost of a target is, in seconds,

    (work outstanding as reported + own sends that the report does not know of) / (servers * speed)
      + the request's own service at that speed + the measured round trip

The length of an answer is not known when a request is placed: for it the mean of the class stands. Own sends are
those of the same line of traffic; without them a root would place all that comes within the age of the news at one
target, and the placement would gain nothing.

Source: measures.md, sections 4 and 5.
"""

from __future__ import annotations

import random

from testbed.roles.messages import Request
from testbed.routing.belief import keep_unseen
from testbed.routing.line_work import LineWork
from testbed.routing.view import Target, View
from testbed.scenario.policy_words import LatencyModel

FORGET_AT = 64  # own sends kept, beyond those still unseen, before they are looked through


class LeastWork:
    """Least work outstanding, own sends included; ties to the first after the last choice."""

    def __init__(self, view: View, line: LineWork, model: LatencyModel = "scaled") -> None:
        """The targets learn here that own sends are to be kept."""
        self._line = line
        self._is_scaled = model != "profile"
        self._sent_s: dict[int, float] = {}  # work of own sends by request
        self._last = -1
        keep_unseen(view)

    def choose(self, view: View, request: Request, rng: random.Random) -> Target | None:
        """The cheapest; its work is remembered until a report knows of it."""
        allowed = view.allowed
        if not allowed:
            return None
        costs = [self.cost_s(target, request) for target in allowed]
        least = min(costs)
        count = len(view.targets)
        chosen = min(
            (target for target, cost in zip(allowed, costs, strict=True) if cost == least),
            key=lambda target: (target.index - self._last - 1) % count,
        )
        self._last = chosen.index
        if len(self._sent_s) >= FORGET_AT + sum(len(target.unseen) for target in view.targets):
            self._forget(view)
        rates = self._line.rates[chosen.index]
        self._sent_s[request.request_id] = rates.of_request_s(request.prompt_tokens, self._line.output_mean)
        return chosen

    def cost_s(self, target: Target, request: Request) -> float:
        """Expected stay of a request at a target, with travel."""
        rates, output_mean = self._line.rates[target.index], self._line.output_mean
        waiting_s = rates.outstanding_s(target) + self._unseen_s(target)
        own_s = rates.of_request_s(request.prompt_tokens, output_mean) + rates.step_s * output_mean
        network_s = target.network_s if target.network_s == target.network_s else 0.0
        speed = target.speed if self._is_scaled else 1.0
        return (waiting_s / target.servers + own_s) / speed + network_s

    def _unseen_s(self, target: Target) -> float:
        sent_s = self._sent_s
        return sum(sent_s[request_id] for request_id in target.unseen if request_id in sent_s)

    def _forget(self, view: View) -> None:
        self._sent_s = {
            request_id: self._sent_s[request_id]
            for target in view.targets
            for request_id in target.unseen
            if request_id in self._sent_s
        }
