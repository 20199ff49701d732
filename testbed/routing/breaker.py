"""A circuit breaker per target, or outlier ejection: who answers badly is left out for a time, then tried by one request.

A target is closed (used as ever), open (left out), or half open (its time out has passed). Bad outcomes are those that
the words name. It opens after so many bad ones in a row, when their share among the last replies reaches a fraction, or
when that share exceeds the mean of the other targets' shares by so much (of those that are closed and have as many replies;
where there are none, nothing is known of what is usual); half open it is usable while none of the balancer's own requests is there, so that one request at a time tries
it: a good reply closes it, a bad one opens it again for twice as long, up to 8 times.
No more than a share of the targets is out at a time, and where all that are usable otherwise would be out, all are used.

Source: the circuit breaker of Nygard (Release It!, 2007). Ejection of a share of hosts at the most, longer each time, and
comparison with the others are those of Envoy's outlier detection, which takes a multiple of the standard deviation over
hosts where `above_others` is a difference: of a handful of targets a deviation tells little.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence

from testbed.roles.messages import Outcome
from testbed.routing.policy import Hooks
from testbed.routing.view import Target, View
from testbed.scenario.resilience_words import BreakerWords

LONGEST = 8  # times that a target is out longer than the first time

Note = Callable[[str, float, bool], None]  # target, instant, used again


class _Circuit:
    """What is known of one target."""

    __slots__ = ("in_a_row", "is_out", "openings", "recent", "until_s")

    def __init__(self, replies: int) -> None:
        self.in_a_row = 0
        self.recent: deque[bool] = deque(maxlen=replies)
        self.is_out = False  # open or half open
        self.openings = 0  # in a row, without a good reply between
        self.until_s = -math.inf


class Breaker:
    """The circuits of all targets of one balancer."""

    def __init__(self, words: BreakerWords, targets: int) -> None:
        """All closed."""
        self._words = words
        self._bad = {int(Outcome[word.upper()]) for word in words.counts}
        self._circuits = [_Circuit(words.replies) for _ in range(targets)]

    def on_reply(self, target: Target, outcome: int, now_s: float) -> bool:
        """A request is over; whether that changes who may be used."""
        circuit, is_bad = self._circuits[target.index], outcome in self._bad
        if circuit.is_out and now_s < circuit.until_s:
            return False  # sent before it opened: tells nothing new
        if circuit.is_out:
            self._close(circuit)
            if not is_bad:
                circuit.openings = 0
                return True
            self._open(circuit, now_s)
            return True
        circuit.in_a_row = circuit.in_a_row + 1 if is_bad else 0
        circuit.recent.append(is_bad)
        if not (is_bad and self._is_too_bad(circuit) and self._may_open()):
            return False
        self._open(circuit, now_s)
        return True

    def is_out(self, target: Target) -> bool:
        """Whether its circuit is open or half open."""
        return self._circuits[target.index].is_out

    def usable(self, targets: Sequence[Target], now_s: float) -> tuple[Target, ...]:
        """Those of these that may be used now."""
        return tuple(each for each in targets if self._is_usable(each, now_s))

    def turns_at_s(self) -> float:
        """Until then `usable` changes only with replies; in the past while a target is half open."""
        return min((each.until_s for each in self._circuits if each.is_out), default=math.inf)

    def _is_usable(self, target: Target, now_s: float) -> bool:
        circuit = self._circuits[target.index]
        return not circuit.is_out or (now_s >= circuit.until_s and target.own_in_flight <= 0)

    def _is_too_bad(self, circuit: _Circuit) -> bool:
        words = self._words
        if words.in_a_row is not None and circuit.in_a_row >= words.in_a_row:
            return True
        if len(circuit.recent) < words.replies:
            return False
        bad = sum(circuit.recent)
        if words.fraction is not None and bad >= words.fraction * words.replies:
            return True
        return words.above_others is not None and self._exceeds_others(circuit, bad, words.above_others)

    def _exceeds_others(self, circuit: _Circuit, bad: int, by: float) -> bool:
        replies = self._words.replies
        others = [
            sum(each.recent)
            for each in self._circuits
            if each is not circuit and not each.is_out and len(each.recent) == replies
        ]
        return bool(others) and bad >= sum(others) / len(others) + by * replies

    def _may_open(self) -> bool:
        out = sum(each.is_out for each in self._circuits)
        return out + 1 <= self._words.most * len(self._circuits)

    def _open(self, circuit: _Circuit, now_s: float) -> None:
        circuit.is_out = True
        circuit.until_s = now_s + self._words.out_for * min(2**circuit.openings, LONGEST)
        circuit.openings += 1

    def _close(self, circuit: _Circuit) -> None:
        circuit.is_out = False
        circuit.in_a_row = 0
        circuit.recent.clear()


class BreakerView(View):
    """A view in which targets whose circuit is open are not allowed."""

    __slots__ = ("breaker",)

    def __init__(self, targets: Sequence[Target], allowed: Iterable[str] | None, words: BreakerWords) -> None:
        """As a view, with the words of its breaker."""
        self.breaker = Breaker(words, len(targets))
        super().__init__(targets, allowed)

    def refresh(self) -> None:
        """Work out anew who may be chosen; `now_s` is set."""
        before, turns_at_s = self.allowed, math.inf
        if self.limit is None:
            self.allowed = self.permitted
        else:
            super().refresh()
            turns_at_s = self.turns_at_s
        kept = self.breaker.usable(self.allowed, self.now_s) or self.allowed
        self.allowed = before if kept == before else kept
        self.turns_at_s = min(turns_at_s, self.breaker.turns_at_s())

    def watching(self, hooks: Hooks, now_s: Callable[[], float], note: Note) -> Hooks:
        """The hooks of a policy, with the breaker told of each reply as well; `note` hears of what it does."""
        told = hooks.on_reply

        def on_reply(target: Target, stay_s: float, outcome: Outcome) -> None:
            if told is not None:
                told(target, stay_s, outcome)
            at_s = now_s()
            if self.breaker.on_reply(target, int(outcome), at_s):
                self.now_s = at_s
                self.refresh()
                note(target.name, at_s, not self.breaker.is_out(target))

        return hooks._replace(on_reply=on_reply)


def view_of(
    words: BreakerWords | None, targets: Sequence[Target], allowed: Iterable[str] | None = None
) -> View:
    """A view of these targets, with a breaker where there are words for one."""
    return View(targets, allowed) if words is None else BreakerView(targets, allowed, words)
