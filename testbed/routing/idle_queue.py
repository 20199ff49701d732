"""Join idle queue (JIQ)."""

from __future__ import annotations

import random

from testbed.roles.messages import Request
from testbed.routing.view import Target, View


class JoinIdleQueue:
    """The server that has said the longest ago that it is idle; any at random if none has.

    A server that runs out of work reports so to one of its cell's leaves at random, and takes it back when another
    leaf gives it a request. So news is pushed, never older than one message, and a request costs at most two of
    them however many leaves there are. For leaves of large cells at moderate load: with no idle server left it is
    chance. It does not help roots behind long links.

    It has no slow start: an idle server is given one request, and the next only when it is idle again, so that
    no newcomer is flooded; and one that was passed over would not say a second time that it is idle.

    Source: Lu, Xie, Kliot, Geller, Larus, Greenberg, Join-Idle-Queue (Performance Evaluation 68, 2011).
    """

    def __init__(self) -> None:
        """Nobody has said anything yet."""
        self._idle: dict[int, Target] = {}  # in order of their reports

    def choose(self, view: View, request: Request, rng: random.Random) -> Target | None:
        """The first in the queue that is allowed, which leaves it; else a uniform draw."""
        allowed = view.allowed
        for index, target in self._idle.items():
            if allowed is view.targets or target in allowed:
                del self._idle[index]
                return target
        return allowed[int(rng.random() * len(allowed))] if allowed else None

    def on_report(self, view: View, target: Target) -> None:
        """A server is idle, or no longer."""
        if target.in_flight == 0:
            self._idle[target.index] = target
        else:
            self._idle.pop(target.index, None)
