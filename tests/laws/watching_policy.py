"""A user's own policy that keeps hold of what it saw, so that a test can look at a balancer's beliefs after a run."""

from __future__ import annotations

import random
from typing import ClassVar

from testbed.roles.messages import Request
from testbed.routing.view import Target, View


class Watching:
    """Sends to the allowed targets in turn; `views` are those that any instance was ever shown, by target names."""

    views: ClassVar[dict[int, View]] = {}

    def __init__(self) -> None:
        self._count = 0

    def choose(self, view: View, request: Request, rng: random.Random) -> Target | None:
        self.views[id(view)] = view
        self._count += 1
        return view.allowed[self._count % len(view.allowed)]
