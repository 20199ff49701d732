"""Delays that resemble those before: a Gaussian autoregression of order 1 behind the marginal that was asked for.

z(n) = rho z(n-1) + sqrt(1 - rho^2) e(n), e standard normal; its place in the normal distribution is the fraction that
the quantile function of the delay takes. So the delays keep their distribution exactly, and their normal scores have
the autocorrelation rho^k at lag k. The correlation of the delays themselves is rho for normal jitter and somewhat
smaller for skewed ones. (netem mixes two uniform numbers instead, which narrows the distribution as it correlates.)

Source: M. C. Cario and B. L. Nelson, "Autoregressive to anything", Operations Research Letters 19 (1996).
"""

from __future__ import annotations

import math
from statistics import NormalDist

from testbed.draw import uniform

_NORMAL = NormalDist()
_SALT = 4


class CorrelatedFractions:
    """Uniform fractions of a link's messages, one after another."""

    __slots__ = ("_base", "_score")

    def __init__(self, base: int) -> None:
        """Draw from the link's key base; the first fraction is independent."""
        self._base = base
        self._score: float | None = None

    def fraction(self, number: int, correlation: float) -> float:
        """The fraction of the message of this number on its link; each is asked once, in their order."""
        innovation = _NORMAL.inv_cdf(uniform(self._base, number, 0, _SALT))
        if self._score is None:
            self._score = innovation
        else:
            self._score = correlation * self._score + math.sqrt(1.0 - correlation**2) * innovation
        return _NORMAL.cdf(self._score)
