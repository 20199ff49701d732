"""A server of so many cores, shared evenly: n requests run at the speed of min(n, cores) / n cores each.

No request uses more than one core, so up to `cores` of them do not disturb each other. A server is allotted a number
of cores, by which its load and its busy time count; how many it can use may be another number, which an antagonist
changes as time goes on. Source: the servers of Wydrowski et al., Prequal (NSDI 2024), section 5.
"""

from __future__ import annotations

import math

from testbed.serving.antagonist import Antagonist
from testbed.serving.service import Draw
from testbed.serving.sharing import ProcessorSharing


class SharedCores(ProcessorSharing):
    """A `ServiceModel` without a queue; with a constant number of cores the M/G/c queue with processor sharing."""

    def __init__(
        self,
        *,
        allocation: float,
        mean_s: float,
        draw: Draw,
        class_count: int,
        antagonist: Antagonist | None = None,
        speed: float = 1.0,
    ) -> None:
        """An idle server at instant 0.

        Args:
            allocation: cores that are its own, above 0; those it can use, without an antagonist.
            mean_s: mean core time of a request at speed 1, seconds.
            draw: the demand of a request as a multiple of `mean_s`.
            class_count: classes of the scenario.
            antagonist: says how many cores it can use.
            speed: multiple of the normal speed, above 0.
        """
        super().__init__(
            capacity_per_s=1.0 / mean_s, half=0.0, draw=draw, class_count=class_count, speed=speed
        )
        self._allocation = allocation
        self._cores = allocation if antagonist is None else antagonist.cores
        self._antagonist = antagonist

    def next_event_s(self) -> float:
        """The next completion, or before it the next change of the cores; infinite when idle."""
        next_s = super().next_event_s()
        if self._antagonist is None or not self._serving:
            return next_s
        return min(next_s, self._antagonist.next_change_s)

    def _busy_share(self) -> float:
        """Cores in use per core of the allocation: above 1 while it uses more than its own."""
        return min(len(self._serving), self._cores) / self._allocation

    def _rate_per_s(self) -> float:
        here = len(self._serving)
        return self._capacity_per_s * self._speed * (min(here, self._cores) / here if here else 1.0)

    def _run(self, now_s: float) -> None:
        """Do every completion and every change of the cores up to now."""
        antagonist = self._antagonist  # it has no last change, so there is no doing all of them
        while antagonist is not None and antagonist.next_change_s <= now_s < math.inf:
            super()._run(antagonist.next_change_s)
            self._move_to(antagonist.next_change_s)
            antagonist.change()
            self._cores = antagonist.cores
        super()._run(now_s)
