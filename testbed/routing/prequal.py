"""Prequal: probes and the hot-cold rule, for a leaf that spreads requests over its servers.

Asynchronous, as a rule: each request sends some probes, whose answers go to a pool and are used by later requests
(see `probe_pool`, `hot_cold`). The rules `linear` and `c3` use the same pool with another ranking. Synchronous: each
request waits for the answers to its own probes, all but one of them or those that come in time, and goes by the same
rule; there is no pool.

A server's latency is divided by the share of its requests that ended well, for the paper leaves open how it keeps
servers that fail fast from looking quick.

Source: Wydrowski, Kleinberg, Rumble and Archer, Load is not what you should balance: Introducing Prequal (NSDI
2024, arXiv 2312.10172).
"""

from __future__ import annotations

import math
import random

from testbed.roles.messages import Outcome, ProbeReply, Request
from testbed.routing.hot_cold import HotCold
from testbed.routing.probe_pool import Answer, Paced, ProbePool, Ranking
from testbed.routing.success import Success
from testbed.routing.view import Target, View
from testbed.scenario.policy_words import PrequalPolicy, ProbingPolicy

LEAST_OCCUPANCY = 2  # below it the pool is no choice, and a random server is better than the only one known


class Prequal:
    """A pool of probe answers and a ranking of them; asynchronous.

    Attributes:
        idle_probe_after_s: after so long without probes some are sent unasked; infinite for never.
    """

    def __init__(self, spec: ProbingPolicy, servers: int, seed: int, node: str, ranking: Ranking) -> None:
        """An empty pool for so many servers."""
        self.idle_probe_after_s = math.inf if spec.idle_probe_after is None else spec.idle_probe_after
        self._ranking = ranking
        self._pool = ProbePool(spec, servers, seed, node, ranking)
        self._probes = Paced(spec.probes_per_request)
        self._idle_probes = max(LEAST_OCCUPANCY, math.ceil(spec.probes_per_request))
        self._success = Success()
        self._allowed: tuple[Target, ...] | None = None

    def choose(self, view: View, request: Request, rng: random.Random) -> Target | None:
        """The best of the pool; by chance while the pool has fewer than two usable answers."""
        allowed = view.allowed
        if len(allowed) < 2:
            return allowed[0] if allowed else None
        if allowed is not self._allowed:
            self._allowed = allowed
            self._pool.restrict(allowed)
        self._pool.drop_old(view.now_s)
        if len(self._pool) < LEAST_OCCUPANCY:
            chosen = allowed[int(rng.random() * len(allowed))]
        else:
            chosen = self._pool.best()
        self._pool.use(chosen)
        self._pool.remove()
        return chosen

    def probes(self, view: View, rng: random.Random) -> list[Target]:
        """The servers to probe after a choice: distinct allowed ones, at the rate of the scenario."""
        return some_of(view.allowed, self._probes.next(), rng)

    def idle_probes(self, view: View, rng: random.Random) -> list[Target]:
        """The servers to probe when nothing was probed for a while: as many as after a request, at least two."""
        return some_of(view.allowed, self._idle_probes, rng)

    def on_probe_reply(self, view: View, target: Target, reply: ProbeReply) -> None:
        """The answer of an allowed server goes to the pool."""
        self._ranking.on_answer(target, reply)
        if target in view.allowed:
            latency_s = self._success.latency_s(target, reply.latency_s)
            self._pool.put(target, reply, latency_s, view.now_s)

    def on_reply(self, target: Target, sojourn_s: float, outcome: Outcome) -> None:
        """Remember how it ended."""
        self._success.on_reply(target, outcome)
        if outcome == Outcome.COMPLETED:
            self._ranking.on_reply(target, sojourn_s)


class SynchronousPrequal:
    """Probes of its own for every request, which waits for the answers.

    Attributes:
        ask_timeout_s: how long a request waits for them.
    """

    def __init__(self, spec: PrequalPolicy) -> None:
        """With a ranking that has seen nothing yet."""
        self.ask_timeout_s = spec.probe_timeout
        self._count = round(spec.probes_per_request)
        self._ranking = HotCold(spec.hot_quantile)
        self._success = Success()

    def ask(self, view: View, request: Request, rng: random.Random) -> tuple[list[Target], int]:
        """Whom to ask, and how many answers are enough: all but one; nobody where there is no choice."""
        if len(view.allowed) < 2:
            return [], 0
        asked = some_of(view.allowed, self._count, rng)
        return asked, len(asked) - 1

    def on_probe_reply(self, view: View, target: Target, reply: ProbeReply) -> None:
        """Late answers count for the quantile too."""
        self._ranking.on_answer(target, reply)

    def choose_answered(
        self, view: View, request: Request, answers: list[tuple[Target, ProbeReply]], rng: random.Random
    ) -> Target | None:
        """The best of those that answered and are allowed; by chance if none is."""
        usable = [
            Answer(target, reply.in_flight, self._success.latency_s(target, reply.latency_s))
            for target, reply in answers
            if target in view.allowed
        ]
        return self._ranking.best(usable).target if usable else self.choose(view, request, rng)

    def choose(self, view: View, request: Request, rng: random.Random) -> Target | None:
        """By chance: this is for a request without answers."""
        allowed = view.allowed
        return allowed[int(rng.random() * len(allowed))] if allowed else None

    def on_reply(self, target: Target, sojourn_s: float, outcome: Outcome) -> None:
        """Remember how it ended."""
        self._success.on_reply(target, outcome)


def some_of(targets: tuple[Target, ...], count: int, rng: random.Random) -> list[Target]:
    """So many distinct targets drawn at random, or all."""
    return rng.sample(targets, min(count, len(targets)))


def build_prequal(spec: PrequalPolicy, servers: int, seed: int, node: str) -> Prequal | SynchronousPrequal:
    """The policy of a scenario, in either mode."""
    if spec.mode == "sync":
        return SynchronousPrequal(spec)
    return Prequal(spec, servers, seed, node, HotCold(spec.hot_quantile))
