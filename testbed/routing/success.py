"""How often each target answers well, so that one which fails fast does not look quick."""

from __future__ import annotations

from testbed.roles.messages import Outcome
from testbed.routing.cost import ERROR_FRACTION_MAX
from testbed.routing.view import Target

ERROR_MEMORY = 0.05  # weight of one reply: a target's last twenty count


class Success:
    """The error fraction of each target, as one balancer saw it."""

    def __init__(self) -> None:
        """No target has failed yet."""
        self._errors: dict[int, float] = {}  # by index, of those that ever failed

    def on_reply(self, target: Target, outcome: Outcome) -> None:
        """A request has come back, or was given up."""
        failed = outcome != Outcome.COMPLETED
        known = self._errors.get(target.index, 0.0)
        if failed or known:
            self._errors[target.index] = known + ERROR_MEMORY * (failed - known)

    def fraction(self, target: Target) -> float:
        """Share of the target's recent requests that ended well, at least 0.05."""
        return 1.0 - min(self._errors.get(target.index, 0.0), ERROR_FRACTION_MAX)

    def latency_s(self, target: Target, latency_s: float) -> float:
        """A stated latency divided by the share that ended well.

        A server that has never served anything states 0; if it fails it counts as one request alone would take.
        """
        fraction = self.fraction(target)
        return latency_s if fraction == 1.0 else max(latency_s, target.alpha_s) / fraction
