"""A target that has come back gets a share that grows over a window.

The policy chooses as ever. What it would give to a target that came back less than the window ago goes there with a
probability that grows linearly to 1, and otherwise to the least busy target that is not growing itself. So a rule that
sends all to the emptiest target, which a newcomer is for every balancer at once, gives it no more than that share, and
an even rule that share of an even one.

Source: the slow start of Envoy and of NGINX, which scale a target's weight; here rules without weights have it too.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from testbed.draw import uniform
from testbed.roles.messages import ProbeReply, Request
from testbed.routing.another_target import another_target
from testbed.routing.policy import Hooks, Policy
from testbed.routing.view import Target, View
from testbed.scenario.resilience_words import SlowStartWords

Note = Callable[[str, float], None]  # a target, and the instant at which it has come back


class SlowStart:
    """Stands before a policy's choice."""

    def __init__(self, policy: Policy, view: View, words: SlowStartWords, base: int, note: Note) -> None:
        """Args:
        policy: whose choice it is.
        view: of the balancer; who may be chosen now is not new.
        words: how long the share grows, and from where.
        base: keys the draws.
        note: told of each target that has come back.
        """
        self._policy = policy
        self._words = words
        self._base = base
        self._note = note
        self._allowed = view.allowed
        self._since_s: dict[Target, float] = {}  # of those that grow

    def choose(self, view: View, request: Request, rng: random.Random) -> Target | None:
        """The policy's choice, thinned."""
        return self._thinned(self._policy.choose(view, request, rng), view, request)

    def thinning(self, hooks: Hooks) -> Hooks:
        """The policy's hooks, with the choice by answers thinned as well."""
        choose_answered = hooks.choose_answered
        if choose_answered is None:
            return hooks

        def choose(
            view: View, request: Request, answers: list[tuple[Target, ProbeReply]], rng: random.Random
        ) -> Target | None:
            return self._thinned(choose_answered(view, request, answers, rng), view, request)

        return hooks._replace(choose_answered=choose)

    def share(self, target: Target, now_s: float) -> float:
        """Of what the policy would give to a target, what it gets now: 1 unless it came back of late."""
        since_s = self._since_s.get(target)
        if since_s is None:
            return 1.0
        return min(1.0, max(self._words.least, (now_s - since_s) / self._words.over))

    def _thinned(self, chosen: Target | None, view: View, request: Request) -> Target | None:
        if view.allowed is not self._allowed:
            self._notice(view)
        if chosen is None or not self._since_s:
            return chosen
        share = self.share(chosen, view.now_s)
        if share >= 1.0:
            self._since_s.pop(chosen, None)
            return chosen
        if uniform(self._base, request.request_id) < share:
            return chosen
        growing = [each for each in view.allowed if self.share(each, view.now_s) < 1.0]
        return another_target(chosen, view, growing) or chosen

    def _notice(self, view: View) -> None:
        """Who may be chosen now and could not be before has come back; who may not be grows no more."""
        for target in view.allowed:
            if target not in self._allowed:
                self._since_s[target] = view.now_s
                self._note(target.name, view.now_s)
        self._since_s = {each: at_s for each, at_s in self._since_s.items() if each in view.allowed}
        self._allowed = view.allowed
