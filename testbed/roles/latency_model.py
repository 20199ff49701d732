"""What a leaf learns of its servers' speed from the requests they complete.

`scaled` multiplies the profile's curve by one speed factor: predicted over observed sojourn, both summed with
slow forgetting. `fitted` fits sojourn per output token = a + b n by least squares with forgetting. In both, n is
the number in flight at the server averaged over that request's own stay: the count at arrival would bias the
fit, and turn b negative while cells oscillate.
"""

from __future__ import annotations

MEMORY_REQUESTS = 500  # completions after which an old one weighs 1/e
LEAST_SPREAD = 1e-3  # variance of n, relative to its mean square, below which a slope means nothing


class LatencyModel:
    """Speed factor and fit of one leaf, over all its servers.

    Args:
        step_s: the profile's a: time per output token that the batch does not change, seconds.
        per_request_s: the profile's b: what each request in flight adds to it, seconds.
        extra_steps: steps that a request waits beyond its output tokens (half a step where work goes in steps).
    """

    __slots__ = (
        "_extra",
        "_fit",
        "_keep",
        "_observed_s",
        "_per_request_s",
        "_predicted_s",
        "_step_s",
        "fitted_a_s",
        "fitted_b_s",
        "model_error",
    )

    def __init__(self, step_s: float, per_request_s: float, extra_steps: float) -> None:
        """Start from the profile: speed 1, the profile's a and b."""
        self._step_s = step_s
        self._per_request_s = per_request_s
        self._extra = extra_steps
        self._keep = 1.0 - 1.0 / MEMORY_REQUESTS
        prior_s = (step_s + per_request_s) * MEMORY_REQUESTS / 10  # the profile counts as 50 completions
        self._predicted_s = prior_s
        self._observed_s = prior_s
        self._fit = (0.0, 0.0, 0.0, 0.0, 0.0)  # weight, n, n*n, y, n*y
        self.fitted_a_s = step_s
        self.fitted_b_s = per_request_s
        self.model_error = 0.0

    @property
    def speed(self) -> float:
        """Factor on the profile's curve: 1 as profiled, 0.4 when everything takes 2.5 times as long."""
        return self._predicted_s / self._observed_s

    def on_completion(self, in_flight: float, steps: float, sojourn_s: float) -> None:
        """Learn from one completed request.

        Args:
            in_flight: requests at its server averaged over its stay, itself included.
            steps: its output tokens (1 where work has none).
            sojourn_s: from sending it to the server until its reply, above 0.
        """
        keep = self._keep
        predicted_s = (steps + self._extra) * (self._step_s + self._per_request_s * in_flight)
        error = abs(predicted_s * self._observed_s / self._predicted_s - sojourn_s) / sojourn_s
        self.model_error += (1.0 - keep) * (error - self.model_error)
        # per step, so that a long request weighs no more than a short one
        self._predicted_s = keep * self._predicted_s + predicted_s / steps
        self._observed_s = keep * self._observed_s + sojourn_s / steps
        y = sojourn_s / (steps + self._extra)
        w, sn, snn, sy, sny = self._fit
        self._fit = (
            keep * w + 1.0,
            keep * sn + in_flight,
            keep * snn + in_flight * in_flight,
            keep * sy + y,
            keep * sny + in_flight * y,
        )

    def refit(self) -> None:
        """Solve for the line; to be called before a report, since each completion alone changes little."""
        w, sn, snn, sy, sny = self._fit
        spread = w * snn - sn * sn
        if w < 30 or spread <= LEAST_SPREAD * w * snn:
            return
        slope = (w * sny - sn * sy) / spread
        intercept = (sy - slope * sn) / w
        if slope > 0 and intercept > 0:  # anything else is noise: keep what was known
            self.fitted_a_s, self.fitted_b_s = intercept, slope
