"""The course of a message over a link that does more than delay by its key or lose by chance.

Stage by stage: a cut or flapping link drops it; it may be lost; it waits for the rate; it may be copied; each copy
draws a delay of its own and may be released out of turn. Draws without memory hang on the message's key, as on simple
links; those with memory (bursts of losses, correlated delays) on its number on the link.
"""

from __future__ import annotations

from collections.abc import Callable

from testbed.draw import uniform
from testbed.links.correlation import CorrelatedFractions
from testbed.links.counts import LinkCounts
from testbed.links.delay import delay_quantile
from testbed.links.flap import is_down
from testbed.links.gilbert import GilbertLoss
from testbed.links.loss import Bernoulli
from testbed.links.rate_limit import RateLimit
from testbed.links.replay import ReplayedCourse
from testbed.links.size import message_bytes
from testbed.roles.messages import Message
from testbed.scenario.topology import Effect

DELAY_SALT = 1  # loss.py draws with another
_REORDER_SALT, _DUPLICATE_SALT, _COPY_DELAY_SALT, _COPY_REORDER_SALT = 5, 6, 7, 8


class Course:
    """The stages of one link, with what they remember; changes of the effect leave their memory alone."""

    __slots__ = (
        "_base", "_bursts", "_counts", "_effect", "_fractions", "_limit", "_number", "_quantile", "_replayed_delay",
        "_replayed_loss",
    )  # fmt: skip

    _quantile: Callable[[float], float]
    _replayed_delay: ReplayedCourse | None
    _replayed_loss: ReplayedCourse | None

    def __init__(self, base: int, counts: LinkCounts) -> None:
        """Draw from the link's key base, and count into its counts."""
        self._base = base
        self._counts = counts
        self._bursts = GilbertLoss(base)
        self._fractions = CorrelatedFractions(base)
        self._limit = RateLimit()
        self._number = 0  # of the messages so far

    def take_effect(self, effect: Effect) -> None:
        """Treat the messages sent from now on so."""
        self._effect = effect
        self._quantile = delay_quantile(effect)
        of_delay, of_loss = effect.delay_replay, effect.loss_replay
        self._replayed_delay = None if of_delay is None else ReplayedCourse(of_delay, effect.delay_changes)
        self._replayed_loss = None if of_loss is None else ReplayedCourse(of_loss)

    def releases(self, message: Message, sent_at_s: float) -> list[float]:
        """The release instant of the message and of its copy, if there is one; empty: it is dropped, and counted."""
        effect, counts = self._effect, self._counts
        identity, attempt = message[0], message[1]
        self._number += 1
        if effect.kill:
            counts.dead += 1
            return []
        if effect.cut or (effect.flap is not None and is_down(effect.flap, sent_at_s)):
            counts.cut += 1
            return []
        if self._is_lost(identity, attempt, sent_at_s):
            counts.loss += 1
            return []
        found = [self._release_at_s(message, sent_at_s, DELAY_SALT, _REORDER_SALT)]
        if (
            effect.duplicate > 0.0
            and uniform(self._base, identity, attempt, _DUPLICATE_SALT) < effect.duplicate
        ):
            counts.duplicated += 1
            found.append(self._release_at_s(message, sent_at_s, _COPY_DELAY_SALT, _COPY_REORDER_SALT))
        return [release_at_s for release_at_s in found if release_at_s is not None]

    def _is_lost(self, identity: int, attempt: int, sent_at_s: float) -> bool:
        effect = self._effect
        replayed = None if self._replayed_loss is None else self._replayed_loss.loss(sent_at_s)
        loss = effect.loss if replayed is None else replayed
        if effect.loss_burst is not None:
            return self._bursts.lost(self._number, loss, effect.loss_burst)
        return loss > 0.0 and Bernoulli(self._base, loss).lost(identity, attempt)

    def _release_at_s(
        self, message: Message, sent_at_s: float, delay_salt: int, reorder_salt: int
    ) -> float | None:
        """When one copy is released; None: the queue before the link was full."""
        effect = self._effect
        identity, attempt = message[0], message[1]
        at_s = self._left_at_s(message, sent_at_s)
        if at_s is None:
            self._counts.queue += 1
            return None
        delay_s = None if self._replayed_delay is None else self._replayed_delay.delay_s(sent_at_s)
        if delay_s is None:
            if effect.correlation > 0.0 and delay_salt == DELAY_SALT:
                fraction = self._fractions.fraction(self._number, effect.correlation)
            else:
                fraction = uniform(self._base, identity, attempt, delay_salt)
            delay_s = self._quantile(fraction)
        reorder = effect.reorder
        if reorder is not None and uniform(self._base, identity, attempt, reorder_salt) < reorder.fraction:
            if reorder.late is not None:
                delay_s += reorder.late
            else:
                delay_s = 0.0 if reorder.ahead is None else max(0.0, delay_s - reorder.ahead)
        return at_s + delay_s

    def _left_at_s(self, message: Message, sent_at_s: float) -> float | None:
        """When a message has been sent through the link's rate; None: no room to wait for it."""
        effect = self._effect
        sending_s = max(1.0 / effect.rate, message_bytes(message) / effect.bandwidth)
        if sending_s == 0.0:
            return sent_at_s
        return self._limit.sent_at_s(sent_at_s, sending_s, effect.queue)
