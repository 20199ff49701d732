"""A target for a further copy of a request, other than those that have it already."""

from __future__ import annotations

from collections.abc import Collection

from testbed.routing.view import Target, View


def another_target(chosen: Target | None, view: View, tried: Collection[Target]) -> Target | None:
    """The policy's choice; where that has been tried, the least busy of the others that may be chosen.

    Busy is what the view counts in flight, per capacity, and then the balancer's own requests there.

    Args:
        chosen: what the policy chose; None: no target is usable.
        view: of the balancer.
        tried: targets that the copy is not to go to.
    """
    if chosen is None or chosen not in tried:
        return chosen
    others = [target for target in view.allowed if target not in tried]
    return min(others, key=lambda target: _busy(view, target), default=None)


def _busy(view: View, target: Target) -> tuple[float, float, int]:
    count, capacity = view.count(target), target.divisor_per_s
    return count / capacity, target.own_in_flight / capacity, target.index
