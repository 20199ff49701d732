"""Routing by the share of KV memory in use, as reported: the signal of the study of old snapshots."""

from __future__ import annotations

import math
import random

from testbed.roles.messages import Request
from testbed.routing.greedy import LeastCost
from testbed.routing.view import Target, View


class KvUtilisation:
    """A policy for `kind: testbed.verification.kv_utilisation:KvUtilisation`; all requests bring the same tokens.

    What a server holds follows from its report: what has been made of all outputs and prefilled of all prompts, and the
    chunk of the step under way, for which memory is taken as the step begins. Prompts that wait for room in a step hold
    nothing, and so are not seen.
    """

    def __init__(self, prompt_tokens: int, output_tokens: int, step_tokens: int) -> None:
        """Args:
        prompt_tokens: of every request.
        output_tokens: likewise.
        step_tokens: the most that a step takes, one for each request that decodes included.
        """
        self._prompt_tokens = prompt_tokens
        self._output_tokens = output_tokens
        self._step_tokens = step_tokens
        self._least = LeastCost(self.held_tokens, "first")

    def choose(self, view: View, request: Request, rng: random.Random) -> Target | None:
        """The server that holds the least; the first of those that tie."""
        return self._least.choose(view, request, rng)

    def held_tokens(self, target: Target) -> float:
        """Tokens for which a server has taken memory when it last reported."""
        reports = target.reports.values()
        made = self._output_tokens * target.in_flight - sum(report.output_tokens for report in reports)
        unfilled = sum(report.prompt_tokens for report in reports) - self._prompt_tokens * target.queued
        decoding = target.running - math.ceil(unfilled / self._prompt_tokens)
        chunk = min(unfilled, self._step_tokens - decoding)
        return self._prompt_tokens * target.running - unfilled + chunk + made
