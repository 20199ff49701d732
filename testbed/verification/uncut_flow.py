"""Flow routing as the theory has it: by the marginal cost of a rate curve, which is nowhere cut.

The policy of the testbed cuts its cost at a hundred times that of an idle target. That leaves small motions alone, and
shortens the largest ones, which the theory of noise is about.
"""

from __future__ import annotations

import random

from testbed.roles.messages import Request
from testbed.routing.flow import ReportedFlow, Update
from testbed.routing.view import Target, View
from testbed.routing.weighted import Chance


class UncutFlow:
    """A policy for `kind: testbed.verification.uncut_flow:UncutFlow`; it moves at each report."""

    def __init__(self, step_per_s2: float, interval_s: float) -> None:
        """Args:
        step_per_s2: eta.
        interval_s: that the first report stands for.
        """
        self._step_per_s2 = step_per_s2
        self._interval_s = interval_s
        self._flow: ReportedFlow | None = None

    def choose(self, view: View, request: Request, rng: random.Random) -> Target | None:
        """By the probabilities of the moment."""
        return self._made(view).choose(view, request, rng)

    def on_report(self, view: View, target: Target) -> Update | None:
        """One step for the time since the last."""
        return self._made(view).on_report(view, target)

    def _made(self, view: View) -> ReportedFlow:
        if self._flow is None:
            self._flow = ReportedFlow(
                view,
                cost=_marginal_s,
                is_clipped=lambda target: False,
                step=self._step_per_s2,
                start="even",
                sampler=Chance(),
            )
            self._flow.first_interval_s = self._interval_s
        return self._flow


def _marginal_s(target: Target) -> float:
    return target.curve.marginal_s(target.in_flight / target.servers)
