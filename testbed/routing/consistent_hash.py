"""Consistent hashing: the same session, prefix or request to the same target, with or without a bound on its load.

Every target has points on a circle, in proportion to its capacity; a key goes to the owner of the next point. When a
target may no longer be used, its keys move to others and no other key moves. All balancers of a run share one circle,
so that roots agree without talking.

With a bound c a target takes no more than ceil(c (m + 1) w) requests, m being those in flight at all allowed targets
and w its share of their capacity; a key whose target is full goes on along the circle. For c >= 1 somebody has room.

Sources: Karger et al., Consistent hashing and random trees (STOC 1997); Mirrokni, Thorup and Zadimoghaddam,
Consistent hashing with bounded loads (SODA 2018), as in HAProxy (hash-balance-factor) and Envoy.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_right
from collections.abc import Callable, Sequence

from testbed.draw import key_base, uniform
from testbed.roles.messages import Request
from testbed.routing.relative_capacity import relative_capacities
from testbed.routing.view import Target, View
from testbed.scenario.policy_words import ConsistentHashPolicy


def session_key(request: Request) -> int:
    """The session; the request itself where it belongs to none."""
    return request.session or request.request_id


def prefix_key(request: Request) -> int:
    """The first segment of the prompt; the session or the request where nothing is shared."""
    return request.prefix[0] if request.prefix else session_key(request)


KEYS: dict[str, Callable[[Request], int]] = {
    "session": session_key,
    "prefix": prefix_key,
    "request": lambda request: request.request_id,
}


class ConsistentHash:
    """A circle of points, and where each key falls on it."""

    def __init__(self, spec: ConsistentHashPolicy, targets: Sequence[Target], seed: int) -> None:
        """Lay out the points of all targets, allowed or not."""
        self._key = KEYS[spec.key]
        self._bound = spec.bound
        self._base = key_base(seed, "consistent_hash")
        self._capacities = relative_capacities(targets)
        points = sorted(_points(targets, spec.virtual_nodes, seed))
        self._points = [point for point, _ in points]
        self._owners = [owner for _, owner in points]

    def choose(self, view: View, request: Request, rng: random.Random) -> Target | None:
        """The owner of the first point from the key's on that is allowed and, with a bound, has room."""
        open_to = self._with_room(view)
        if not open_to:
            return None
        owners = self._owners
        position = bisect_right(self._points, uniform(self._base, self._key(request)))
        while True:  # ends: every target has a point
            owner = owners[position % len(owners)]
            if owner in open_to:
                return view.targets[owner]
            position += 1

    def _with_room(self, view: View) -> set[int]:
        """Indices of the targets that may take one more request."""
        allowed = view.allowed
        if self._bound is None:
            return {target.index for target in allowed}
        in_flight = [view.count(target) for target in allowed]
        capacities = [self._capacities[target.index] for target in allowed]
        most = self._bound * (sum(in_flight) + 1) / sum(capacities)  # for a target of mean capacity
        return {
            target.index
            for target, count, capacity in zip(allowed, in_flight, capacities, strict=True)
            if count < math.ceil(most * capacity)
        }


def _points(targets: Sequence[Target], virtual_nodes: int, seed: int) -> list[tuple[float, int]]:
    """(place on the circle, index of the owner): so many for a target of mean capacity, at least one for each."""
    points = []
    for target, capacity in zip(targets, relative_capacities(targets), strict=True):
        base = key_base(seed, "consistent_hash", target.name)
        count = max(1, round(virtual_nodes * capacity))
        points += [(uniform(base, number), target.index) for number in range(count)]
    return points
