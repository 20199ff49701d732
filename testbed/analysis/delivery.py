"""Whether links did what the scenario asks: delays and losses as delivered, against the distributions they are drawn from.

Delays: the order statistics of what was delivered have to lie within a band around the quantiles that the scenario
asks for; its width is that of Dvoretzky, Kiefer, Wolfowitz and Massart (1990), so no assumption is made and a sound run
leaves it once in a million. Above it, the lateness of the link is allowed, which the verdict judges by itself. The mean
of all drawn delays has to lie within six standard errors. Losses: the count of an independent loss has to lie
in its binomial interval. All three look at links that no fault touches; bursts, correlation, limited rates and replayed
files have distributions of their own, and are left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.stats import binom

from testbed.analysis.hops import Hop
from testbed.analysis.lateness import LEAST_MESSAGES
from testbed.analysis.limits import Finding
from testbed.analysis.reason import WHOLE_RUN, Places, reason
from testbed.analysis.records import Floats, Table, row_count
from testbed.links.delay import delay_quantile, mean_delay_s
from testbed.scenario.link_words import JITTERS
from testbed.scenario.quantity import format_s
from testbed.scenario.topology import Effect, Link

MISTAKE = 1e-6  # probability of finding fault with a sound run, over all links together
MEAN_ERRORS = 6.0  # standard errors by which a mean may differ
LEAST_FOR_MEAN = 1000  # messages: of fewer, a mean of skewed delays is no normal variable
LATE_PART = 0.01  # of the messages may be later than the p99 of the lateness
ROUNDING_S = 1e-6
SAME_DRAWS = (
    "compare testbed show --links of the same seed under --engine virtual, where the draws are the same"
)
_GRID = 4096  # fractions at which quantiles are averaged
_HEAVY = ("pareto", "lognormal")  # whose means converge too slowly for a bound by standard errors


class Delivered(NamedTuple):
    """The delays of one link as they were delivered, against what was asked; scenario seconds.

    Attributes:
        name: the link in words.
        messages: that were looked at.
        asked_s: mean, p50 and p99 of the distribution.
        delivered_s: the same of the messages.
        beyond: by how much the worst order statistic leaves its band, as a share of the messages; 0: none does.
        width: of the band, as a share of the messages.
        from_s: when the first of them was sent.
        until_s: when the last of them was.
        target: the node that receives; empty of a pool, whose name says where it ends.
    """

    name: str
    messages: int
    asked_s: tuple[float, float, float]
    delivered_s: tuple[float, float, float]
    beyond: float
    width: float
    from_s: float
    until_s: float
    target: str


def delivered_delays(hops: Iterable[Hop]) -> list[Delivered]:
    """Of every link with enough messages."""
    counted = [hop for hop in hops if len(hop.sent_at_s) >= LEAST_MESSAGES]
    return [_delivered(hop, MISTAKE / len(counted)) for hop in counted]


def delivery_findings(delivered: Iterable[Delivered], places: Places) -> Iterator[Finding]:
    """The link that is furthest from what was asked."""
    off = [each for each in delivered if each.beyond > 0.0]
    if off:
        worst = max(off, key=lambda each: each.beyond)
        more = f" ({len(off) - 1} more links)" if len(off) > 1 else ""
        (_, asked_p50_s, asked_p99_s), (_, p50_s, p99_s) = worst.asked_s, worst.delivered_s
        yield Finding(
            "invalid",
            reason(
                "delivered delay",
                f"on {worst.name} p50 {format_s(p50_s)} and p99 {format_s(p99_s)} over {worst.messages} messages, where "
                f"{format_s(asked_p50_s)} and {format_s(asked_p99_s)} are asked for (chance leaves the band of "
                f"{worst.width:.1%} once in a million runs){more}",
                process=places.process(worst.target),
                when=f"sent from {worst.from_s:.3f} to {worst.until_s:.3f} s",
                advice=f"try an idle host, and {SAME_DRAWS}",
            ),
            "delivered delay",
        )


class Draws(NamedTuple):
    """What the sender of an untouched link counted over the run; the mean of the drawn delays in scenario seconds."""

    link: Link
    sent: int
    lost: int
    delivered: int
    drawn_s_mean: float

    @property
    def name(self) -> str:
        """The link in words, for people."""
        return f"{self.link.source} -> {self.link.target} ({self.link.path})"

    @property
    def has_mean(self) -> bool:
        """Whether the mean of the draws tells anything: of skewed delays only that of many messages does."""
        jitter = self.link.effect.jitter
        if jitter is not None:
            is_heavy = any(getattr(jitter, kind) is not None for kind in _HEAVY)
            if is_heavy or self.link.effect.order == "kept" or self.delivered < LEAST_FOR_MEAN:
                return False
        return self.delivered > 0 and math.isfinite(self.drawn_s_mean)


def draws_of(links: list[Link], lateness: Table) -> list[Draws]:
    """Of the links whose draws have no memory, and that were used.

    Args:
        links: that no fault touches.
        lateness: the table, a row per link.
    """
    if not row_count(lateness) or "drawn_s_mean" not in lateness:
        return []
    columns = ("source", "target", "path", "sent", "dropped_loss", "delivered", "drawn_s_mean")
    rows = {
        (source, target, path): counts
        for source, target, path, *counts in zip(*(lateness[name].tolist() for name in columns), strict=True)
    }
    found = [
        Draws(link, *counts)
        for link in links
        if link.effect.is_simple and (counts := rows.get((link.source, link.target, link.path))) is not None
    ]
    return [each for each in found if each.sent]


def draw_findings(draws: Sequence[Draws], places: Places) -> Iterator[Finding]:
    """Means of drawn delays and counts of losses of untouched links that chance does not explain."""
    for each in draws:
        yield from _loss(each, MISTAKE / len(draws), places)
        if each.has_mean:
            yield from _mean(each, places)


def _loss(draws: Draws, mistake: float, places: Places) -> Iterator[Finding]:
    asked, sent = draws.link.effect.loss, draws.sent
    low, high = binom.interval(1.0 - mistake, sent, asked) if asked else (0, 0)
    if not low <= draws.lost <= high:
        yield Finding(
            "invalid",
            reason(
                "loss",
                f"{draws.lost} of {sent} messages on {draws.name} were lost, where {asked:.3g} of them are to be "
                f"(chance gives {low:.0f} to {high:.0f})",
                process=places.process(draws.link.source),
                when=WHOLE_RUN,
                advice=SAME_DRAWS,
            ),
            "loss",
        )


def _mean(draws: Draws, places: Places) -> Iterator[Finding]:
    asked_s = mean_delay_s(draws.link.effect)
    allowed_s = MEAN_ERRORS * _spread_s(draws.link.effect) / math.sqrt(draws.delivered) + ROUNDING_S
    if abs(draws.drawn_s_mean - asked_s) > allowed_s:
        yield Finding(
            "invalid",
            reason(
                "drawn delay",
                f"mean {format_s(draws.drawn_s_mean)} on {draws.name} over {draws.delivered} messages, where "
                f"{format_s(asked_s)} is due",
                process=places.process(draws.link.source),
                when=WHOLE_RUN,
                advice=SAME_DRAWS,
            ),
            "drawn delay",
        )


def _delivered(hop: Hop, mistake: float) -> Delivered:
    effect = hop.link.effect
    ordered_s = np.sort(hop.received_at_s - hop.sent_at_s)
    count = len(ordered_s)
    late_s = np.nanquantile(hop.received_at_s - hop.sent_at_s - hop.drawn_s, 1.0 - LATE_PART)
    width = math.sqrt(math.log(2.0 / mistake) / (2.0 * count)) + 1.0 / _GRID
    place = np.arange(1, count + 1) / count
    early = _beyond(place, width, ordered_s + ROUNDING_S, effect, above=False)
    late = _beyond(
        place - 1.0 / count, width + LATE_PART, ordered_s - late_s - ROUNDING_S, effect, above=True
    )
    quantile = delay_quantile(effect)
    return Delivered(
        hop.name,
        count,
        (mean_delay_s(effect), quantile(0.5), quantile(0.99)),
        (float(ordered_s.mean()), float(ordered_s[count // 2]), float(ordered_s[int(0.99 * (count - 1))])),
        max(early, late),
        width,
        float(hop.sent_at_s[0]),
        float(hop.sent_at_s[-1]),
        "" if hop.pool else hop.link.target,
    )


def _beyond(place: Floats, width: float, ordered_s: Floats, effect: Effect, *, above: bool) -> float:
    """The largest share by which an order statistic lies beyond the quantile at the edge of its band.

    Args:
        place: share of the messages up to each.
        width: of the band.
        ordered_s: the order statistics, what is allowed to them taken off.
        effect: of the link.
        above: whether they are not to lie above the upper edge, or not below the lower one.
    """
    fractions, quantiles_s = _quantiles_s(effect)
    if above:
        reached = np.searchsorted(quantiles_s, ordered_s, side="left") / len(fractions)  # P(X < x), at most
        return float(max(0.0, np.max(reached - width - place)))
    reached = np.searchsorted(quantiles_s, ordered_s, side="right") / len(fractions)  # P(X <= x), at least
    return float(max(0.0, np.max(place - width - reached)))


@lru_cache(maxsize=64)
def _quantiles_s(effect: Effect) -> tuple[Floats, Floats]:
    """Fractions in the middle of their steps, and the delays there."""
    fractions = (np.arange(_GRID) + 0.5) / _GRID
    quantile = delay_quantile(effect)
    return fractions, np.array([quantile(fraction) for fraction in fractions.tolist()])


def _spread_s(effect: Effect) -> float:
    """Standard deviation of the drawn delays, seconds."""
    return 0.0 if effect.jitter is None else float(_quantiles_s(effect)[1].std())


assert set(_HEAVY) <= set(JITTERS), "heavy tails are kinds of jitter"
