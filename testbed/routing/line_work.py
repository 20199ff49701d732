"""What the requests of one line of traffic bring to each target: known from the scenario, before any report."""

from __future__ import annotations

from typing import NamedTuple

from testbed.routing.view import Target, View
from testbed.serving.delayed_loop import Transform
from testbed.serving.rate_curve import RateCurve


class WorkRates(NamedTuple):
    """Seconds of one server's time that work takes, beside what the server's steps take anyway; at speed 1.

    Attributes:
        prefill_s: per prompt token.
        output_s: per output token.
        context_s: per output token and token of its context.
        request_s: per request, where work has no tokens.
        step_s: of the fixed part of a step, which every output token waits for.
    """

    prefill_s: float = 0.0
    output_s: float = 0.0
    context_s: float = 0.0
    request_s: float = 0.0
    step_s: float = 0.0

    def outstanding_s(self, target: Target) -> float:
        """Work that a target has reported: prefill_b * prompt left + (b + c * context) * output left.

        The context is the mean of the requests in flight there: prompt, and half of the output.
        """
        requests = target.in_flight
        if requests <= 0:
            return 0.0
        reports = target.reports.values()
        prompt = sum(report.prompt_tokens for report in reports)
        output = sum(report.output_tokens for report in reports)
        context = (prompt + output / 2) / requests
        return (
            self.request_s * requests
            + self.prefill_s * prompt
            + (self.output_s + self.context_s * context) * output
        )

    def of_request_s(self, prompt_tokens: float, output_tokens: float) -> float:
        """Work of one request, seconds of a server."""
        each_s = self.output_s + self.context_s * (prompt_tokens + output_tokens / 2)
        return self.request_s + self.prefill_s * prompt_tokens + each_s * output_tokens


class LineWork(NamedTuple):
    """A line of traffic as its targets will feel it; each tuple has one entry per target of the view.

    Attributes:
        class_index: position of the class in the scenario.
        output_mean: mean output tokens of the class.
        curves: rate curve of one server for requests of this class alone, at speed 1.
        transforms: of the work of all the root's classes together, scaled to mean 1; None: memoryless.
        rates: what work costs there.
    """

    class_index: int
    output_mean: float
    curves: tuple[RateCurve, ...]
    transforms: tuple[Transform | None, ...]
    rates: tuple[WorkRates, ...]


def work_of_mix(view: View, output_mean: float) -> LineWork:
    """The work where nothing more is known than the targets' own curves: one memoryless class."""
    return LineWork(
        0,
        output_mean,
        tuple(target.curve for target in view.targets),
        (None,) * len(view.targets),
        tuple(WorkRates(request_s=target.curve.beta_s) for target in view.targets),
    )
