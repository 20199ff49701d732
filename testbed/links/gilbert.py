"""Losses in bursts: the model of Gilbert, asked for as mean loss and mean burst.

In the bad state every message is lost, in the good one none. A burst lasts 1/r messages on average, r the
probability of leaving the bad state; the good state is left with p, and loss = p / (p + r). The state moves with each
message of the link, so draws are keyed by a message's number on it.

Source: E. N. Gilbert, "Capacity of a burst-noise channel", Bell System Technical Journal 39 (1960); as `loss gemodel`
of Linux netem with 1-h = 1 and 1-k = 0.
"""

from __future__ import annotations

from testbed.draw import uniform

_SALT = 3


class GilbertLoss:
    """Which messages of a link are lost, one after another."""

    __slots__ = ("_base", "_is_bad")

    def __init__(self, base: int) -> None:
        """Draw from the link's key base; the first message finds the chain in its long-run state."""
        self._base = base
        self._is_bad: bool | None = None

    def lost(self, number: int, loss: float, burst: float) -> bool:
        """Whether the message of this number is dropped.

        Args:
            number: of the message on its link; each is asked once, in their order.
            loss: mean share of messages dropped; at 1 all are.
            burst: mean number of drops in a row, at least 1.
        """
        if loss >= 1.0:
            return True
        draw = uniform(self._base, number, 0, _SALT)
        if self._is_bad is None:
            self._is_bad = draw < loss
        elif self._is_bad:
            self._is_bad = draw >= 1.0 / burst
        else:
            self._is_bad = draw < loss / (burst * (1.0 - loss))
        return self._is_bad and loss > 0.0
