"""Processor time of requests, measured at two rates, as a line between the two and beyond.

The more requests a second, the more share a wake-up, so a request costs less. Below the lower rate it is taken to cost what it
does there, above the higher one a further request what it does on the way from the lower to the higher. That is more than it
really takes, since the saving goes on: so a second line, with a third of that, says what is needed at least.
"""

from __future__ import annotations

from typing import NamedTuple

LEAST_FURTHER = (
    1.0 / 3.0
)  # of what a request costs at the higher rate, or of a further one: no request costs less


class RequestCost(NamedTuple):
    """Of all processes together.

    Attributes:
        low_per_s: the lower rate, requests a second.
        low_cpu_s: processor time of a request there.
        high_per_s: the higher rate.
        high_cpu_s: processor time of a request there.
    """

    low_per_s: float
    low_cpu_s: float
    high_per_s: float
    high_cpu_s: float

    @property
    def further_s(self) -> float:
        """Processor time of a request more; a host that slowed the first measurement cannot make it nothing."""
        rise = self.high_per_s * self.high_cpu_s - self.low_per_s * self.low_cpu_s
        return max(rise / (self.high_per_s - self.low_per_s), LEAST_FURTHER * self.high_cpu_s)

    def cores(self, rate_per_s: float) -> float:
        """That this many requests a second keep busy."""
        if rate_per_s <= self.low_per_s:
            return rate_per_s * self.low_cpu_s
        return self.low_per_s * self.low_cpu_s + (rate_per_s - self.low_per_s) * self.further_s

    def least_cores(self, rate_per_s: float) -> float:
        """That they keep busy at least: the same up to the higher rate."""
        if rate_per_s <= self.high_per_s:
            return self.cores(rate_per_s)
        return self.cores(self.high_per_s) + LEAST_FURTHER * (rate_per_s - self.high_per_s) * self.further_s

    def rate_per_s(self, cores: float) -> float:
        """Requests a second that so many cores carry."""
        return self.share(1.0, 0.0, cores)

    def share(self, rate_per_s: float, others_cores: float, cores: float) -> float:
        """The share of so many requests, and of other work beside them, that these cores carry; it may be above 1.

        Args:
            rate_per_s: requests a second, above 0.
            others_cores: that the other work keeps busy, in proportion to the share.
            cores: that there are, above 0.
        """
        share = cores / (rate_per_s * self.low_cpu_s + others_cores)
        if share * rate_per_s <= self.low_per_s:
            return share
        left = cores - self.low_per_s * (self.low_cpu_s - self.further_s)
        return left / (rate_per_s * self.further_s + others_cores)
