"""How much targets can carry, beside each other."""

from __future__ import annotations

from collections.abc import Sequence

from testbed.routing.view import Target


def relative_capacities(targets: Sequence[Target]) -> list[float]:
    """The capacity of each target over their mean; 1 for each where one could not carry a single mean request."""
    capacities = [target.capacity_per_s for target in targets]
    if min(capacities) <= 0.0:
        return [1.0] * len(targets)
    mean = sum(capacities) / len(capacities)
    return [capacity / mean for capacity in capacities]
