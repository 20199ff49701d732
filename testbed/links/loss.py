"""Loss models: whether a link drops a message, drawn by the sender from the message's key."""

from __future__ import annotations

from testbed.draw import uniform

_SALT = 2  # link.py draws delays with another, so that changing the loss leaves the delays as they were


class Bernoulli:
    """Drops each message with the same probability, independently of all others."""

    __slots__ = ("_base", "_probability")

    def __init__(self, base: int, probability: float) -> None:
        """Draw from the link's key base; `probability` is from 0 to 1."""
        self._base = base
        self._probability = probability

    def lost(self, identity: int, attempt: int) -> bool:
        """Whether the message of this key is dropped."""
        return uniform(self._base, identity, attempt, _SALT) < self._probability
