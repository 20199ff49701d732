"""Prefix-aware routing: where the prompt's beginning was sent before, weighed against load.

The balancer remembers, for each target, which prompts it sent there: an approximation of the target's cache, bounded
in tokens and in age. A target's score is

    cache_weight * (share of the prompt that is remembered there) + load_weight * (least + 1) / (n + 1)

n being its requests in flight per capacity (of a target of mean capacity) and `least` the smallest n. The greatest
score wins, ties go round. Once the loads are out of balance, the most above the least by more than `balance_requests`
and by the factor `balance_ratio`, load alone decides until they are not.

Sources: the weighted scorers of the Gateway API inference extension and llm-d (prefix-cache-scorer, LRU memory per
server; there the load term is linear between the least and the most loaded, here it is a ratio, which one request
more or less at an idle target does not turn over); the cache-aware policy and its balance thresholds of the SGLang
router (Zheng et al., SGLang, NeurIPS 2024).
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from testbed.roles.messages import Request
from testbed.routing.greedy import TIES
from testbed.routing.relative_capacity import relative_capacities
from testbed.routing.view import Target, View
from testbed.scenario.policy_words import PrefixAwarePolicy
from testbed.serving.prefix_cache import PrefixCache


class PrefixAware:
    """Scores targets by what they are thought to hold of the prompt, and by load."""

    def __init__(self, spec: PrefixAwarePolicy, targets: Sequence[Target]) -> None:
        """Nothing is remembered yet."""
        self._spec = spec
        self._memories = [PrefixCache(spec.memory_tokens * target.servers) for target in targets]
        self._weights = [1.0 / capacity for capacity in relative_capacities(targets)]
        self._last = -1

    def choose(self, view: View, request: Request, rng: random.Random) -> Target | None:
        """The target of the greatest score, which from now on is thought to hold the prompt."""
        allowed = view.allowed
        if not allowed:
            return None
        scores = self._scores(view, request)
        most = max(scores)
        best = [target for target, score in zip(allowed, scores, strict=True) if score == most]
        chosen = best[0] if len(best) == 1 else TIES["rotated"](best, self._last, rng)
        self._last = chosen.index
        if request.prefix:
            self._memories[chosen.index].hold(request.prefix, view.now_s)
        return chosen

    def _scores(self, view: View, request: Request) -> list[float]:
        spec, allowed = self._spec, view.allowed
        loads = [view.count(target) * self._weights[target.index] for target in allowed]
        least, most = min(loads), max(loads)
        if most - least > spec.balance_requests and most > spec.balance_ratio * least:
            return [-load for load in loads]
        return [
            spec.cache_weight * self._held_fraction(target, request, view.now_s)
            + spec.load_weight * (least + 1.0) / (load + 1.0)
            for target, load in zip(allowed, loads, strict=True)
        ]

    def _held_fraction(self, target: Target, request: Request, now_s: float) -> float:
        """The share of the prompt that this balancer sent to the target lately enough."""
        memory = self._memories[target.index]
        memory.forget(now_s - self._spec.max_age)
        return memory.match(request.prefix) / request.prompt_tokens
