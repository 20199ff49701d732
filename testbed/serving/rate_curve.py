"""The rate curve of a server: how many requests a second it completes with n in flight.

l(n) = n / (alpha + beta n) up to a cap n_cap, flat beyond. Everything that costs and plans need follows from
the three numbers. Source: the step model of the GPU profiles (see `profile.py`), and C N / (N0 + N) with
alpha = N0 / C and beta = 1 / C.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class RateCurve:
    """One server's curve for one mix of work.

    Attributes:
        alpha_s: sojourn of a request alone, less its own share of the batch; seconds, above 0.
        beta_s: seconds that each request in flight adds to every sojourn, above 0.
        n_cap: requests in flight beyond which the rate no longer rises; may be infinite.
    """

    alpha_s: float
    beta_s: float
    n_cap: float = math.inf

    def rate_per_s(self, n: float) -> float:
        """Completions per second with n requests in flight; flat beyond n_cap."""
        n = min(n, self.n_cap)
        return n / (self.alpha_s + self.beta_s * n) if math.isfinite(n) else 1.0 / self.beta_s

    @property
    def capacity_per_s(self) -> float:
        """The rate at n_cap: the most that the server completes."""
        return self.rate_per_s(self.n_cap)

    @property
    def divisor_per_s(self) -> float:
        """What a count is divided by to compare targets per capacity: the capacity, and above 0 in any case.

        A server that has no room for a single mean request counts as one that serves them one at a time: smaller ones
        may fit, and its cost is high and finite.
        """
        return self.capacity_per_s or 1.0 / self.latency_s(1.0)

    def latency_s(self, n: float) -> float:
        """Sojourn with n requests in flight, alpha + beta n."""
        return self.alpha_s + self.beta_s * n

    def marginal_s(self, n: float) -> float:
        """Marginal cost dN/dr = 1/l'(n) in seconds, not clipped.

        (alpha + beta n)^2 / alpha up to n_cap; beyond, its tangent at n_cap continues as a straight line.
        """
        if n <= self.n_cap:
            return (self.alpha_s + self.beta_s * n) ** 2 / self.alpha_s
        at_cap_s = self.alpha_s + self.beta_s * self.n_cap
        return at_cap_s * (at_cap_s + 2 * self.beta_s * (n - self.n_cap)) / self.alpha_s

    def in_flight(self, rate_per_s: float) -> float:
        """Requests in flight at which the curve completes this rate; infinite at the capacity and above."""
        if rate_per_s >= self.capacity_per_s:
            return math.inf
        return self.alpha_s * rate_per_s / (1.0 - self.beta_s * rate_per_s)

    def at_speed(self, speed: float) -> RateCurve:
        """The curve of the same server at another speed."""
        return RateCurve(self.alpha_s / speed, self.beta_s / speed, self.n_cap)
