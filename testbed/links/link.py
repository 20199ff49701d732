"""A link in two halves, neither with a clock: the sender's draws, the receiver's holds.

`LinkModel` gives each message its release instant (or drops or copies it) at the sending instant. The message then
travels at once, so the time of transport is absorbed in the delay, and a `DelayLine` before the receiver
keeps it until its release. A change to a link holds for messages sent after it; those under way keep their
release.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import repeat
from operator import itemgetter
from typing import TypeAlias

from testbed.draw import key_base, uniform
from testbed.links.counts import LinkCounts
from testbed.links.course import DELAY_SALT, Course
from testbed.links.delay import delay_quantile
from testbed.links.loss import Bernoulli
from testbed.roles.messages import Message
from testbed.scenario.fault_words import Setting
from testbed.scenario.link_words import Impairment
from testbed.scenario.topology import Effect, Link


class LinkModel:
    """The sender's half of one link: what it does to messages, as the scenario and the faults at work have it.

    The effect is the scenario's, changed by the active faults in the order of their numbers, so that faults
    may come and heal in any order. Every draw hangs on the seed, the link and the message's key alone, apart from
    those of models with a memory, which hang on the message's number on the link.

    Attributes:
        draw: (identity, attempt, sent at, seconds) -> the release instant of a message; None where it has not one
            release of its own: then `releases` tells what becomes of it. A change may put another function here.
        constant_s: the delay of every message, where a draw needs to know no more; otherwise None.
        counts: of drops by cause, copies and overtakings.
        effect: what holds now.
    """

    __slots__ = (
        "_active",
        "_base",
        "_course",
        "_delay_s",
        "_is_simple",
        "_kept",
        "_latest_at_s",
        "_link",
        "_loss",
        "_quantile",
        "_released_at_s",
        "_watched",
        "constant_s",
        "counts",
        "draw",
        "effect",
    )

    draw: Callable[[int, int, float], float | None]
    constant_s: float | None
    effect: Effect
    _loss: Bernoulli | None
    _quantile: Callable[[float], float] | None

    def __init__(self, seed: int, link: Link, *, watched: bool = False) -> None:
        """Begin with the effect of the scenario.

        Args:
            seed: of the run.
            link: of the topology.
            watched: the link will change in the run: mind its latest release from the start, so that messages that
                overtake others after a change are counted.
        """
        self._link = link
        self._base = key_base(seed, "link", link.source, link.target, link.path)
        self._active: dict[int, Impairment | Setting] = {}
        self._released_at_s = self._latest_at_s = -math.inf
        self._watched = watched
        self._course: Course | None = None
        self.counts = LinkCounts()
        self._take_effect()

    def releases(self, message: Message, sent_at_s: float) -> list[float]:
        """The release instants of a message for which `draw` gave None: none where it is dropped, two with its copy."""
        if self._is_simple:  # its loss is all that could have kept it from a release
            self.counts.loss += 1
            return []
        assert self._course is not None, "a link that is not simple has a course"
        found = self._course.releases(message, sent_at_s)
        return [self._in_turn(release_at_s) for release_at_s in found]

    def apply(self, fault: int, words: Impairment | Setting) -> None:
        """From now on this fault changes the keys that it gives."""
        self._active[fault] = words
        self._watched = True
        self._take_effect()

    def heal(self, fault: int) -> None:
        """The fault no longer holds; harmless where it did not."""
        if self._active.pop(fault, None) is not None:
            self._take_effect()

    def _draw_constant(self, identity: int, attempt: int, sent_at_s: float) -> float:
        return sent_at_s + self._delay_s

    def _draw_simple(self, identity: int, attempt: int, sent_at_s: float) -> float | None:
        if self._loss is not None and self._loss.lost(identity, attempt):
            return None
        if self._quantile is None:
            release_at_s = sent_at_s + self._delay_s
        else:
            release_at_s = sent_at_s + self._quantile(uniform(self._base, identity, attempt, DELAY_SALT))
        return self._in_turn(release_at_s)

    def _draw_none(self, identity: int, attempt: int, sent_at_s: float) -> None:
        return None

    def _in_turn(self, release_at_s: float) -> float:
        """A release, or that of the message before it where order is kept and this one would come sooner.

        Never before the release of an earlier message that was sent while order was kept.
        """
        if self._kept:
            release_at_s = self._released_at_s = max(release_at_s, self._released_at_s)
        if release_at_s < self._latest_at_s:
            self.counts.reordered += 1
        else:
            self._latest_at_s = release_at_s
        return release_at_s

    def _take_effect(self) -> None:
        effect = self._link.effect
        for fault in sorted(self._active):
            effect = effect.changed(self._active[fault])
        self.effect = effect
        self._kept = effect.order == "kept"
        self._is_simple = effect.is_simple
        if not self._is_simple:
            if self._course is None:
                self._course = Course(self._base, self.counts)
            self._course.take_effect(effect)
            self.draw = self._draw_none
            self.constant_s = None
            return
        self._delay_s = effect.delay_s
        self._quantile = None if effect.jitter is None else delay_quantile(effect)
        self._loss = Bernoulli(self._base, effect.loss) if effect.loss > 0.0 else None
        is_constant = self._quantile is None and self._loss is None and not self._kept and not self._watched
        self.draw = self._draw_constant if is_constant else self._draw_simple
        self.constant_s = self._delay_s if is_constant else None


Due: TypeAlias = tuple[float, int, Message]  # release instant, link number, message

# A heap entry: next release, number of the section, link, releases, messages, position of the next one. The
# number is that of the receipt, also when the rest of a section goes back, so equal deadlines keep the order
# of arrival.
_Entry: TypeAlias = tuple[float, int, int, list[float], list[Message], int]


class DelayLine:
    """The receiver's half of all links that end at a node: holds each message until its release.

    A heap of deadlines with one entry for each section received together; nothing sleeps, and there is no
    limit to the messages under way, as in a network.
    """

    __slots__ = ("_heap", "_received")

    def __init__(self) -> None:
        """Begin empty."""
        self._heap: list[_Entry] = []
        self._received = 0

    def put(self, link_number: int, message: Message, release_at_s: float) -> None:
        """Hold one message."""
        self._received += 1
        heappush(self._heap, (release_at_s, self._received, link_number, [release_at_s], [message], 0))

    def put_section(self, link_number: int, releases: list[float], messages: list[Message]) -> None:
        """Hold messages of one link that came together; the line keeps both lists."""
        if not releases:
            return
        ordered = sorted(releases)
        if ordered != releases:
            order = sorted(range(len(releases)), key=releases.__getitem__)
            releases, messages = ordered, [messages[i] for i in order]
        self._received += 1
        heappush(self._heap, (releases[0], self._received, link_number, releases, messages, 0))

    def take_due(self, now_s: float) -> list[Due]:
        """The messages whose release has come, by release and then by arrival."""
        heap = self._heap
        if not heap or heap[0][0] > now_s:
            return []
        sections = [heappop(heap)]
        while heap and heap[0][0] <= now_s:
            sections.append(heappop(heap))
        if len(sections) == 1:
            return self._take(sections[0], now_s)
        sections.sort(key=itemgetter(1))
        due: list[Due] = []
        for section in sections:
            due += self._take(section, now_s)
        due.sort(key=itemgetter(0))  # stable: equal releases stay in the order of their sections
        return due

    def next_release_s(self) -> float:
        """The earliest release held; infinite when empty."""
        return self._heap[0][0] if self._heap else math.inf

    def held(self) -> dict[int, int]:
        """How many messages of each link are held, by link number; links with none are left out."""
        counts: Counter[int] = Counter()
        for _, _, link_number, releases, _, position in self._heap:
            counts[link_number] += len(releases) - position
        return dict(counts)

    def _take(self, section: _Entry, now_s: float) -> list[Due]:
        """The due messages of a section just popped; the rest goes back."""
        _, number, link_number, releases, messages, start = section
        end = bisect_right(releases, now_s, start)
        if end < len(releases):
            heappush(self._heap, (releases[end], number, link_number, releases, messages, end))
        if end - start == 1:
            return [(releases[start], link_number, messages[start])]
        return list(zip(releases[start:end], repeat(link_number), messages[start:end]))
